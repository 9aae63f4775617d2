"""Small valid models, and the record of the changes that break a rule of ONNX in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

Change = Callable[[Any], None]
Base = Callable[[], Any]

CHANGES: dict[str, tuple[Base, Change]] = {}
"""Name of a change -> the valid model that it is applied to, the change."""


def change(base: Base) -> Callable[[Change], Change]:
    """Record a change of a valid model under the name of its function."""

    def record(function: Change) -> Change:
        CHANGES[function.__name__] = (base, function)
        return function

    return record


def broken(name: str) -> Any:
    """The model that a change makes."""
    base, function = CHANGES[name]
    model = base()
    function(model)
    return model


def value(name: str, kind: int, shape: Any) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def model_of(nodes: list[Any], inputs: list[Any], outputs: list[Any], weights: list[Any] | None = None) -> Any:
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights or [])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def layer() -> Any:
    """y = relu(x w + b)."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"], name="mm"),
        helper.make_node("Add", ["m", "b"], ["a"], name="add"),
        helper.make_node("Relu", ["a"], ["y"], name="relu"),
    ]
    weights = [numpy_helper.from_array(np.ones((4, 3), "f4"), "w"), numpy_helper.from_array(np.zeros(3, "f4"), "b")]
    return model_of(nodes, [value("x", TensorProto.FLOAT, [2, 4])], [value("y", TensorProto.FLOAT, [2, 3])], weights)


def lookup() -> Any:
    """y = softmax(t[i])."""
    nodes = [
        helper.make_node("Gather", ["t", "i"], ["r"], name="g"),
        helper.make_node("Softmax", ["r"], ["y"], name="s", axis=-1),
    ]
    inputs = [value("t", TensorProto.FLOAT, [5, 4]), value("i", TensorProto.INT64, [3])]
    return model_of(nodes, inputs, [value("y", TensorProto.FLOAT, [3, 4])])


def branches() -> Any:
    """y = relu(x) if c else -x."""
    result = [TensorProto.FLOAT, [2, 4]]
    then = helper.make_graph([helper.make_node("Relu", ["x"], ["p"])], "then", [], [value("p", *result)])
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["q"])], "other", [], [value("q", *result)])
    node = helper.make_node("If", ["c"], ["y"], name="if", then_branch=then, else_branch=other)
    return model_of([node], [value("x", *result), value("c", TensorProto.BOOL, [])], [value("y", *result)])


def sequence() -> Any:
    """y = x and x, concatenated."""
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "x"], ["s"], name="sc"),
        helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0, name="cf"),
    ]
    return model_of(nodes, [value("x", TensorProto.FLOAT, [2, 4])], [value("y", TensorProto.FLOAT, [4, 4])])
