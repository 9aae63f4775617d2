"""A case: a model of one kernel or of many, what PyTorch computes for it, and random values for its tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper, parser

from tests.gpu_zoo.halves import as_halves
from tilec import zoo
from tilec.importer.quantise import quantise
from tilec.ir.formats import parse_format

Torch = Callable[[Any, SimpleNamespace], Any]
"""(the module torch, inputs and weights by name) -> the output."""


@dataclass(frozen=True)
class Case:
    """A model as ONNX's text, `T[` standing for its type, with normal random weights (name -> shape) and `fixed` ones;
    or a model of the zoo. `reference` computes its output in the type that its operands have, `peer` is timed beside
    it and told by `note`. `recipe` is what the command line is told, and `form` the format of its weight."""

    name: str
    family: str
    ttype: str
    graph: str = ""
    weights: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    fixed: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    reference: Torch | None = None
    peer: Torch | None = None
    note: str = ""
    zoo: str = ""
    recipe: str = ""
    form: str = ""

    @property
    def elements(self) -> int:
        """Elements of its weights, of a model of the zoo about."""
        return 1 << 27 if self.zoo else sum(map(prod, self.weights.values()))

    def model(self) -> onnx.ModelProto:
        """The model with its weights, the same bytes whenever it is built."""
        if self.zoo:
            built = zoo.build(self.zoo)
            return as_halves(built, TensorProto.FLOAT16) if self.ttype == "f16" else built
        graph = parser.parse_graph(f"g {self.graph}".replace("T[", f"{_ONNX[self.ttype]}["))
        graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in self.constants().items())
        opsets = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=11)

    def constants(self) -> dict[str, NDArray[Any]]:
        """The weights: products with them are about as large as their other operand."""
        random = np.random.default_rng(1)
        drawn = {name: _normal(random, shape, _NUMPY[self.ttype]) for name, shape in self.weights.items()}
        return drawn | {**self.fixed}

    def operands(self) -> dict[str, NDArray[Any]]:
        """The weights as the compiled model has them."""
        constants = self.constants()
        if self.form:
            constants["w"] = quantise(constants["w"], parse_format(self.form), 0).numbers.astype(np.float16)
        return constants


_ONNX = {"f16": "float16", "f32": "float", "i8": "int8"}

_NUMPY = {"f16": np.float16, "f32": np.float32}


def _normal(random: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    summed = prod(shape[1:]) if len(shape) == 4 else shape[0] if len(shape) == 2 else 1
    return (random.standard_normal(shape, np.float32) / np.float32(summed**0.5)).astype(dtype)


def feeds_of(model: onnx.ModelProto, seed: int) -> dict[str, NDArray[Any]]:
    """Random inputs of a model whose sizes are known."""
    random = np.random.default_rng(seed)
    feeds: dict[str, NDArray[Any]] = {}
    for port in model.graph.input:
        dtype = helper.tensor_dtype_to_np_dtype(port.type.tensor_type.elem_type)
        shape = [dim.dim_value for dim in port.type.tensor_type.shape.dim]
        if dtype == np.int8:
            feeds[port.name] = random.integers(-100, 100, shape, dtype)
        elif np.issubdtype(dtype, np.integer):
            feeds[port.name] = random.integers(0, _rows(model, port.name), shape, dtype)
        else:
            feeds[port.name] = random.standard_normal(shape, np.float32).astype(dtype)
    return feeds


def _rows(model: onnx.ModelProto, indices: str) -> int:
    """The rows of the smallest table that an input chooses from."""
    tables = {each.name: each.dims[0] for each in model.graph.initializer if each.dims}
    read = [node.input[0] for node in model.graph.node if node.op_type == "Gather" and node.input[1] == indices]
    return min((tables[name] for name in read if name in tables), default=2)
