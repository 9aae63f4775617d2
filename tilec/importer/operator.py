"""One ONNX node while it is translated, and the registry of the functions that translate operators.

Two verbs carry most operators: `Op.map` (elementwise with broadcasting) and `Op.reduce`; both take the scalar body as
text.  Everything else states its index algebra through `Op.emit`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilec.errors import ConfigError, TilecError, UnsupportedError
from tilec.importer.builder import Axis, Builder, Origin
from tilec.importer.formula import formula
from tilec.importer.names import LETTERS, REDUCED, identifier
from tilec.importer.shapes import broadcast, size_of
from tilec.importer.value import Value
from tilec.importer.weights import Stored
from tilec.ir.algebra import bounds_of
from tilec.ir.expr import Access, Call, Const, Expr, Scalar, bound
from tilec.ir.scalars import is_weak, type_of
from tilec.ir.text import text_of
from tilec.ir.types import TTYPES, numpy_dtype

Result = Value | Sequence[Value | None]
Handler = Callable[["Op"], Result]

_REGISTRY: dict[str, list[tuple[int, int, Handler]]] = {}
NEWEST = 1 << 30


def operator(*names: str, since: int = 1, until: int = NEWEST) -> Callable[[Handler], Handler]:
    """Register a function for operators of ONNX's own domain, for models of opset `since` to `until`."""

    def register(handler: Handler) -> Handler:
        for name in names:
            _REGISTRY.setdefault(name, []).append((since, until, handler))
        return handler

    return register


def handler_of(name: str, opset: int) -> Handler | None:
    """The function that translates an operator at an opset."""
    return next((h for since, until, h in _REGISTRY.get(name, ()) if since <= opset <= until), None)


