"""Inputs of a model: types, and symbols for the extents that are not fixed (BladeDISC, shape constraints)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tilec.errors import ConfigError, UnsupportedError, UsageError, did_you_mean
from tilec.importer.element_types import ELEMENT_TYPES, LEFT_TO_ONNXRUNTIME, element_type_name
from tilec.importer.names import Names, identifier
from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Const, Expr, Var, constant_value, substitute, variables, walk
from tilec.ir.text import parse_expr
from tilec.ir.types import MAX_SIZE, element_bytes


@dataclass(frozen=True, slots=True)
class InputPort:
    """An input of the model: its name there, shape and tType."""

    name: str
    shape: tuple[Expr, ...]
    ttype: str


NO_NAMES = frozenset({"none", "null", "nil"})
"""Words that exporters write for an extent without a name."""


def names_extent(param: str) -> bool:
    """Whether a dim_param names an extent. One without a letter (`?`, `-1`, `*`) and a word for nothing do not: extents
    that have it in common need not be equal."""
    return any(letter.isalpha() for letter in param) and param.strip().lower() not in NO_NAMES


def readable(info: Any) -> bool:
    """Whether tensor expressions can read an input: a tensor of known rank and of a type with a tType."""
    tensor = info.type.tensor_type
    return (
        info.type.WhichOneof("value") == "tensor_type"
        and tensor.elem_type in ELEMENT_TYPES
        and tensor.HasField("shape")
    )


def require_types(infos: Iterable[Any], file: str) -> None:
    """Raise ConfigError for an input of the model without a complete type, which ONNX requires."""
    for info in infos:
        problem = _type_problem(info.type)
        if problem is not None:
            hint = "The model is invalid: give the input a type in `graph.input`, or export it again."
            raise ConfigError(f"the input has {problem}", f"{file}: input {info.name!r}", hint)


def _type_problem(proto: Any) -> str | None:
    """The part that an ONNX type lacks; None for a complete one."""
    kind = proto.WhichOneof("value")
    if kind is None:
        return "no type"
    if kind in ("sequence_type", "optional_type"):
        return _type_problem(getattr(proto, kind).elem_type)
    if kind == "map_type":
        return _element_problem(proto.map_type.key_type) or _type_problem(proto.map_type.value_type)
    return _element_problem(getattr(proto, kind).elem_type) if kind in ("tensor_type", "sparse_tensor_type") else None


def _element_problem(code: int) -> str | None:
    import onnx

    if code == onnx.TensorProto.UNDEFINED:
        return "no element type"
    known = code in onnx.TensorProto.DataType.values()
    return None if known else f"the element type {code}, which ONNX {onnx.__version__} does not define"


def input_ports(
    infos: Sequence[Any], sizes: Mapping[str, int], file: str
) -> tuple[tuple[InputPort, ...], tuple[str, ...]]:
    """The inputs and the remaining symbols, in order of first appearance; `sizes` binds symbols beforehand.

    A dim_param is a symbol; one like `past + 1`, of names that are dim_params themselves, is an expression of them; an
    extent without a name (`names_extent`) gets a symbol of its own. Raises UnsupportedError for inputs that are not
    tensors of known rank and UsageError for a size of a symbol that the model does not have.
    """
    symbols = _Symbols(infos)
    ports = [_port(info, symbols, file) for info in infos]
    names = symbols.order
    for symbol, size in sizes.items():
        if symbol not in names:
            near = did_you_mean(symbol, names)
            fix = f"Its symbols: {', '.join(names)}." if names else "All of its sizes are fixed: leave it out."
            message = f"the model has no symbol {symbol!r}"
            raise UsageError(message, f"--shape {symbol}={size}", f"Did you mean {near!r}?" if near else fix)
        if size < 0:
            raise UsageError(
                f"a size cannot be negative: {symbol}={size}", f"--shape {symbol}={size}", "Name 0 or more."
            )
    values: dict[str, Expr] = {symbol: Const(size) for symbol, size in sizes.items()}
    fixed = tuple(InputPort(p.name, tuple(simplify(substitute(e, values)) for e in p.shape), p.ttype) for p in ports)
    return fixed, tuple(s for s in names if s not in sizes)


class _Symbols:
    """dim_param -> expression of symbols."""

    def __init__(self, infos: Sequence[Any]) -> None:
        params = [d.dim_param for i in infos for d in i.type.tensor_type.shape.dim if d.dim_param]
        self._names = Names()
        self._known: dict[str, Expr] = {}
        self.order: list[str] = []
        self._own = set(params)

    def of(self, param: str) -> Expr:
        """The expression for a dim_param."""
        if param not in self._known:
            self._known[param] = self._combined(param) or self.fresh(param)
        return self._known[param]

    def fresh(self, wanted: str) -> Expr:
        """A new symbol with a name derived from `wanted`."""
        name = self._names.take(identifier(wanted, "dim"))
        self.order.append(name)
        return Var(name)

    def _combined(self, param: str) -> Expr | None:
        try:
            expr = parse_expr(param)
        except ValueError:
            return None
        names = variables(expr)
        if isinstance(expr, Var) or not names or not names <= self._own:
            return None
        arithmetic = all(
            isinstance(e, Var)
            or (isinstance(e, Const) and type(e.value) is int)
            or (isinstance(e, Binary) and e.op in ("+", "-", "*", "//"))
            for e in walk(expr)
        )
        return simplify(substitute(expr, {n: self.of(n) for n in sorted(names)})) if arithmetic else None


def _port(info: Any, symbols: _Symbols, file: str) -> InputPort:
    place = f"{file}: input {info.name!r}"
    if info.type.WhichOneof("value") != "tensor_type":
        kind = info.type.WhichOneof("value") or "a value without a type"
        kind = kind.removesuffix("_type")
        raise UnsupportedError(f"only tensors can be inputs, this is {kind}", place, LEFT_TO_ONNXRUNTIME)
    tensor = info.type.tensor_type
    ttype = ELEMENT_TYPES.get(tensor.elem_type)
    if ttype is None:
        message = f"element type {element_type_name(tensor.elem_type)} is not supported"
        raise UnsupportedError(message, place, LEFT_TO_ONNXRUNTIME)
    if not tensor.HasField("shape"):
        hint = "Give the input a shape; extents may be symbolic."
        raise UnsupportedError("the rank of the input is unknown", place, hint)
    shape: list[Expr] = []
    for axis, dim in enumerate(tensor.shape.dim):
        if names_extent(dim.dim_param):
            shape.append(symbols.of(dim.dim_param))
        elif dim.HasField("dim_value") and dim.dim_value >= 0:
            shape.append(Const(dim.dim_value))
        else:
            shape.append(symbols.fresh(f"{info.name}_dim{axis}"))
    if not info.name:
        raise ConfigError("an input has no name", file, "Give it one, or export the model again.")
    size = prod(extent for e in shape if (extent := constant_value(e)) is not None) * element_bytes(ttype)
    if size > MAX_SIZE:
        raise ConfigError(f"it would take {size} bytes", place, "Check its shape.")
    return InputPort(info.name, tuple(shape), ttype)
