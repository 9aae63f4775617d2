"""Softmax, LogSoftmax, Hardmax and LogSumExp, opened over their own axes with the maximum subtracted."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.ops.movement import reshaped
from tilec.importer.registry import operator
from tilec.importer.shapes import size_of
from tilec.importer.sums import wide
from tilec.importer.value import Value
from tilec.ir.expr import Const, Expr


def softmax(op: Op, x: Value, axes: Sequence[int], part: str = "", sink: Value | None = None) -> Value:
    """`exp(x - max)` times the reciprocal of its sum, computed once a row; a row of -inf gives NaN, as in the
    reference. A `sink` is one more score of each row, whose weight is left out. Only the result is rounded to half
    precision."""
    prefix = f"{part}_" if part else ""
    largest = op.reduce("max", axes, x=x, part=f"{prefix}max")
    power = op.map(_power(x), x=x, m=largest, part=f"{prefix}exp")
    total = op.reduce("sum", axes, "x", x=power, part=f"{prefix}sum")
    if sink is not None:
        text = f"s + exp({wide('x', sink.ttype)} - {wide('m', x.ttype)})"
        total = op.map(text, s=total, x=sink, m=largest, part=f"{prefix}total")
    return op.map("x * (1.0 / s)", x.ttype, x=power, s=total, part=part)


def _power(x: Value) -> str:
    """The body `exp(x - m)`, in single precision where elements have half precision."""
    return f"exp({wide('x', x.ttype)} - {wide('m', x.ttype)})"


def _softmax_axes(op: Op, x: Value) -> tuple[int, ...]:
    """The axes; before opset 13 all dimensions from `axis` on."""
    axis = op.integer("axis", -1 if op.opset >= 13 else 1)
    if op.opset < 13 and axis == x.rank:
        return ()
    axis = op.axis(axis, x.rank)
    return (axis,) if op.opset >= 13 else tuple(range(axis, x.rank))


@operator("Softmax")
def _softmax(op: Op) -> Value:
    x = op.value(0)
    return softmax(op, x, _softmax_axes(op, x))


@operator("LogSoftmax")
def _log_softmax(op: Op) -> Value:
    x = op.value(0)
    axes = _softmax_axes(op, x)
    largest = op.reduce("max", axes, x=x, part="max")
    total = op.reduce("sum", axes, _power(x), x=x, m=largest, part="sum")
    return op.map(f"{wide('x', x.ttype)} - {wide('m', x.ttype)} - log(s)", x.ttype, x=x, m=largest, s=total)


@operator("Hardmax")
def _hardmax(op: Op) -> Value:
    """1 at the first maximum along the axes, 0 elsewhere; a NaN is no maximum."""
    x = op.value(0)
    along = _softmax_axes(op, x)
    largest = op.reduce("max", along, "where(isnan(x), -inf, x)", x=x, part="max")
    axes = op.axes_of(x.shape)
    place = [a.var for a in axes]
    number: Expr = Const(0)
    for d in along:
        number = formula("number * e + i", number=number, e=x.shape[d], i=axes[d].var)
    row = [Const(0) if d in along else i for d, i in enumerate(place)]
    none = size_of([x.shape[d] for d in along])
    body = formula("where(x == m, i, e)", x=x.access(place), m=largest.access(row), i=number, e=none)
    first = op.reduce("min", along, x=op.emit(axes, body, "i64", part="place"), part="first")
    return op.emit(axes, formula(f"{x.ttype}(i == f)", i=number, f=first.access(row)), x.ttype)


def log_sum_exp(op: Op, x: Value, axes: Sequence[int], keep: bool) -> Value:
    """`log(sum(exp(x - m))) + m` with m the maximum, 0 where that is infinite."""
    largest = op.reduce("max", axes, x=x, part="max")
    shift = op.map("where(isinf(m), 0.0, m)", m=largest, part="shift")
    total = op.reduce("sum", axes, _power(x), keep, x=x, m=shift, part="sum")
    if not keep:
        shift = reshaped(op, shift, [e for d, e in enumerate(shift.shape) if d not in axes], part="offset")
    return op.map(f"log(s) + {wide('m', x.ttype)}", x.ttype, s=total, m=shift)
