"""Kernels compiled by other processes while a job goes on: the same bytes and errors as in turn (A17)."""

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from acceptance.building import Quiet, contents, host
from cli.models import save, value, weight
from onnx import helper

from tilec.artifact import read_artifact
from tilec.calls_ahead import CallsAhead
from tilec.codegen.cpu import calls
from tilec.codegen.cpu.kernel_ir import KernelIR
from tilec.errors import TilecError
from tilec.pipeline import Job, compile_model
from tilec.pipeline.kernels_ahead import kernels_ahead
from tilec.spec.cpus import without_children

pytestmark = [
    pytest.mark.feature("A17"),
    pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only"),
]


def job() -> Job:
    """A compilation for this machine."""
    return Job(host().recipe, Quiet(), host().device, device_text=host().device_source.text)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Products that nothing connects and whose sizes differ, so that their kernels do."""
    nodes = [helper.make_node("MatMul", ["x", "a"], ["h"]), helper.make_node("Softmax", ["h"], ["y"])]
    nodes.append(helper.make_node("MatMul", ["z", "b"], ["w"]))
    weights = [weight("a", 24, 40), weight("b", 40, 16)]
    inputs, outputs = [value("x", 8, 24), value("z", 5, 40)], [value("y", 8, 40), value("w", 5, 16)]
    return save(tmp_path / "model.onnx", nodes, inputs, outputs, weights)


def files(folder: Path) -> dict[str, bytes]:
    """The artifacts, the programs and the library."""
    return contents(folder, "3-kernels.json") | {path.name: path.read_bytes() for path in folder.glob("*.a")}


def compiled(model: Path, folder: str, job: Job) -> dict[str, bytes]:
    """What a job writes into a folder beside the model."""
    compile_model(job, model, model.parent / folder, last="codegen")
    return files(model.parent / folder)


def test_the_same_bytes_are_written_whoever_compiles(model: Path) -> None:
    begun: list[str] = []
    lowered: list[KernelIR | None] = []

    class Watched(CallsAhead):
        def begin(self, key, function, argument) -> None:
            if function is calls.compile_kernel and not self._is_begun(key, function, argument):
                begun.append(key)
                lowered.append(argument.lowered)
            super().begin(key, function, argument)

    with Watched(2) as ahead:
        written = compiled(model, "apart", replace(job(), ahead=ahead))
    assert len(begun) == len(set(begun)) >= 2, "what schedule begins is what codegen asks for"
    assert None not in lowered, "the passes over a kernel run once, in schedule"
    assert written == compiled(model, "here", job())


def test_a_lost_process_changes_nothing(model: Path) -> None:
    with CallsAhead(2) as ahead:
        ahead.begin("lost", _killed, None)
        written = compiled(model, "apart", replace(job(), ahead=ahead))
    assert written == compiled(model, "here", job())


def _killed(_argument: None) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_errors_are_those_of_one_process(model: Path) -> None:
    compiled(model, "build", job())
    plan = read_artifact(model.parent / "build" / "2-plan.json", "plan")
    variant = plan.body["groups"][0]["variants"][0]
    node = next(iter(variant["vectors"]))
    variant["vectors"][node] = "no_iterator"
    plan.write(model.parent / "build" / "2-plan.json")
    said = []
    with CallsAhead(2) as two:
        for ahead in (None, two):
            again = replace(job(), ahead=ahead)
            with pytest.raises(TilecError) as caught:
                compile_model(again, model, model.parent / "build", first="codegen", last="codegen")
            said.append((type(caught.value), str(caught.value)))
    assert said[0] == said[1]


def test_one_processor_compiles_in_turn() -> None:
    with without_children(), kernels_ahead(job()) as each:
        assert each.ahead is None
