"""Compiles models for this machine, in this process or by the command line, and compares them with onnxruntime."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import chdir, nullcontext
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from importer.reference import onnxruntime

from tilec.artifact import read_artifact
from tilec.cli import app
from tilec.ir.codec import plan_from_json
from tilec.ir.plan import Plan
from tilec.ir.sizes import SymbolRange
from tilec.pipeline import Job, StageInput, compile_model
from tilec.progress import Advance, unseen
from tilec.runtime import Session, load
from tilec.spec.effective import Effective, effective_recipe
from tilec.verify.inputs import Draw, random_inputs

Array = np.ndarray[Any, Any]
Arrays = Mapping[str, Array]

ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("TILEC_")} | {
    "PYTHONPATH": os.pathsep.join(sys.path)
}
FORMS = ("fused", "decomposed")
DRAWS = (Draw(7), Draw(8, mean=3.0))
ARTIFACTS = ("1-graph.json", "2-plan.json", "3-kernels.json", "4-report.json")


class Quiet:
    """A listener that says nothing."""

    def stage(self, name: str) -> nullcontext[Advance]:
        return nullcontext(unseen)

    def skipped(self, stage: str) -> None:
        return

    def step(self, text: str) -> None:
        return

    def note(self, text: str) -> None:
        return


@cache
def host() -> Effective:
    """The default recipe and this machine."""
    return effective_recipe(None, {}, {})


def build(
    model: Path,
    sizes: Mapping[str, int] | None = None,
    last: str = "codegen",
    ranges: Mapping[str, SymbolRange] | None = None,
) -> dict[str, StageInput]:
    """Run the stages up to `last` into the folder beside the model; returns what they wrote."""
    text = host().device_source.text
    job = Job(
        host().recipe,
        Quiet(),
        host().device,
        shapes=sizes or {},
        asked=frozenset(sizes or {}),
        ranges=ranges or {},
        device_text=text,
    )
    return compile_model(job, model, folder_of(model), last=last)


def folder_of(model: Path) -> Path:
    return model.with_suffix(".tilec")


def plan_of(folder: Path) -> Plan:
    return plan_from_json(read_artifact(folder / "2-plan.json", "plan").body)


def compiled(model: Path, sizes: Mapping[str, int] | None = None) -> Session:
    """Compile and load, and demand that every node of the model is compiled."""
    plan = build(model, sizes)["schedule"].body
    assert plan["placement"]["compiled"] == plan["placement"]["total"]
    return load(folder_of(model))


def assert_close(found: Arrays, expected: Arrays, tolerance: float = 1e-4) -> None:
    """Same names, shapes and types; |a - b| <= tolerance * max|b| for floats, equality for all else."""
    assert list(found) == list(expected)
    for name, b in expected.items():
        a = found[name]
        assert a.shape == b.shape, name
        assert a.dtype == b.dtype, name
        if b.dtype.kind != "f":
            np.testing.assert_array_equal(a, b, name)
            continue
        a64, b64 = a.astype(np.float64), b.astype(np.float64)
        finite = np.isfinite(b64)
        np.testing.assert_array_equal(a64[~finite], b64[~finite], name)
        assert np.isfinite(a64[finite]).all(), name
        error = np.abs(a64[finite] - b64[finite]).max(initial=0.0)
        assert error <= tolerance * np.abs(b64[finite]).max(initial=0.0), (name, error)


def check(model: Path, feeds: Arrays, sizes: Mapping[str, int] | None = None, tolerance: float = 1e-4) -> Session:
    """Compile a model and demand onnxruntime's outputs on these inputs."""
    session = compiled(model, sizes)
    names = [spec.name for spec in session.outputs]
    expected = dict(zip(names, onnxruntime(model, feeds), strict=True))
    assert_close(session.run(feeds), expected, tolerance)
    return session


def check_draws(model: Path, sizes: Mapping[str, int] | None = None, tolerance: float = 1e-4) -> Session:
    """The same on random inputs of two seeds, one with mean 3; the outputs must not be constant."""
    session = compiled(model, sizes)
    plan = plan_of(folder_of(model))
    names = [spec.name for spec in session.outputs]
    for draw in DRAWS:
        feeds = random_inputs(plan, draw)
        expected = dict(zip(names, onnxruntime(model, feeds), strict=True))
        for name, array in expected.items():
            assert array.size < 2 or array.std() > 1e-3 * np.abs(array).max(), f"{name} is constant"
        assert_close(session.run(feeds), expected, tolerance)
    return session


def stage(*arguments: object, folder: Path) -> None:
    """Run `tilec ARGUMENTS` in `folder`, in this process; demand that it succeeds."""
    with (
        chdir(folder),
        mock.patch.object(sys, "argv", ["tilec", *map(str, arguments)]),
        mock.patch.dict(os.environ, ENVIRONMENT, clear=True),
    ):
        code: object = None
        try:
            app.run()
        except SystemExit as end:
            code = end.code
    assert not code, arguments


def tilec(
    *arguments: object, folder: Path, code: int | None = 0, without: Sequence[str] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `tilec ARGUMENTS` in `folder` as a process of its own that cannot import `without`; demand the exit code."""
    program = f"""
import sys
sys.modules.update(dict.fromkeys({tuple(without)!r}))
sys.argv[0] = "tilec"
from tilec.cli import main
main()
"""
    return python(program, *arguments, folder=folder, code=code, **environment)


def python(
    program: str, *arguments: object, folder: Path, code: int | None = 0, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a Python program as a process of its own, and demand the exit code unless None."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    env = {**ENVIRONMENT, **environment}
    ran = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert code is None or ran.returncode == code, ran.stderr
    return ran


def tilec_memory(*arguments: object, folder: Path) -> tuple[str, int]:
    """Run `tilec ARGUMENTS`; what it says, and the peak memory in bytes of the largest process that took part."""
    program = """
import json, resource, subprocess, sys
ran = subprocess.run([sys.executable, "-m", "tilec", *sys.argv[1:]], capture_output=True, text=True)
print(json.dumps([ran.returncode, ran.stderr, 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss]))
"""
    code, said, memory = json.loads(python(program, *arguments, folder=folder).stdout)
    assert code == 0, said
    return said, memory


def contents(folder: Path, last: str = "4-report.json") -> dict[str, bytes]:
    """What the promise of equal bytes covers: the artifacts up to `last`, and the text of the kernels."""
    names = [name for name in ARTIFACTS if name <= last]
    files = [folder / name for name in names] + sorted((folder / "programs").iterdir())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}
