"""From an FX graph of core ATen operators to an ONNX model (A02).

Every symbol of PyTorch is the extent of an input: it is read off its shape, and sizes are arithmetic on such scalars,
so that one model holds all sizes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from typing import Any, TypeVar

import numpy as np
import onnx
import torch
from onnx import helper
from torch import fx

from tilec.torch_backend import complex_parts
from tilec.torch_backend.arrays import array_of
from tilec.torch_backend.few_bits import in_few_bits
from tilec.torch_backend.onnx_builder import OnnxBuilder
from tilec.torch_backend.values import ONNX_TYPES, Number, Size, Tensor


class UntranslatableError(Exception):
    """A graph, or the `node` of it, that has no translation."""

    def __init__(self, reason: str, node: str | None = None) -> None:
        super().__init__(reason)
        self.node = node


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of a translated graph: its name in ONNX, and its position among the arguments or results.
    A `size` is a Python integer for PyTorch."""

    name: str
    position: int
    size: bool = False


@dataclass(frozen=True)
class Translated:
    """The ONNX model of an FX graph. `outputs` are the results that it computes; a result that stands at several
    positions is one output of the model. Those at other positions of the `results` are None. `origins` maps nodes of
    the model to those of the graph that they come from."""

    model: onnx.ModelProto
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    results: int
    origins: Mapping[str, str]

    @cached_property
    def outputs_at(self) -> list[int | None]:
        """For every position of the results the number of the model's output, None where there is none."""
        numbers = {name: number for number, name in enumerate(dict.fromkeys(port.name for port in self.outputs))}
        names = {port.position: port.name for port in self.outputs}
        return [numbers[names[position]] if position in names else None for position in range(self.results)]

    def inputs_at(self, positions: Sequence[int]) -> list[int]:
        """The numbers of the inputs that are the arguments at these positions, up to the first one that is none."""
        numbers = {port.position: number for number, port in enumerate(self.inputs)}
        return [numbers[position] for position in takewhile(numbers.__contains__, positions)]

    def placed(self, outputs: Sequence[torch.Tensor]) -> list[Any]:
        """The results that consist of these outputs of the model."""
        results: list[Any] = [None if number is None else outputs[number] for number in self.outputs_at]
        for port in self.outputs:
            if port.size:
                results[port.position] = int(results[port.position])
        return results


@dataclass
class Translation:
    """A graph while it is translated."""

    onnx: OnnxBuilder = field(default_factory=OnnxBuilder)
    known: dict[fx.Node, Any] = field(default_factory=dict)
    symbols: dict[str, Size] = field(default_factory=dict)

    def emit(self, op: str, *inputs: str, **attributes: Any) -> str:
        """One ONNX node with one output."""
        return self.onnx.emit(op, *inputs, **attributes)

    def cast(self, value: Tensor, dtype: torch.dtype) -> str:
        """A tensor as another type of elements."""
        return value.name if value.dtype == dtype else self.emit("Cast", value.name, to=ONNX_TYPES[dtype])

    def operand(self, value: Tensor | Number, dtype: torch.dtype) -> str:
        """A tensor, a number or a size as an operand of this type."""
        match value:
            case Tensor():
                return self.cast(value, dtype)
            case Size(name, made):
                return name if dtype == made else self.emit("Cast", name, to=ONNX_TYPES[dtype])
            case _:
                return self.literal(value, dtype)

    def literal(self, value: float, dtype: torch.dtype) -> str:
        """A number as a scalar constant, rounded as PyTorch rounds it."""
        array = torch.tensor(value, dtype=dtype)
        if dtype == torch.bfloat16:
            return self.emit("Cast", self.onnx.constant(array.float().item(), np.float32), to=ONNX_TYPES[dtype])
        return self.onnx.constant(array.numpy(), array.numpy().dtype)

    def shape(self, sizes: Sequence[int | Size]) -> str:
        """Extents as a vector of int64."""
        if all(isinstance(size, int) for size in sizes):
            return self.onnx.integers([size for size in sizes if isinstance(size, int)])
        axis = self.onnx.integers([0])
        parts = [
            self.emit("Unsqueeze", size.name, axis) if isinstance(size, Size) else self.onnx.integers([size])
            for size in sizes
        ]
        return self.emit("Concat", *parts, axis=0)

    def integer(self, value: int | Size) -> str:
        """One integer as a vector of one element."""
        return self.shape([value])

    def extent(self, value: Tensor, dim: int) -> int | Size:
        """The extent of a dimension."""
        size = value.shape[dim]
        if isinstance(size, int):
            return size
        return self.size_of(size, value, dim)

    def size_of(self, size: torch.SymInt, value: Tensor, dim: int) -> Size:
        """A symbolic extent, read off the shape of the tensor that has it."""
        text = str(size)
        if text not in self.symbols:
            whole = self.emit("Shape", value.name)
            self.symbols[text] = Size(self.emit("Gather", whole, self.onnx.constant(dim, np.int64), axis=0))
        return self.symbols[text]

    def extents(self, value: Tensor) -> list[int | Size]:
        """All extents of a tensor."""
        return [self.extent(value, dim) for dim in range(value.rank)]


