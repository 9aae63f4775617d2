"""Models of a kind and a number, which show how compile time grows: `equal-1000`, `distinct-300`, `chain-20000`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROWS = 32
"""Rows of the input, and widths of layers that are equal."""


def is_growing(name: str) -> bool:
    """Whether a name is that of such a model."""
    kind, _, count = name.partition("-")
    return kind in KINDS and count.isdigit()


def write_growing(name: str, path: Path) -> None:
    """Write the model of a name."""
    kind, _, count = name.partition("-")
    nodes, weights = KINDS[kind](int(count))
    port = helper.make_tensor_value_info("x", TensorProto.FLOAT, [ROWS, ROWS])
    width = next((array.shape[-1] for array in reversed(weights.values())), ROWS)
    result = helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, [ROWS, width])
    constants = [numpy_helper.from_array(array, weight) for weight, array in weights.items()]
    graph = helper.make_graph(nodes, name, [port], [result], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)


Parts = tuple[list[onnx.NodeProto], dict[str, Any]]


def _layers(widths: Iterator[int]) -> Parts:
    """Dense layers of these widths with ReLU, three nodes each."""
    draw, nodes, weights, before, width = np.random.default_rng(0), [], {}, "x", ROWS
    for number, wider in enumerate(widths):
        weights |= {
            f"w{number}": (draw.normal(size=(width, wider)) / width**0.5).astype(np.float32),
            f"b{number}": draw.normal(size=wider).astype(np.float32),
        }
        nodes += [
            helper.make_node("MatMul", [before, f"w{number}"], [f"m{number}"]),
            helper.make_node("Add", [f"m{number}", f"b{number}"], [f"a{number}"]),
            helper.make_node("Relu", [f"a{number}"], [f"r{number}"]),
        ]
        before, width = f"r{number}", wider
    return nodes, weights


def _chain(count: int) -> Parts:
    """Elementwise nodes, one after the other."""
    operators = ("Sin", "Relu", "Tanh", "Abs", "Neg")
    names = ["x", *(f"y{number}" for number in range(count))]
    return [helper.make_node(operators[i % 5], [names[i]], [names[i + 1]]) for i in range(count)], {}


KINDS: Mapping[str, Callable[[int], Parts]] = {
    "equal": lambda count: _layers(iter([ROWS] * count)),
    "distinct": lambda count: _layers(iter(range(ROWS, ROWS + count))),
    "chain": _chain,
}
"""Layers of one shape, layers of shapes of their own, and elementwise nodes."""
