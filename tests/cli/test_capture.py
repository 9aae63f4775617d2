"""`tilec capture`: the slowest and the failing group with their inputs, from a build and from a session's record."""

import json

import miscompiled
import numpy as np
import onnx
import pytest

from cli import models
from cli.test_verify import attention
from tilec.api import InferenceSession
from tilec.api.recording import MOST, recorded
from tilec.errors import ConfigError, TilecError, UsageError

pytestmark = pytest.mark.feature("B29")


def timed(folder, model, feeds, *rest):
    """In the place of timing, which takes seconds."""
    del folder, model, rest
    raise TilecError(f"timed at {feeds['x'].shape}")


def test_a_slow_group_is_a_model_that_verifies_is_timed_and_explained(cli, monkeypatch, tmp_path):
    models.mlp(tmp_path / "model.onnx", "batch")
    assert cli("compile", "model.onnx", "--device", "host", "--to", "codegen").code == 0
    ran = cli("capture", "model.tilec", "--shape", "batch=5", "-o", "cluster")
    assert (ran.code, ran.out) == (0, "cluster/build\n"), ran.err
    assert "input x: random, seed 0" in ran.err
    with np.load(tmp_path / "cluster" / "inputs.npz") as inputs:
        assert inputs["x"].shape == (5, 16)
    assert "nodes behind group " in (tmp_path / "cluster" / "recipe.yaml").read_text().splitlines()[0]
    assert cli("verify", "cluster/build", "--inputs", "cluster/inputs.npz").code == 0
    assert cli("explain", "cluster/build", "--group", 1).code == 0
    monkeypatch.setattr("tilec.bench.time_interleaved", timed)
    assert "timed at (5, 16)" in cli("bench", "cluster/build", "--inputs", "cluster/inputs.npz").err
    assert "have its sizes" in cli("bench", "cluster/build", "--inputs", "x.npz", "--shape", "batch=2").err
    assert "no group is called 'softmax'" in cli("capture", "model.tilec", "--group", "softmax").err


def test_a_group_is_captured_by_its_number_from_a_model_whose_nodes_have_no_names(cli, tmp_path):
    nodes = [
        onnx.helper.make_node("MatMul", ["x", "w"], ["h"]),
        onnx.helper.make_node("Softmax", ["h"], ["y"]),
    ]
    models.save(
        tmp_path / "model.onnx", nodes, [models.value("x", 3, 8)], [models.value("y", 3, 6)], [models.weight("w", 8, 6)]
    )
    assert cli("compile", "model.onnx", "--device", "host", "--to", "codegen").code == 0
    ran = cli("capture", "model.tilec", "--group", 1, "-o", "cluster")
    assert ran.code == 0, ran.err
    assert {node.op_type for node in onnx.load(str(tmp_path / "cluster" / "model.onnx")).graph.node} <= {
        "MatMul",
        "Softmax",
    }
    assert "no group has the number 9" in cli("capture", "model.tilec", "--group", 9).err


def test_a_failing_group_is_captured_and_reduced(cli, monkeypatch, tmp_path):
    attention(tmp_path / "model.onnx")
    with monkeypatch.context() as planted:
        miscompiled.plant(planted, "exp")
        assert cli("compile", "model.onnx", "--device", "host", "--to", "codegen").code == 0
        ran = cli("capture", "model.tilec", "--group", "failing", "-o", "cluster", "--json")
        assert ran.code == 0, ran.err
        assert json.loads(ran.out)["folder"] == "cluster"
        names = {node.op_type for node in onnx.load(str(tmp_path / "cluster" / "model.onnx")).graph.node}
        assert "Softmax" in names
        assert cli("verify", "--reduce", "cluster/build", "-o", "repro").code == 0


def test_a_session_keeps_runs_that_capture_takes(cli, monkeypatch, tmp_path):
    models.mlp(tmp_path / "model.onnx")
    monkeypatch.setenv("TILEC_RECORD", str(tmp_path / "records"))
    session = InferenceSession(tmp_path / "model.onnx", cache=tmp_path / "cache")
    x = np.random.default_rng(3).standard_normal((4, 16), np.float32)
    for _ in range(3):
        session.run(None, {"x": x})
    (record,) = (tmp_path / "records").glob("*.json")
    assert json.loads(record.read_text())["error"] == ""
    monkeypatch.delenv("TILEC_RECORD")
    ran = cli("capture", record, "-o", "cluster")
    assert ran.code == 0, ran.err
    with np.load(tmp_path / "cluster" / "inputs.npz") as inputs:
        assert (inputs["x"] == x).all()
    record.write_text("{}")
    assert "neither a folder" in cli("capture", record).err


class Code:
    """A compiled model that fails in turn."""

    def __init__(self, *errors):
        self._errors = list(errors)

    def run(self, feeds, out=None):
        del out
        error = self._errors.pop(0) if self._errors else None
        if error is not None:
            raise error
        return dict(feeds)


def test_failing_and_slow_runs_are_kept_up_to_a_number(monkeypatch, tmp_path):
    monkeypatch.setenv("TILEC_RECORD", str(tmp_path / "records"))
    monkeypatch.setenv("TILEC_RECORD_SLOWER", "1000")
    code = recorded(Code(UsageError("feeds"), TilecError("crash")), tmp_path / "build")
    for error in (UsageError, TilecError):
        with pytest.raises(error):
            code.run({"x": np.ones(2)})
    code.run({"x": np.ones(2)})
    (record,) = (tmp_path / "records").glob("*.json")
    assert json.loads(record.read_text())["error"] == "crash"
    monkeypatch.setenv("TILEC_RECORD_SLOWER", "0")
    code = recorded(Code(), tmp_path / "build")
    for _ in range(MOST + 3):
        code.run({"x": np.ones(2)})
    assert len(list((tmp_path / "records").glob("*.json"))) == MOST + 1
    monkeypatch.setenv("TILEC_RECORD_SLOWER", "soon")
    with pytest.raises(ConfigError, match="TILEC_RECORD_SLOWER is 'soon'"):
        recorded(Code(), tmp_path)