Operator = Callable[..., Any]
F = TypeVar("F", bound=Operator)
"""Translates a call: takes the translation, the FX node and its arguments; returns the name of an ONNX value, or a
list of names (None: not made) of an operator with several results."""

TRANSFORMS = (*complex_parts.TRANSFORMS, torch.ops.aten.view_as_real.default, torch.ops.aten.view_as_complex.default)
"""Operators on complex tensors, which are real ones with a last dimension of two in ONNX."""

OPERATORS: dict[Any, Operator] = {}
"""Operator (an overload, or its name where a package has it that need not be there) or Python function on sizes -> its
translation."""


def translates(*targets: Any) -> Callable[[F], F]:
    """Register the translation of operators."""

    def register(function: F) -> F:
        OPERATORS.update(dict.fromkeys(targets, function))
        return function

    return register


def refused_operators(module: fx.GraphModule) -> dict[str, str]:
    """The calls of a graph that have no translation with the arguments that they have, and why, by name.

    The graph is translated with a made-up result in the place of what has no translation, so that one such call says
    nothing of those that follow. Parameters are inputs: their values are not looked at.
    """
    t, refused = Translation(), dict[str, str]()
    for node in module.graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            t.known[node] = _stand_in(t, node.name, node.meta.get("val", getattr(module, str(node.target), None)))
        elif node.op == "call_function":
            try:
                t.known[node] = _call(t, node)
            except UntranslatableError as error:
                refused[node.name] = str(error)
                t.known[node] = _stand_in(t, node.name, node.meta.get("val"))
    complex_parts.transforms_alone([node for node in module.graph.nodes if node.op == "call_function"], refused)
    return refused


def _stand_in(t: Translation, name: str, value: Any) -> Any:
    """What a value is known as that something else makes."""
    if isinstance(value, torch.Tensor):
        return Tensor(name, tuple(value.shape), value.dtype)
    if isinstance(value, torch.SymInt):
        return t.symbols.setdefault(str(value), Size(name))
    if isinstance(value, torch.SymFloat):
        return Size(name, torch.float64)
    if isinstance(value, tuple | list):
        return [_stand_in(t, name, each) for each in value]
    return value


def translate(module: fx.GraphModule, constants: Mapping[int, torch.Tensor], name: str) -> Translated:
    """The ONNX model of a graph; `constants` are the arguments, by position, whose values are part of the model.

    Raises UntranslatableError that names the node.
    """
    t, inputs = Translation(), list[Port]()
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    t.onnx.taken.update(node.name for node in module.graph.nodes)
    for position, node in enumerate(placeholders):
        if position in constants:
            t.known[node] = _weight(t, node.name, constants[position])
        elif isinstance(node.meta.get("val"), torch.Tensor):
            t.known[node] = _input(t, node)
            inputs.append(Port(node.name, position))
    for node in placeholders:
        if node not in t.known and node.users:
            t.known[node] = _symbol(t, node, [t.known[n] for n in placeholders if isinstance(t.known.get(n), Tensor)])
    outputs: list[Port] = []
    for node in module.graph.nodes:
        match node.op:
            case "get_attr":
                t.known[node] = _weight(t, node.name, getattr(module, str(node.target)))
            case "call_function":
                t.known[node] = _call(t, node)
            case "output":
                results = node.args[0] if isinstance(node.args[0], tuple | list) else (node.args[0],)
                outputs = list(_outputs(t, results))
                return Translated(t.onnx.model(name), tuple(inputs), tuple(outputs), len(results), t.onnx.origins)
    raise UntranslatableError("the graph has no output")


def _input(t: Translation, node: fx.Node) -> Tensor:
    value = node.meta["val"]
    if value.dtype not in ONNX_TYPES:
        raise UntranslatableError(f"{node.name} has elements of {value.dtype}")
    dims = [size if isinstance(size, int) else _dimension(size) for size in value.shape]
    t.onnx.inputs.append(helper.make_tensor_value_info(node.name, ONNX_TYPES[value.dtype], dims))
    tensor = Tensor(node.name, tuple(value.shape), value.dtype)
    for dim, size in enumerate(value.shape):
        if not isinstance(size, int) and size.node.expr.is_symbol:
            t.size_of(size, tensor, dim)
    return tensor


def _dimension(size: torch.SymInt) -> str | None:
    """The name of a dimension that is one symbol; other ones are left open."""
    return str(size) if size.node.expr.is_symbol else None