def known_operators() -> tuple[str, ...]:
    """Every operator that has a function, sorted."""
    return tuple(sorted(_REGISTRY))


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """An ONNX node with its operands and attributes, and the ways to say what it computes."""

    kind: str
    opset: int
    inputs: tuple[Value | None, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]
    origin: Origin
    builder: Builder

    # What the node was given

    def value(self, position: int) -> Value:
        """A required input."""
        found = self.optional(position)
        if found is None:
            raise self.invalid(f"input {position} is missing")
        return found

    def optional(self, position: int) -> Value | None:
        """An input, or None when it is absent."""
        return self.inputs[position] if position < len(self.inputs) else None

    def values(self) -> tuple[Value, ...]:
        """All inputs of an operator that takes any number of them."""
        return tuple(self.value(i) for i in range(len(self.inputs)))

    def wants(self, output: int) -> bool:
        """Whether anyone may read an output."""
        return output < len(self.outputs) and bool(self.outputs[output])

    def integer(self, name: str, default: int = 0) -> int:
        """An integer attribute."""
        return int(self.attributes.get(name, default))

    def number(self, name: str, default: float = 0.0) -> float:
        """A float attribute, as the float32 that the model holds."""
        return float(np.float32(self.attributes.get(name, default)))

    def text(self, name: str, default: str = "") -> str:
        """A string attribute."""
        value = self.attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else str(value)

    def integers(self, name: str) -> tuple[int, ...] | None:
        """A list of integers, or None when the attribute is absent."""
        value = self.attributes.get(name)
        return None if value is None else tuple(int(v) for v in value)

    def contents(self, position: int) -> tuple[Expr, ...] | None:
        """The elements of an integer input as expressions of the symbols; None when the input is absent."""
        value = self.optional(position)
        if value is None:
            return None
        known = value.known()
        if known is None:
            reason = f"input {position} must be known at compile time and is computed from the model's inputs"
            raise self.unsupported(
                reason, "Bind the symbols it depends on (--shape SYMBOL=SIZE), or make it a constant."
            )
        return known

    def constants(self, position: int) -> tuple[int, ...] | None:
        """Like `contents`, as plain integers."""
        known = self.contents(position)
        if known is None:
            return None
        found = [bound(e) for e in known]
        for expr, value in zip(known, found, strict=True):
            if value is None:
                reason = f"input {position} depends on a symbolic size: {text_of(expr)}"
                raise self.unsupported(reason, "Bind it with --shape SYMBOL=SIZE.")
        return tuple(value for value in found if value is not None)

    def single(self, position: int) -> Expr:
        """The one element of an integer input as an expression of the symbols."""
        known = self.contents(position)
        if known is None or len(known) != 1:
            raise self.invalid(f"input {position} must have one element")
        return known[0]

    def required(self, position: int) -> Scalar:
        """The one element of a constant input."""
        value = self.value(position).literal
        if value is None:
            raise self.unsupported(f"input {position} must be a constant of one element", "Freeze it into the model.")
        return value.value

    def setting(self, position: int, attribute: str) -> tuple[Expr, ...] | None:
        """What newer opsets take as an input and older ones as an attribute of integers."""
        given = self.integers(attribute)
        return self.contents(position) if given is None else tuple(Const(v) for v in given)

    def axis(self, axis: int, rank: int) -> int:
        """A dimension counted from the front. Raises ConfigError outside [-rank, rank)."""
        if not -rank <= axis < rank:
            raise self.invalid(f"axis {axis} of a tensor of rank {rank}", "Axes run from -rank to rank - 1.")
        return axis % rank

    def axes(self, position: int, attribute: str, rank: int) -> tuple[int, ...] | None:
        """Axes given by attribute or input, counted from the front, sorted; None when absent or empty."""
        given = self.integers(attribute)
        given = self.constants(position) if given is None else given
        return tuple(sorted({self.axis(a, rank) for a in given})) if given else None

    def axes_in_order(self, position: int, rank: int) -> tuple[int, ...] | None:
        """Axes given by an input, counted from the front, in the order given; None when absent."""
        given = self.constants(position)
        return None if given is None else tuple(self.axis(a, rank) for a in given)

    # What can be wrong with it

    def invalid(self, message: str, hint: str | None = None) -> TilecError:
        """The model is wrong here."""
        return ConfigError(message, self.origin.place, hint)

    def unsupported(self, reason: str, remedy: str | None = None) -> TilecError:
        """The model is right, but this is beyond what import can do."""
        return UnsupportedError(reason, self.origin.place, remedy)

    # What it computes

    def name(self, part: str = "", output: int = 0) -> str:
        """The name of the tensor for an output, or of a part on the way to it."""
        base = identifier(self.outputs[output] or self.outputs[0], "t")
        return f"{base}_{part}" if part else base

    def axes_of(self, shape: Sequence[Expr], names: Sequence[str] = LETTERS) -> tuple[Axis, ...]:
        """Iterators over a shape."""
        return self.builder.iterators(names[: len(shape)], shape)

    def emit(
        self,
        axes: Sequence[Axis],
        body: Expr,
        ttype: str,
        reduce: Sequence[Axis] = (),
        reducer: str = "sum",
        part: str = "",
        output: int = 0,
    ) -> Value:
        """Define a tensor; see `Builder.emit`."""
        return self.builder.emit(self.name(part, output), axes, body, ttype, self.origin, reduce, reducer)

    def constant(self, array: NDArray[Any], ttype: str, part: str = "", output: int = 0) -> Value:
        """A tensor of known contents."""
        return self.builder.constant(self.name(part, output), Stored(np.asarray(array, numpy_dtype(ttype)), ttype))

    def full(self, shape: Sequence[Expr], value: Scalar, ttype: str, part: str = "", output: int = 0) -> Value:
        """A tensor with the same value everywhere."""
        return self.emit(self.axes_of(shape), Const(value), ttype, part=part, output=output)

    def elementwise(
        self, text: str, operands: Operands, ttype: str | None = None, part: str = "", output: int = 0
    ) -> Value:
        """The body as text over named operands; tensors broadcast, numbers and sizes are literals.

        The result has type `ttype`, by default that of the body.
        """
        tensors = {name: v for name, v in operands.items() if isinstance(v, Value)}
        shape = broadcast(*(v.shape for v in tensors.values()))
        if tensors and all(v.literal is not None for v in tensors.values()):
            scalar = self._scalar(text, ttype, operands)
            if scalar is not None:
                return self.full(shape, scalar, ttype or self._ttype(text, operands), part, output)
        axes = self.axes_of(shape)
        body = self._body(text, operands, axes)
        return self.emit(axes, body, ttype or self._ttype(text, operands), part=part, output=output)

    def map(self, text: str, ttype: str | None = None, part: str = "", output: int = 0, **operands: Operand) -> Value:
        """`elementwise` with the operands as keywords: `op.map("x * f", x=tensor, f=0.5)`."""
        return self.elementwise(text, operands, ttype, part, output)

    def reduction(
        self,
        reducer: str,
        axes: Sequence[int],
        text: str,
        operands: Operands,
        keep: bool = True,
        part: str = "",
        output: int = 0,
    ) -> Value:
        """Reduce a body (as for `elementwise`) over some dimensions of its shape; `keep` leaves them as 1."""
        shape = broadcast(*(v.shape for v in operands.values() if isinstance(v, Value)))
        left = [d for d in range(len(shape)) if keep or d not in axes]
        spatial = self.axes_of([Const(1) if d in axes else shape[d] for d in left])
        reduced = self.builder.iterators(REDUCED, [shape[d] for d in axes])
        inner = {d: axis for d, axis in zip(left, spatial, strict=True) if d not in axes}
        inner |= dict(zip(axes, reduced, strict=True))
        body = self._body(text, operands, [inner[d] for d in range(len(shape))])
        return self.emit(spatial, body, self._ttype(text, operands), reduced, reducer, part, output)

    def reduce(
        self,
        reducer: str,
        axes: Sequence[int],
        text: str = "x",
        keep: bool = True,
        part: str = "",
        output: int = 0,
        **operands: Operand,
    ) -> Value:
        """`reduction` with the operands as keywords: `op.reduce("max", (1,), x=tensor)`."""
        return self.reduction(reducer, axes, text, operands, keep, part, output)

    def mean(self, axes: Sequence[int], x: Value, text: str = "x", keep: bool = True, part: str = "") -> Value:
        """The mean of an elementwise body: a plain sum, then one division."""
        total = self.reduce("sum", axes, text, keep, f"{part}_sum" if part else "sum", x=x)
        number = count([x.shape[d] for d in axes], total.ttype)
        division = "x / n" if TTYPES[total.ttype].kind == "float" else "truncdiv(x, n)"
        result = self.map(division, part=part, x=total, n=number)
        return replace(result, mean=(x.name, tuple(axes))) if text == "x" and keep else result

    def indices(self, extent: Expr, axis: int, rank: int) -> Value:
        """The index along one of `rank` dimensions as an i64 tensor that broadcasts along the others."""
        axes = self.axes_of([extent if d == axis else Const(1) for d in range(rank)])
        return self.emit(axes, axes[axis].var, "i64", part="index")

    def _body(self, text: str, operands: Operands, axes: Sequence[Axis]) -> Expr:
        """The body with operands read at the iterators; literals only beside a tensor or an index that types them."""
        reading = {n: v.at(_index(v, axes)) if isinstance(v, Value) else _literal(v) for n, v in operands.items()}
        if all(isinstance(value, Const) for value in reading.values()):
            reading |= {n: v.access(_index(v, axes)) for n, v in operands.items() if isinstance(v, Value)}
        return formula(text, **reading)

    def _ttype(self, text: str, operands: Operands) -> str:
        """The type of a body over tensors of these types."""
        types = {name: v.ttype for name, v in operands.items() if isinstance(v, Value)}
        reading = {n: Access(n, ()) if isinstance(v, Value) else _literal(v) for n, v in operands.items()}
        try:
            kind = type_of(formula(text, **reading), types)
        except TypeError as error:
            raise self.invalid(f"the types of the inputs do not fit the operator: {error}") from error
        return next(iter(types.values())) if is_weak(kind) else kind

    def _scalar(self, text: str, ttype: str | None, operands: Operands) -> Scalar | None:
        """The value of a body whose tensors are all literals, where every machine computes it alike."""
        points: dict[str, Operand] = {
            n: self.full((), v.literal.value, v.ttype, part=n) if isinstance(v, Value) and v.literal is not None else v
            for n, v in operands.items()
        }
        body = self._body(text, points, ())
        result = self.emit((), body, ttype or self._ttype(text, operands), part="value")
        return None if result.literal is None else result.literal.value


Operand = Value | Expr | Scalar
Operands = Mapping[str, Operand]


def _index(value: Value, axes: Sequence[Axis]) -> tuple[Expr, ...]:
    """Where a broadcast operand is read."""
    aligned = axes[len(axes) - value.rank :]
    return tuple(
        Const(0) if extent == Const(1) and axis.extent != Const(1) else axis.var
        for extent, axis in zip(value.shape, aligned, strict=True)
    )


def _literal(value: Expr | Scalar) -> Expr:
    return Const(value) if isinstance(value, bool | int | float) else value


def count(extents: Sequence[Expr], ttype: str) -> Expr:
    """A number of elements as a factor in a body of type `ttype`."""
    size = size_of(extents)
    fixed = bound(size)
    if fixed is None:
        return Call(ttype, (size,))
    return Const(float(fixed)) if TTYPES[ttype].kind == "float" else Const(fixed)


def certainly_negative(expr: Expr) -> bool:
    """Whether an integer expression is below 0 for all sizes."""
    high = bounds_of(expr)[1]
    return high is not None and high < 0
