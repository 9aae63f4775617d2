"""Which graphs differ in values of weights alone; tests/api/test_structure.py compiles such models."""

import copy

import pytest

from tilec.pipeline.other_weights import _change

GRAPH = {
    "constants": {"w": {"file": "m.onnx", "offset": 64, "size": 400}, "b": [1.0, 2.0], "s": [3.0]},
    "files": {"m.onnx": "a" * 64},
    "nodes": ["y = x * w + b"],
}


def other(**constants):
    graph = copy.deepcopy(GRAPH)
    graph["constants"] |= constants
    graph["files"] = {"constants.safetensors" if "w" in constants else "m.onnx": "b" * 64}
    return graph


def test_values_and_files_of_weights_may_differ():
    moved = {"file": "constants.safetensors", "offset": 64, "size": 400}
    after = other(b=[5.0, 6.0], w=moved)
    change = _change(GRAPH, after)
    assert change is not None
    assert change.names == {"m.onnx": "constants.safetensors", "a" * 64: "b" * 64}
    assert change.covers({"constants": {"b": [1.0, 2.0]}})
    assert not change.covers({"constants": {"b": [0.0, 2.0]}})
    assert not change.covers({"constants": {"made of b": [1.0, 2.0]}})


@pytest.mark.parametrize(
    "after",
    [
        other(s=[4.0]),
        other(b=[1.0]),
        other(b={"file": "m.onnx", "offset": 0, "size": 8}),
        other(w={"file": "m.onnx", "offset": 128, "size": 400}),
        other() | {"nodes": ["y = x * w"]},
        other() | {"ranges": []},
        {**other(), "constants": {"w": GRAPH["constants"]["w"]}},
    ],
)
def test_all_else_makes_another_graph(after):
    assert _change(GRAPH, after) is None


def test_models_with_parts_of_onnxruntime_are_compiled():
    calls = {**GRAPH, "calls": [{"file": "cluster.onnx"}]}
    assert _change(calls, calls) is None