def _symbol(t: Translation, node: fx.Node, inputs: Sequence[Tensor]) -> Size | int:
    """The value of a size that is an argument: an extent of an input, or one of its factors."""
    value = node.meta.get("val")
    if isinstance(value, int):
        return value
    if isinstance(value, torch.SymInt):
        if str(value) in t.symbols:
            return t.symbols[str(value)]
        for tensor in inputs:
            for dim, extent in enumerate(tensor.shape):
                factor = None if isinstance(extent, int) else extent.node.expr / value.node.expr
                if factor is not None and factor.is_Integer:
                    whole = t.size_of(extent, tensor, dim)
                    t.symbols[str(value)] = Size(t.emit("Div", whole.name, t.onnx.constant(int(factor), np.int64)))
                    return t.symbols[str(value)]
    raise UntranslatableError(f"{node.name} ({value}) is no extent of an input")


def _weight(t: Translation, name: str, tensor: torch.Tensor) -> Tensor:
    value = tensor.detach()
    if value.dtype not in ONNX_TYPES:
        raise UntranslatableError(f"{name} has elements of {value.dtype}")
    array = array_of(value)
    if (few := in_few_bits(array)) is not None:
        made = t.emit("Cast", t.onnx.weight(few, name), to=ONNX_TYPES[value.dtype])
        return Tensor(made, tuple(value.shape), value.dtype)
    return Tensor(t.onnx.weight(array, name), tuple(value.shape), value.dtype)


def _call(t: Translation, node: fx.Node) -> Any:
    """What a call makes. Raises UntranslatableError that names the node: whatever a translation raises is a call that
    it does not know."""
    if node.target is operator.getitem:
        source, index = node.args
        return t.known[source][index]
    function = OPERATORS.get(node.target) or OPERATORS.get(str(node.target))
    if function is None:
        raise UntranslatableError("it has no translation", node.name)
    t.onnx.origin = node.name
    try:
        for value in (node.meta.get("val"), *(each.meta.get("val") for each in node.all_input_nodes)):
            _require_types(value, node.target in TRANSFORMS)
        args, kwargs = _known(t, node.args), {name: _known(t, value) for name, value in node.kwargs.items()}
        return _result(function(t, node, *args, **kwargs), node.meta.get("val"))
    except UntranslatableError as error:
        raise UntranslatableError(str(error), node.name) from error
    except Exception as error:
        reason = f"its arguments are not translated ({type(error).__name__}: {error})"
        raise UntranslatableError(reason, node.name) from error


def _require_types(value: Any, transform: bool) -> None:
    """Raise UntranslatableError for tensors that ONNX has not; it has complex ones for a `transform`."""
    for each in value if isinstance(value, tuple | list) else (value,):
        if transform and isinstance(each, torch.Tensor) and each.dtype == torch.complex64:
            continue
        if isinstance(each, torch.Tensor) and (each.dtype not in ONNX_TYPES or each.layout != torch.strided):
            raise UntranslatableError(f"it takes or makes elements of {each.dtype}, {each.layout}")
        if isinstance(each, torch.SymBool):
            raise UntranslatableError("it takes or makes a truth value that varies")


def _known(t: Translation, value: Any) -> Any:
    if isinstance(value, fx.Node):
        return t.known[value]
    if isinstance(value, tuple | list):
        return [_known(t, each) for each in value]
    return value


def _result(made: Any, value: Any) -> Any:
    """What a call made, with the shapes and types that PyTorch says."""
    if isinstance(value, torch.Tensor):
        return Tensor(made, tuple(value.shape), value.dtype)
    if isinstance(value, tuple | list):
        pairs = zip(made, value, strict=False)
        return [None if name is None else _result(name, each) for name, each in pairs]
    return made if isinstance(made, int | float | Size) else Size(made)


def _outputs(t: Translation, results: Sequence[Any]) -> Sequence[Port]:
    ports: list[Port] = []
    first: dict[fx.Node, Port] = {}
    for position, node in enumerate(results):
        if node in first:
            ports.append(replace(first[node], position=position))
            continue
        value = t.known.get(node) if isinstance(node, fx.Node) else node
        if value is None:
            continue
        if isinstance(value, Size) and value.dtype != torch.int64:
            raise UntranslatableError("a fraction that varies is a result", node.name)
        if isinstance(value, int):
            value = Size(t.onnx.constant(value, np.int64))
        name = t.emit("Identity", value.name)
        code = ONNX_TYPES[value.dtype] if isinstance(value, Tensor) else ONNX_TYPES[torch.int64]
        dims = [s if isinstance(s, int) else None for s in value.shape] if isinstance(value, Tensor) else []
        t.onnx.outputs.append(helper.make_tensor_value_info(name, code, dims))
        ports.append(Port(name, position, isinstance(value, Size)))
        if isinstance(node, fx.Node):
            first[node] = ports[-1]
    return ports
