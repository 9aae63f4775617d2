"""Every kernel of the zoo at its real size on the tile machine; one that has run is not run again until it changes, or
the machine does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest
from scheduler.running import device

import tilec
from acceptance.building import Quiet, folder_of, host, plan_of
from acceptance.test_plans import MACHINES
from tilec import zoo
from tilec.artifact import digest_object
from tilec.ir.program_codec import program_to_json
from tilec.pipeline import Job, compile_model
from tilec.spec.recipe import VerifyOptions
from tilec.spec.resolve import device_source
from tilec.verify import on_machine
from tilec.verify.on_machine import Step, verify_on_machine

pytestmark = pytest.mark.slow


@cache
def machine() -> str:
    """What the machine and the language of its programs are made of."""
    root = Path(tilec.__file__).parent
    sources = sorted(path for part in ("machine", "ir", "verify") for path in (root / part).rglob("*.py"))
    return sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]


def key(step: Step) -> str:
    return f"machine/{machine()}/{digest_object(program_to_json(step.program))}"


@pytest.mark.feature("W07")
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("model", zoo.names())
def test_kernels_of_real_size_run_on_the_tile_machine(tmp_path, monkeypatch, pytestconfig, model, name):
    waiting: list[Step] = []

    def new(steps: Sequence[Step]) -> Iterator[Step]:
        distinct = {step.program.name: step for step in reversed(steps)}
        waiting.extend(step for step in distinct.values() if not pytestconfig.cache.get(key(step), False))
        yield from waiting

    def advance(done: int, _total: int, _step: str = "") -> None:
        pytestconfig.cache.set(key(waiting[done - 1]), True)

    monkeypatch.setattr(on_machine, "BUDGET", 0)
    monkeypatch.setattr(on_machine, "_affordable", new)
    path = zoo.export(model, tmp_path / "model.onnx")
    job = Job(host().recipe, Quiet(), device(name), shapes={}, asked=frozenset(), device_text=device_source(name).text)
    stages = compile_model(job, path, folder_of(path), last="codegen")
    steps = {"plan": plan_of(folder_of(path)), "kernels": stages["codegen"].body, "model": path}
    outcome = verify_on_machine(folder_of(path), **steps, options=VerifyOptions(), advance=advance, because="asked for")
    assert outcome.failure is None
    assert all(pytestconfig.cache.get(key(step), False) for step in waiting)
