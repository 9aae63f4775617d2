"""One ONNX node during translation: the constructors of tensor expressions for it.

Two methods cover most operators: `Op.map` (elementwise with broadcasting) and `Op.reduce`; both take the scalar body as
text. Everything else states its index algebra through `Op.emit`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilec.importer.broadcasting import broadcast, repeated_index
from tilec.importer.builder import Axis
from tilec.importer.formula import formula
from tilec.importer.names import LETTERS, REDUCED, identifier
from tilec.importer.node_inputs import NodeInputs
from tilec.importer.shapes import size_of
from tilec.importer.sums import wide
from tilec.importer.value import Value
from tilec.importer.weights import Stored
from tilec.ir.expr import Access, Call, Const, Expr, Scalar, constant_value
from tilec.ir.scalars import is_weak, type_of
from tilec.ir.types import TTYPES, numpy_dtype


@dataclass(frozen=True, slots=True, eq=False)
class Op(NodeInputs):
    """An ONNX node with its operands and attributes, and constructors of tensor expressions."""

    def name(self, part: str = "", output: int = 0) -> str:
        """The name of the tensor for an output, or of an intermediate tensor `part`."""
        base = identifier(self.outputs[output] or self.outputs[0], "t")
        return f"{base}_{part}" if part else base

    def axes_of(self, shape: Sequence[Expr], names: Sequence[str] = LETTERS) -> tuple[Axis, ...]:
        """Iterators over a shape. Raises UnsupportedError for more dimensions than names."""
        if len(shape) > len(names):
            raise self.unsupported(f"{len(shape)} dimensions", f"At most {len(names)} are supported.")
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
        """A tensor with known contents."""
        return self.builder.constant(self.name(part, output), Stored(np.asarray(array, numpy_dtype(ttype)), ttype))

    def full(self, shape: Sequence[Expr], value: Scalar, ttype: str, part: str = "", output: int = 0) -> Value:
        """A tensor with the same value everywhere."""
        return self.emit(self.axes_of(shape), Const(value), ttype, part=part, output=output)

    def elementwise(
        self, text: str, operands: Operands, ttype: str | None = None, part: str = "", output: int = 0
    ) -> Value:
        """An elementwise expression; the body is text over named operands; tensors broadcast, numbers and sizes are
        literals.

        The result has type `ttype`, by default that of the body.
        """
        tensors = {name: v for name, v in operands.items() if isinstance(v, Value)}
        shape = broadcast(*(v.shape for v in tensors.values()), sizes=self.sizes)
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
        """Reduce a body (as in `elementwise`) over some dimensions of its shape; `keep` leaves them as 1."""
        shape = broadcast(*(v.shape for v in operands.values() if isinstance(v, Value)), sizes=self.sizes)
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
        """The mean of an elementwise body: a plain sum, then one division; half precision is summed in single."""
        total = self.reduce("sum", axes, wide(text, x.ttype), keep, f"{part}_sum" if part else "sum", x=x)
        number = count([x.shape[d] for d in axes], total.ttype)
        division = "x / n" if TTYPES[total.ttype].kind == "float" else "truncdiv(x, n)"
        result = self.map(division, x.ttype, part=part, x=total, n=number)
        return replace(result, mean=(x.name, tuple(axes))) if text == "x" and keep else result

    def element(self, position: int) -> Expr | None:
        """The only element of an input as an operand of a body; None when the input is absent."""
        value = self.optional(position)
        if value is None:
            return None
        if size_of(value.shape) != Const(1):
            raise self.invalid(f"input {position} must have one element")
        return value.at([Const(0)] * value.rank)

    def indices(self, extent: Expr, axis: int, rank: int) -> Value:
        """The index along one of `rank` dimensions as an i64 tensor that broadcasts along the others."""
        axes = self.axes_of([extent if d == axis else Const(1) for d in range(rank)])
        return self.emit(axes, axes[axis].var, "i64", part="index")

    def _body(self, text: str, operands: Operands, axes: Sequence[Axis]) -> Expr:
        """The body with operands read at the iterators; literals only beside a tensor or an index that determines their
        type."""
        reading = {n: v.at(self._index(v, axes)) if isinstance(v, Value) else _literal(v) for n, v in operands.items()}
        if all(isinstance(value, Const) for value in reading.values()):
            reading |= {n: v.access(self._index(v, axes)) for n, v in operands.items() if isinstance(v, Value)}
        return formula(text, **reading)

    def _index(self, value: Value, axes: Sequence[Axis]) -> tuple[Expr, ...]:
        """The index at which a broadcast operand is read."""
        return repeated_index(value.shape, axes[len(axes) - value.rank :], self.sizes)

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
        """The value of a body whose tensors are all literals, if every machine computes the same."""
        points: dict[str, Operand] = {
            n: self.full((), v.literal.value, v.ttype, part=n) if isinstance(v, Value) and v.literal is not None else v
            for n, v in operands.items()
        }
        body = self._body(text, points, ())
        result = self.emit((), body, ttype or self._ttype(text, operands), part="value")
        return None if result.literal is None else result.literal.value


Operand = Value | Expr | Scalar
Operands = Mapping[str, Operand]


def _literal(value: Expr | Scalar) -> Expr:
    return Const(value) if isinstance(value, bool | int | float) else value


def count(extents: Sequence[Expr], ttype: str) -> Expr:
    """A number of elements as a factor in a body of type `ttype`."""
    size = size_of(extents)
    fixed = constant_value(size)
    if fixed is None:
        return Call(ttype, (size,))
    return Const(float(fixed)) if TTYPES[ttype].kind == "float" else Const(fixed)
