"""A model that is written down node by node."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

BEGIN, END = -(1 << 63), (1 << 63) - 1
"""What exporters write for a slice from the beginning, and to the end."""

CLASSICAL = "ai.onnx.ml"
"""The domain of operators of classical learning."""


class Sketch:
    """Nodes, weights, inputs and outputs so far; names of tensors are numbered."""

    def __init__(self, opset: int = 17) -> None:
        self.opset = opset
        self.nodes: list[NodeProto] = []
        self.weights: list[TensorProto] = []
        self.inputs: list[ValueInfoProto] = []
        self.outputs: list[ValueInfoProto] = []
        self._random = np.random.default_rng(opset)

    def input(self, name: str, dtype: Any, *shape: int | str) -> str:
        """An input; text in `shape` is an open size."""
        self.inputs.append(_port(name, dtype, shape))
        return name

    def output(self, tensor: str, name: str, dtype: Any, *shape: int | str) -> None:
        """Give a tensor the name of an output."""
        self.nodes.append(helper.make_node("Identity", [tensor], [name]))
        self.outputs.append(_port(name, dtype, shape))

    def weight(self, *shape: int, dtype: Any = np.float32, scale: float | None = None) -> str:
        """Random numbers, by default such that a product with them keeps the size of what it is given."""
        fan = int(np.prod(shape[1:])) if len(shape) > 2 else shape[0]
        drawn = self._random.standard_normal(shape) * (fan**-0.5 if scale is None else scale)
        return self.const(drawn.astype(dtype))

    def const(self, values: Any, dtype: Any = None) -> str:
        """A constant; integers are of 64 bits and other numbers of 32, unless said."""
        array = np.asarray(values, dtype)
        if dtype is None and not isinstance(values, np.ndarray | np.generic):
            array = array.astype({"f": np.float32, "i": np.int64, "b": np.bool_}[array.dtype.kind])
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def op(self, kind: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add a node with one output, and return its name."""
        return self.ops(kind, 1, *inputs, domain=domain, **attributes)[0]

    def ops(self, kind: str, outputs: int, *inputs: str, domain: str = "", **attributes: Any) -> list[str]:
        """Add a node, and return the names of its outputs."""
        names = [f"t{len(self.nodes)}_{number}" for number in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, domain=domain, **attributes))
        return names

    # what many of them have in common

    def linear(self, x: str, given: int, made: int) -> str:
        return self.op("Add", self.op("MatMul", x, self.weight(given, made)), self.weight(made))

    def conv(self, x: str, given: int, made: int, *kernel: int, **attributes: Any) -> str:
        group = attributes.get("group", 1)
        return self.op("Conv", x, self.weight(made, given // group, *kernel), self.weight(made), **attributes)

    def slice(self, x: str, begin: str | int, end: str | int, axis: int, step: int = 1) -> str:
        ends = [each if isinstance(each, str) else self.const([each]) for each in (begin, end)]
        return self.op("Slice", x, *ends, self.const([axis]), self.const([step]))

    def reshape(self, x: str, *sizes: str | int, **attributes: Any) -> str:
        """Sizes are numbers, or tensors of one element."""
        parts = [each if isinstance(each, str) else self.const([each]) for each in sizes]
        return self.op("Reshape", x, self.op("Concat", *parts, axis=0), **attributes)

    def size(self, x: str, axis: int) -> str:
        """A size of a tensor as a tensor of one element, as PyTorch writes it: Shape, Gather, Unsqueeze."""
        gathered = self.op("Gather", self.op("Shape", x), self.const(axis), axis=0)
        return self.op("Unsqueeze", gathered, self.const([0]))

    def zeros(self, *sizes: str | int) -> str:
        parts = [each if isinstance(each, str) else self.const([each]) for each in sizes]
        return self.op("ConstantOfShape", self.op("Concat", *parts, axis=0))

    def gelu(self, x: str) -> str:
        erf = self.op("Erf", self.op("Div", x, self.const(2**0.5)))
        return self.op("Mul", self.op("Mul", x, self.op("Add", erf, self.const(1.0))), self.const(0.5))

    def subgraph(self, nodes: Sequence[NodeProto], inputs: Sequence[Any], outputs: Sequence[Any]) -> onnx.GraphProto:
        return helper.make_graph(nodes, "body", [_port(*each) for each in inputs], [_port(*each) for each in outputs])

    def save(self, path: Path) -> Path:
        graph = helper.make_graph(self.nodes, path.stem, self.inputs, self.outputs, self.weights)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid(CLASSICAL, 3)]
        path.write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())
        return path


def _port(name: str, dtype: Any, shape: Sequence[int | str] | None) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
