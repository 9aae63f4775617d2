"""A back end of another kind in this folder alone: a network through all four stages, verified on it."""

import shutil
from pathlib import Path

from onnx import helper

from tests.acceptance.building import Quiet
from tests.cli.models import save, value, weight
from tests.codegen.toy_backend.backend import BACKEND
from tilec.codegen import backend
from tilec.pipeline import Job, compile_model
from tilec.runtime import load
from tilec.spec.recipe import CompileRecipe
from tilec.spec.resolve import resolve_device

FOLDER = Path(__file__).parent


def test_a_network_is_verified_on_code_of_a_registered_back_end(tmp_path, monkeypatch):
    assert shutil.which("gcc"), "this test compiles C"
    monkeypatch.setattr(backend, "_REGISTERED", {})
    backend.register(BACKEND)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h0"]),
        helper.make_node("Add", ["h0", "b"], ["h1"]),
        helper.make_node("Tanh", ["h1"], ["h2"]),
        helper.make_node("Softmax", ["h2"], ["y"], axis=-1),
    ]
    weights = [weight("w", 24, 40), weight("b", 40)]
    model = save(tmp_path / "m.onnx", nodes, [value("x", 50, 24)], [value("y", 50, 40)], weights)
    job = Job(CompileRecipe(), Quiet(), resolve_device(str(FOLDER / "device.yaml")))
    done = compile_model(job, model, tmp_path / "build")
    report = done["verify"].body
    assert (report["verdict"], report["verified_on"]) == ("pass", "host")
    runtime = done["codegen"].body["runtime"]
    assert runtime["loader"] == BACKEND.loader
    assert "kernel_0" in (tmp_path / "build" / "kernels.c").read_text()
    assert [port.name for port in load(tmp_path / "build").outputs] == ["y"]
