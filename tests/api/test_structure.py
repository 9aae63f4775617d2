"""Models that differ in their weights alone are scheduled and compiled once."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

import tilec
from api import models
from tilec.api import compiling, structure, worker
from tilec.api.structure import twin
from tilec.artifact import read_artifact
from tilec.errors import UsageError

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(2, 6)


@pytest.fixture
def compiled(monkeypatch):
    """The requests that a compiler was needed for."""
    seen = []
    monkeypatch.setattr(compiling, "_run", lambda request: (seen.append(request), worker.build(request)))
    return seen


def dense(seed, scale=2.0, rows=6, index=0):
    """A product with packed weights, a bias, a scalar and a row of a table."""
    draw = np.random.default_rng(seed)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("Add", ["m", "b"], ["a"]),
        helper.make_node("Mul", ["a", "s"], ["c"]),
        helper.make_node("Gather", ["t", "i"], ["g"], axis=0),
        helper.make_node("Add", ["c", "g"], ["y"]),
    ]
    weights = {
        "w": draw.normal(size=(rows, 40)).astype(np.float32),
        "b": draw.normal(size=40).astype(np.float32),
        "s": np.float32(scale),
        "t": draw.normal(size=(5, 40)).astype(np.float32),
        "i": np.int64(index),
    }
    inits = [models.constant(name, value) for name, value in weights.items()]
    proto = models.model(nodes, [models.value("x", 2, rows)], [models.value("y", 2, 40)], inits)
    return proto.SerializeToString(), lambda x: (x @ weights["w"] + weights["b"]) * scale + weights["t"][index]


def check(cache, made, x=X):
    data, expected = made
    (ours,) = tilec.InferenceSession(data, cache=cache, device="host").run(None, {"x": x})
    np.testing.assert_allclose(ours, expected(x), rtol=1e-4, atol=1e-5)


def test_other_weights_take_over_plan_and_code(tmp_path, compiled):
    for seed in range(3):
        check(tmp_path, dense(seed))
    assert len(compiled) == 1
    folders = [path for path in (tmp_path / "sessions").iterdir() if path.is_dir()]
    assert len(folders) == 3
    for folder in folders:  # whole artifacts, as if compiled
        for kind, name in (("graph", "1-graph.json"), ("plan", "2-plan.json"), ("kernels", "3-kernels.json")):
            assert not read_artifact(folder / name, kind).edited
        tilec.load(folder, check=True)


@pytest.mark.parametrize("other", [{"scale": 3.0}, {"index": 2}, {"rows": 7}])
def test_what_stands_in_code_is_compiled(tmp_path, compiled, other):
    check(tmp_path, dense(0))
    check(tmp_path, dense(1, **other), np.ones((2, other.get("rows", 6)), np.float32))
    assert len(compiled) == 2


def test_a_twin_that_is_gone_or_damaged_is_no_twin(tmp_path, compiled):
    check(tmp_path, dense(0))
    (folder,) = [path for path in (tmp_path / "sessions").iterdir() if path.is_dir()]
    (folder / "2-plan.json").write_text("{")
    check(tmp_path, dense(1))
    assert len(compiled) == 2
    shutil.rmtree(Path(tmp_path) / "sessions")
    check(tmp_path, dense(2))
    assert len(compiled) == 3


def test_a_model_whose_file_goes_while_it_is_compiled_is_compiled(tmp_path, monkeypatch):
    path = tmp_path / "model.onnx"
    path.write_bytes(dense(0)[0])
    compile_ = worker._compile

    def compile_and_remove(*arguments):
        compile_(*arguments)
        path.unlink()
        structure._skeleton.cache_clear()  # the compiler is a process of its own

    monkeypatch.setattr(worker, "_compile", compile_and_remove)
    requests = []
    monkeypatch.setattr(compiling, "_run", lambda request: (requests.append(request), worker.build(request)))
    with pytest.raises(UsageError, match="no such file"):  # for the session, which looks at it again
        tilec.InferenceSession(path, cache=tmp_path, device="host")
    assert twin(requests[0]) is None
    assert (tmp_path / "sessions" / requests[0].key[:32]).is_dir()
