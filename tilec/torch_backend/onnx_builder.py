"""An ONNX graph as it grows: nodes, constants, inputs and outputs, with names of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike, NDArray
from onnx import helper, numpy_helper

OPSET = 21
"""The opset of translated graphs: the first with integers of 4 bits."""

LATER = {"CumProd": 26}
"""Operators that came after it, and the opset of graphs with them."""

IR_VERSION = 10


class OnnxBuilder:
    """Nodes in topological order. Values are names; equal small constants are stored once.

    `origins` maps the nodes emitted to the `origin` that they were emitted for; `taken` are names that inputs have.
    """

    def __init__(self) -> None:
        self.origin = ""
        self.origins: dict[str, str] = {}
        self.taken: set[str] = set()
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []
        self._nodes: list[onnx.NodeProto] = []
        self._initializers: list[onnx.TensorProto] = []
        self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._count = 0

    def emit(self, op: str, *inputs: str, **attributes: Any) -> str:
        """A node with one output; an empty name is an absent input, an attribute of None is left out."""
        return self.emit_several(op, 1, *inputs, **attributes)[0]

    def emit_several(self, op: str, results: int, *inputs: str, **attributes: Any) -> list[str]:
        """A node with this number of outputs."""
        names = [self._name(op.lower()) for _ in range(results)]
        given = {name: value for name, value in attributes.items() if value is not None}
        self.origins[names[0]] = self.origin
        self._nodes.append(helper.make_node(op, list(inputs), names, name=names[0], **given))
        return names

    def constant(self, value: ArrayLike, dtype: Any) -> str:
        """A small constant."""
        array: NDArray[Any] = np.asarray(value, dtype)
        key = (str(array.dtype), array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = self.weight(array, self._name("constant"))
        return self._constants[key]

    def integers(self, values: Sequence[int]) -> str:
        """A vector of integers: axes, permutations, shapes."""
        return self.constant(list(values), np.int64)

    def weight(self, array: NDArray[Any], name: str) -> str:
        """A constant under a name of its own."""
        self._initializers.append(numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name))
        return name

    def model(self, name: str) -> onnx.ModelProto:
        """The model with everything emitted so far."""
        graph = helper.make_graph(self._nodes, name, self.inputs, self.outputs, self._initializers)
        opset = max([OPSET, *(LATER.get(node.op_type, 0) for node in self._nodes)])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=IR_VERSION)

    def _name(self, stem: str) -> str:
        while True:
            self._count += 1
            name = f"{stem}_{self._count}"
            if name not in self.taken:
                return name
