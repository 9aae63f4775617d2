"""Small models with open sizes: a recurrence, elements that an input names, a chain in f16, reductions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

FLOAT, HALF, INT64 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64

SIZES: Mapping[str, tuple[Mapping[str, int], ...]] = {
    "recurrence": ({"t": 7, "n": 3}, {"t": 1, "n": 1}, {"t": 33, "n": 2}),
    "lookup": ({"nodes": 19, "e": 40}, {"nodes": 1, "e": 3}, {"nodes": 6, "e": 0}),
    "halves": ({"n": 5}, {"n": 1}, {"n": 64}),
    "reductions": ({"n": 3, "s": 17}, {"n": 1, "s": 1}, {"n": 2, "s": 130}),
}
"""Sizes that each is looked at with: odd ones, those of one element, none where that is legal, larger ones."""


def value(name: str, kind: int, *shape: int | str) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


class _Nodes:
    """Nodes and random weights of one model."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.weights: list[TensorProto] = []
        self.generator = np.random.default_rng(0)

    def __call__(self, op: str, *inputs: str, to: str = "", **attributes: object) -> str:
        name = to or f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=f"node_{name}", **attributes))
        return name

    def constant(self, array: object) -> str:
        self.weights.append(numpy_helper.from_array(np.asarray(array), f"w{len(self.weights)}"))
        return self.weights[-1].name

    def weight(self, *shape: int) -> str:
        return self.constant((self.generator.standard_normal(shape) / 3).astype(np.float32))


def _recurrence(w: _Nodes) -> list[ValueInfoProto]:
    """A bidirectional GRU and what is made of its states; [t, n, 5] to [t, n, 4]."""
    w.nodes.append(
        helper.make_node(
            "GRU",
            ["x", w.weight(2, 18, 5), w.weight(2, 18, 6), w.weight(2, 36)],
            ["h"],
            name="gru",
            hidden_size=6,
            direction="bidirectional",
            linear_before_reset=1,
        )
    )
    joined = w("Reshape", w("Transpose", "h", perm=[0, 2, 1, 3]), w.constant(np.array([0, 0, -1])))
    w("Softmax", w("MatMul", joined, w.weight(12, 4)), to="y")
    return [value("x", FLOAT, "t", "n", 5), value("y", FLOAT, "t", "n", 4)]


def _lookup(w: _Nodes) -> list[ValueInfoProto]:
    """Messages along edges: differences of the rows of two ends, which an input names."""
    first, second = (w.constant(np.int64(row)) for row in (0, 1))
    ends = [w("Gather", "x", w("Gather", "edges", row, axis=0), axis=0) for row in (first, second)]
    w("Tanh", w("MatMul", w("Sub", *ends), w.weight(5, 3)), to="y")
    return [value("x", FLOAT, "nodes", 5), value("edges", INT64, 2, "e"), value("y", FLOAT, "e", 3)]


def _halves(w: _Nodes) -> list[ValueInfoProto]:
    """Quotients of halves, moved, and their sines, which hang on whether the quotients are rounded."""
    quotients = w("Concat", w("Div", "a", "b"), "b", axis=1)
    w("Sin", w("Slice", quotients, *(w.constant(np.array([n])) for n in (0, 34, 1))), to="y")
    return [value("a", HALF, "n", 34), value("b", HALF, "n", 34), value("y", HALF, "n", 34)]


def _reductions(w: _Nodes) -> list[ValueInfoProto]:
    """Attention over an open length, and the mean over it."""
    scores = w("MatMul", "x", w("Transpose", "x", perm=[0, 2, 1]))
    mixed = w("MatMul", w("Softmax", scores, axis=-1), "x")
    w("ReduceMean", mixed, w.constant(np.array([1])), keepdims=0, to="y")
    return [value("x", FLOAT, "n", "s", 6), value("y", FLOAT, "n", 6)]


BUILDERS: Mapping[str, Callable[[_Nodes], list[ValueInfoProto]]] = {
    "recurrence": _recurrence,
    "lookup": _lookup,
    "halves": _halves,
    "reductions": _reductions,
}


def open_model(name: str, folder: Path) -> Path:
    """The ONNX file of a model; its output is `y`."""
    w = _Nodes()
    *inputs, output = BUILDERS[name](w)
    graph = helper.make_graph(w.nodes, name, inputs, [output], w.weights)
    path = folder / f"{name}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), str(path))
    return path
