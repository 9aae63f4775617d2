"""One ONNX graph under construction: nodes, weights and constants, written as one of two exporters would."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from tilec.zoo import weights
from tilec.zoo.forms import Dim, Form

DECOMPOSED_OPSET = 13


class GraphBuilder:
    """Collects the nodes, weights, inputs and outputs of one model.

    `form` "fused" keeps constants as initializers; "decomposed" writes them as Constant nodes and is always of
    opset 13. Nodes and the tensors they make are named after the scopes that they stand in.
    """

    def __init__(self, name: str, form: Form, seed: int, opset: int) -> None:
        self.name = name
        self.fused = form == "fused"
        self.seed = seed
        self.opset = opset if self.fused else DECOMPOSED_OPSET
        self._nodes: list[NodeProto] = []
        self._inputs: list[ValueInfoProto] = []
        self._outputs: list[ValueInfoProto] = []
        self._initializers: dict[str, NDArray[Any]] = {}
        self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._public_names: dict[str, str] = {}
        self._scopes: list[str] = []
        self._uses: dict[str, int] = {}

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Nodes and weights made inside carry `name` in their path."""
        self._scopes.append(name)
        try:
            yield
        finally:
            self._scopes.pop()

    def input(self, name: str, dims: Sequence[Dim], element_type: int = TensorProto.FLOAT) -> str:
        """A graph input; symbols in `dims` become dim_params."""
        self._inputs.append(helper.make_tensor_value_info(name, element_type, list(dims)))
        return name

    def output(self, tensor: str, name: str, dims: Sequence[Dim]) -> None:
        """Publish `tensor` as the float32 graph output `name`."""
        self._outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, list(dims)))
        self._public_names[tensor] = name

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output and return that output's name."""
        return self.nodes(op, inputs, 1, **attributes)[0]

    def nodes(self, op: str, inputs: Sequence[str], outputs: int, **attributes: Any) -> tuple[str, ...]:
        """Add a node with several outputs and return their names."""
        name = self._unique("/" + "/".join([*self._scopes, op]))
        names = tuple(f"{name}_output_{index}" for index in range(outputs))
        self._nodes.append(helper.make_node(op, inputs, names, name=name, **attributes))
        return names

    def constant(self, value: NDArray[Any]) -> str:
        """A small constant: an initializer shared by equal values, or a Constant node for every use."""
        if not self.fused:
            return self.node("Constant", value=numpy_helper.from_array(value))
        key = (value.dtype.str, value.shape, value.tobytes())
        if key not in self._constants:
            self._constants[key] = self.initializer(f"constant_{len(self._constants)}", value)
        return self._constants[key]

    def number(self, value: float) -> str:
        """A float32 scalar."""
        return self.constant(np.array(value, np.float32))

    def index(self, value: int) -> str:
        """An int64 scalar."""
        return self.constant(np.array(value, np.int64))

    def indices(self, *values: int) -> str:
        """An int64 vector."""
        return self.constant(np.array(values, np.int64))

    def initializer(self, name: str, value: NDArray[Any]) -> str:
        """Store `value` under exactly this name."""
        self._initializers[name] = value
        return name

    def parameter(self, name: str, value: NDArray[Any]) -> str:
        """Store a weight under its path, as `encoder.layer.0.attention.weight`."""
        return self.initializer(self.path(name), value)

    def draw(self, name: str, shape: Sequence[int], spread: float, center: float = 0.0) -> NDArray[np.float32]:
        """The values of the weight `name` of this scope, uniform in center +- spread."""
        return weights.uniform(self.seed, self.path(name), shape, spread, center)

    def vector(self, name: str, shape: Sequence[int], spread: float, center: float = 0.0) -> str:
        """Draw and store a bias, a scale or another small weight."""
        return self.parameter(name, self.draw(name, shape, spread, center))

    def path(self, name: str) -> str:
        """The full name of the weight `name` of this scope."""
        return ".".join([*self._scopes, name])

    def finish(self) -> ModelProto:
        """The model. The builder gives its weights away and is empty afterwards."""
        for node in self._nodes:
            node.input[:] = [self._public_names.get(tensor, tensor) for tensor in node.input]
            node.output[:] = [self._public_names.get(tensor, tensor) for tensor in node.output]
        opsets = [helper.make_opsetid("", self.opset)]
        model = helper.make_model(
            helper.make_graph(self._nodes, self.name, self._inputs, self._outputs),
            opset_imports=opsets,
            ir_version=helper.find_min_ir_version_for(opsets),
            producer_name="tilec.zoo",
        )
        for name in list(self._initializers):
            value = self._initializers.pop(name)
            model.graph.initializer.add(
                name=name,
                dims=value.shape,
                data_type=helper.np_dtype_to_tensor_dtype(value.dtype),
                raw_data=value.tobytes(),
            )
        return model

    def _unique(self, name: str) -> str:
        count = self._uses.get(name, 0)
        self._uses[name] = count + 1
        return f"{name}_{count}" if count else name
