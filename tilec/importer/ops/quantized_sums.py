"""Products and convolutions of small integers: exact sums in i32, requantised where the output has a scale."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilec.importer.broadcasting import fitted_index
from tilec.importer.builder import Axis
from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.ops.contraction import Product, leading_index, product_of
from tilec.importer.ops.convolution import convolution_of
from tilec.importer.ops.quantized import is_zero, requantized, widened
from tilec.importer.ops.window import guarded
from tilec.importer.registry import operator
from tilec.importer.shapes import ShapeError, shape_text
from tilec.importer.value import Value
from tilec.ir.expr import Const, Expr

Place = Callable[[Value], list[Expr]]
"""The index at which a scale or zero point is read for an element of the result."""


@operator("MatMulInteger")
def _matmul_integer(op: Op) -> Value:
    """`sum(k, (A[m,k] - a) * (B[k,n] - b))`; zero points for all, for rows of A, for columns of B."""
    a, b = op.value(0), op.value(1)
    return _exact_product(op, product_of(op, a, b), (a, op.optional(2)), (b, op.optional(3)), "")


@operator("QLinearMatMul")
def _qlinear_matmul(op: Op) -> Value:
    a, b, zero = op.value(0), op.value(3), op.value(7)
    frame = product_of(op, a, b)
    total = _exact_product(op, frame, (a, op.value(2)), (b, op.value(5)), "product")
    of_rows, of_columns = _of_rows(op, frame), _of_columns(op, frame)
    return _scaled(
        op,
        total,
        frame.axes,
        ((op.value(1), of_rows), (op.value(4), of_columns), (op.value(6), of_rows)),
        widened(zero, of_rows(zero), "f32"),
        zero.ttype,
    )


def _exact_product(
    op: Op, frame: Product, left: tuple[Value, Value | None], right: tuple[Value, Value | None], part: str
) -> Value:
    factor_a = _shifted(left, frame.left, _of_rows(op, frame))
    factor_b = _shifted(right, frame.right, _of_columns(op, frame))
    return op.emit(frame.axes, formula("x * y", x=factor_a, y=factor_b), "i32", [frame.inner], part=part)


def _shifted(operand: tuple[Value, Value | None], index: Sequence[Expr], place: Place) -> Expr:
    """An element minus its zero point, in i32."""
    value, zero = operand
    number = formula("i32(x)", x=value.access(index))
    if zero is None or is_zero(zero):
        return number
    return formula("x - zero", x=number, zero=widened(zero, place(zero), "i32"))


def _of_rows(op: Op, frame: Product) -> Place:
    return _along(op, frame.lead, frame.rows, lambda row, other: [row, other])


def _of_columns(op: Op, frame: Product) -> Place:
    return _along(op, frame.lead, frame.columns, lambda column, other: [other, column])


def _along(op: Op, lead: Sequence[Axis], rows: Sequence[Axis], pair: Callable[[Expr, Expr], list[Expr]]) -> Place:
    """The index of a value for all, of a vector with one for each row (column), or of a tensor that is 1 along the
    other dimension."""

    def place(value: Value) -> list[Expr]:
        if all(extent == Const(1) for extent in value.shape):
            return [Const(0)] * value.rank
        described = f"a scale or zero point {shape_text(value.shape)}"
        if not rows or value.rank > len(lead) + 2:
            raise ShapeError(f"{described} for a result of {len(lead) + len(rows)} dimensions")
        if value.rank == 1:
            return [fitted_index(value.shape[0], rows[0].extent, rows[0].var, op.sizes, described)]
        tail: list[Expr] = []
        for size, wanted, at in zip(
            value.shape[-2:], pair(rows[0].extent, Const(1)), pair(rows[0].var, Const(0)), strict=True
        ):
            tail.append(fitted_index(size, wanted, at, op.sizes, described))
        return [*leading_index(value, lead, op.sizes), *tail]

    return place


def _scaled(
    op: Op,
    total: Value,
    axes: Sequence[Axis],
    scales: Sequence[tuple[Value, Place]],
    zero: Expr,
    ttype: str,
    offset: Expr | None = None,
) -> Value:
    """`saturate(round((total + offset) * (a * b / y)) + zero)` in single precision, as in the reference."""
    a, b, y = (widened(value, place(value), "f32") for value, place in scales)
    count: Expr = total.access([axis.var for axis in axes])
    if offset is not None:
        count = formula("x + b", x=count, b=offset)
    real = formula("f32(x) * (a * b / y)", x=count, a=a, b=b, y=y)
    return op.emit(axes, requantized(real, zero, ttype), ttype)


@operator("ConvInteger")
def _conv_integer(op: Op) -> Value:
    return _exact_convolution(op, op.value(0), op.value(1), op.optional(2), op.optional(3), "")[0]


@operator("QLinearConv")
def _qlinear_conv(op: Op) -> Value:
    """Scales and zero points of the weight may be per output channel; the bias is in units of the sum."""
    zero, bias = op.value(7), op.optional(8)
    total, axes = _exact_convolution(op, op.value(0), op.value(3), op.value(2), op.value(5), "product")
    of_channel, of_all = _of_channel(op, axes[1]), _of_channel(op, None)
    scales = ((op.value(1), of_all), (op.value(4), of_channel), (op.value(6), of_all))
    offset = None if bias is None else bias.at(of_channel(bias))
    return _scaled(op, total, axes, scales, widened(zero, of_all(zero), "f32"), zero.ttype, offset)


def _exact_convolution(
    op: Op, x: Value, weight: Value, zero_x: Value | None, zero_w: Value | None, part: str
) -> tuple[Value, tuple[Axis, ...]]:
    """`sum(c,r,s, (X - x) * (W - w))`; elements outside the input equal its zero point, hence a factor of 0."""
    conv = convolution_of(op, x, weight)
    value = guarded(conv.guards, _shifted((x, zero_x), conv.index, _of_channel(op, None)), Const(0))
    factor = _shifted((weight, zero_w), conv.weight, _of_channel(op, conv.axes[1]))
    body = formula("x * w", x=value, w=factor)
    return op.emit(conv.axes, body, "i32", conv.reduce, part=part), conv.axes


def _of_channel(op: Op, channel: Axis | None) -> Place:
    """The index of a value for all, or of one for each output channel."""

    def place(value: Value) -> list[Expr]:
        if all(extent == Const(1) for extent in value.shape):
            return [Const(0)] * value.rank
        if channel is None or value.rank != 1:
            for extent in value.shape:
                op.require_same(extent, Const(1), f"a scale, zero point or bias of shape {shape_text(value.shape)}")
            return [Const(0)] * value.rank
        described = "channels and their scales, zero points or bias"
        return [fitted_index(value.shape[0], channel.extent, channel.var, op.sizes, described)]

    return place
