"""Quantisation of real numbers to small integers with a scale and a zero point, and dequantisation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilec.importer.broadcasting import fitted_index
from tilec.importer.element_types import ELEMENT_TYPES, element_type_name
from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.registry import operator
from tilec.importer.shapes import ShapeError, shape_text
from tilec.importer.value import Value
from tilec.ir.algebra import simplify
from tilec.ir.expr import Call, Const, Expr
from tilec.ir.types import TTYPES, is_float, numpy_dtype


def cast(expr: Expr, ttype: str) -> Expr:
    """A scalar as another type; a literal becomes the literal rounded to this type."""
    if not isinstance(expr, Const):
        return Call(ttype, (expr,))
    value = numpy_dtype(ttype).type(expr.value).item()
    return Const(float(value) if is_float(ttype) else int(value))


def widened(value: Value | None, index: Sequence[Expr], ttype: str) -> Expr:
    """An element in a type that represents it exactly; an absent one counts as zero."""
    element = Const(0) if value is None else value.at(index)
    return element if value is not None and value.ttype == ttype else cast(element, ttype)


def is_zero(zero: Value | None) -> bool:
    """Whether zero points are absent or known to be all 0."""
    return (
        zero is None or zero.literal == Const(0) or (zero.array is not None and not zero.array.astype(np.float32).any())
    )


def saturated(number: str, ttype: str) -> str:
    """Text of a number within the range of a coded type; NaN stays NaN."""
    t = TTYPES[ttype]
    if t.kind == "float":
        least, most = -t.maximum, t.maximum
    else:
        least, most = (-float(1 << (t.bits - 1)), 0.0)[t.kind == "uint"], float((1 << (t.bits - (t.kind == "int"))) - 1)
    return f"maximum(minimum({number}, {most!r}), {least!r})"


def requantized(real: Expr, zero: Expr, ttype: str) -> Expr:
    """A real number in units of the scale: rounded half to even, shifted by the zero point, saturated."""
    number = "round(x)" if zero == Const(0.0) else "round(x) + zero"
    within = saturated(number, ttype) if TTYPES[ttype].coded else number  # casts to plain integers saturate
    return formula(f"{ttype}({within})", x=real, zero=zero)


def element_type(op: Op, attribute: str, default: str) -> str:
    """The type in an attribute; 0 and absence mean `default`."""
    code = op.integer(attribute)
    ttype = ELEMENT_TYPES.get(code) if code else default
    if ttype is None:
        raise op.unsupported(f"element type {element_type_name(code)} (attribute {attribute!r})")
    return ttype


def _of(op: Op, scale: Value | None, x: Value, place: Sequence[Expr], ttype: str) -> Expr:
    """The scale or zero point of `x[place]`: one for all, for an index of an axis, or for a block."""
    index = [] if scale is None else _index(op, scale, x, place)
    return widened(None if is_zero(scale) else scale, index, ttype)


def _index(op: Op, scale: Value, x: Value, place: Sequence[Expr]) -> list[Expr]:
    if scale.rank == 0 or scale.shape == (Const(1),):
        return [Const(0)] * scale.rank
    axis = op.axis(op.integer("axis", 1), x.rank)
    block = op.integer("block_size")
    described = f"scales {shape_text(scale.shape)} for axis {axis} of {shape_text(x.shape)}"
    if block < 0 or scale.rank != (x.rank if block else 1):
        raise ShapeError(f"{described} with block_size {block}")
    if not block:
        return [fitted_index(scale.shape[0], x.shape[axis], place[axis], op.sizes, described)]
    for d, (blocks_given, extent) in enumerate(zip(scale.shape, x.shape, strict=True)):
        blocks = simplify(formula("(e + b - 1) // b", e=extent, b=block))
        op.require_same(blocks_given, blocks if d == axis else extent, f"{described} in blocks of {block}")
    return [formula("i // b", i=i, b=block) if d == axis else i for d, i in enumerate(place)]


@operator("QuantizeLinear")
def _quantize(op: Op) -> Value:
    """`saturate(round(x / scale) + zero)`, with the quotient in the type `precision` (single if absent)."""
    x, scale, zero = op.value(0), op.value(1), op.optional(2)
    ttype = zero.ttype if zero is not None else element_type(op, "output_dtype", "u8")
    if is_float(ttype) and not TTYPES[ttype].coded:
        raise op.invalid(f"quantisation to {ttype}", "The result must be of an integer type or a float of few bits.")
    precision = element_type(op, "precision", "f32")
    axes = op.axes_of(x.shape)
    place = [a.var for a in axes]
    element = x.access(place)
    quotient = formula(
        "x / s", x=element if x.ttype == "f32" else cast(element, "f32"), s=_of(op, scale, x, place, "f32")
    )
    if precision != "f32":
        quotient = cast(cast(quotient, precision), "f32")
    if is_float(ttype):
        if not is_zero(zero):
            raise op.invalid(f"a zero point of type {ttype} that is not 0")
        text = saturated("x", ttype) if op.integer("saturate", 1) else "x"
        return op.emit(axes, formula(f"{ttype}({text})", x=quotient), ttype)
    return op.emit(axes, requantized(_least_for_nan(quotient, ttype), _of(op, zero, x, place, "f32"), ttype), ttype)


def _least_for_nan(real: Expr, ttype: str) -> Expr:
    """NaN becomes the smallest number of the type, as in the reference; a cast would give 0."""
    if TTYPES[ttype].kind == "uint":
        return real
    return formula("where(x >= least, x, least)", x=real, least=-float(1 << TTYPES[ttype].bits))


@operator("DequantizeLinear")
def _dequantize(op: Op) -> Value:
    """`(x - zero) * scale`: the difference of integers is exact, the product in single precision."""
    x, scale, zero = op.value(0), op.value(1), op.optional(2)
    if is_float(x.ttype) and not TTYPES[x.ttype].coded:
        raise op.invalid(f"an input of type {x.ttype}", "It must be of an integer type or a float of few bits.")
    ttype = element_type(op, "output_dtype", scale.ttype)
    if not is_float(ttype):
        raise op.invalid(f"dequantisation to {ttype}", "The result must be of a floating-point type.")
    axes = op.axes_of(x.shape)
    place = [a.var for a in axes]
    if is_float(x.ttype):
        if not is_zero(zero):
            raise op.invalid(f"a zero point of type {x.ttype} that is not 0")
        body = formula("x * s", x=cast(x.access(place), "f32"), s=_of(op, scale, x, place, "f32"))
        return op.emit(axes, body if ttype == "f32" else cast(body, ttype), ttype)
    number: Expr = x.access(place) if x.ttype == "i32" else cast(x.access(place), "i32")
    if not is_zero(zero):
        number = formula("x - zero", x=number, zero=_of(op, zero, x, place, "i32"))
    body = formula("x * s", x=cast(number, "f32"), s=_of(op, scale, x, place, "f32"))
    return op.emit(axes, body if ttype == "f32" else cast(body, ttype), ttype)


@operator("DynamicQuantizeLinear")
def _dynamic(op: Op) -> tuple[Value, ...]:
    return quantised_over_ranges(op, 0)


def quantised_over_ranges(op: Op, kept: int) -> tuple[Value, Value, Value]:
    """Quantisation to u8 over the range of the input, extended to include 0: result, scale, zero point. Every index of
    the first `kept` dimensions has a range of its own."""
    x = op.value(0)
    every = tuple(range(kept, x.rank))
    low = op.reduce("min", every, keep=False, part="low", x=x)
    high = op.reduce("max", every, keep=False, part="high", x=x)
    least, most = op.map("minimum(x, 0.0)", x=low, part="least"), op.map("maximum(x, 0.0)", x=high, part="most")
    scale = op.map("where(low == high, 1.0, (high - low) / 255.0)", low=least, high=most, output=1)
    zero = op.map("u8(round(-low / s))", s=scale, low=least, output=2)
    axes = op.axes_of(x.shape)
    index = [a.var for a in axes]
    quotient = formula("x / s", x=x.access(index), s=scale.at(index[:kept]))
    return op.emit(axes, requantized(quotient, widened(zero, index[:kept], "f32"), "u8"), "u8"), scale, zero
