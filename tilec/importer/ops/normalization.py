"""Normalisations, opened over their own axes, with the variance as mean((x - mean)^2).

onnx's own function bodies use E[x^2] - E[x]^2 and flatten axes: wrong where the mean is large relative to the spread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tilec.importer.broadcasting import require_fit
from tilec.importer.element_types import ELEMENT_TYPES, element_type_name
from tilec.importer.formula import formula
from tilec.importer.operator import Op, count
from tilec.importer.ops.centering import less_mean
from tilec.importer.ops.movement import reshaped
from tilec.importer.registry import operator
from tilec.importer.shapes import ShapeError, shape_text
from tilec.importer.value import Value
from tilec.ir.expr import Const, Expr


class Standardized(NamedTuple):
    """`(x - mean) / sqrt(variance + epsilon)` as two factors, and the statistics; the axes are kept as 1."""

    centered: Value
    inverse: Value
    mean: Value
    variance: Value


def standardized(
    op: Op, x: Value, axes: Sequence[int], epsilon: float, inverse: str = "1.0 / sqrt(v + e)"
) -> Standardized:
    """Normalise a tensor to mean 0 and variance 1 over some axes; `inverse` is the formula that adds epsilon `e`."""
    mean = op.mean(axes, x, part="mean")
    centered = less_mean(op, x, mean, axes, part="centered")
    variance = op.mean(axes, centered, "x * x", part="variance")
    factor = op.map(inverse, v=variance, e=epsilon, part="inverse")
    return Standardized(centered, factor, mean, variance)


def along(op: Op, value: Value, axis: int, rank: int, part: str) -> Value:
    """A vector as a tensor that broadcasts along every dimension but `axis`."""
    if value.rank != 1:
        raise ShapeError(f"{part} has shape {shape_text(value.shape)}, not one value for each channel")
    return reshaped(op, value, [value.shape[0] if d == axis else Const(1) for d in range(rank)], part=part)


def _stash_type(op: Op) -> str:
    code = op.integer("stash_type", 1)
    ttype = ELEMENT_TYPES.get(code)
    if ttype is None:
        raise op.unsupported(f"element type {element_type_name(code)} (attribute 'stash_type')")
    return ttype


def _computed(op: Op, x: Value) -> Value:
    """The input in the type of `stash_type`; double precision is kept."""
    ttype = _stash_type(op)
    return x if x.ttype in (ttype, "f64") else op.map(f"{ttype}(x)", x=x, part="wide")


def _scaled(op: Op, normal: Value, inverse: Value, scale: Value | None, shift: Value | None, ttype: str) -> Value:
    """`normal * inverse * scale + shift`, with scale and shift applied in the type of the result."""
    cast = "x * f" if normal.ttype == ttype else f"{ttype}(x * f)"
    text = "x * f" if scale is None else f"({cast}) * s"
    operands: dict[str, Value] = {"x": normal, "f": inverse}
    if scale is None:
        text = cast
    else:
        operands["s"] = scale
    if shift is not None:
        text, operands["b"] = f"{text} + b", shift
    for factor in (scale, shift):
        if factor is not None:
            require_fit(factor.shape, normal.shape, op.sizes)
    return op.elementwise(text, operands)


@operator("LayerNormalization")
def _layer_normalization(op: Op) -> tuple[Value, ...]:
    x = op.value(0)
    axis = op.axis(op.integer("axis", -1), x.rank)
    axes = range(axis, x.rank)
    normal = standardized(op, _computed(op, x), axes, op.number("epsilon", 1e-5))
    result = _scaled(op, normal.centered, normal.inverse, op.value(1), op.optional(2), x.ttype)
    ttype = _stash_type(op)
    mean, inverse = (
        v if v.ttype == ttype else op.map(f"{ttype}(x)", x=v, part=f"output{number}")
        for number, v in enumerate((normal.mean, normal.inverse), 1)
    )
    return result, mean, inverse


@operator("RMSNormalization", "SimplifiedLayerNormalization")
def _rms_normalization(op: Op) -> Value:
    x = op.value(0)
    axis = op.axis(op.integer("axis", -1), x.rank)
    wide = _computed(op, x)
    square = op.mean(range(axis, x.rank), wide, "x * x", part="square")
    inverse = op.map("1.0 / sqrt(v + e)", v=square, e=op.number("epsilon", 1e-5), part="inverse")
    return _scaled(op, wide, inverse, op.value(1), None, x.ttype)


@operator("InstanceNormalization")
def _instance_normalization(op: Op) -> Value:
    x = op.value(0)
    if x.rank < 2:
        raise ShapeError(f"an input {shape_text(x.shape)} without channels")
    centered, inverse, *_ = standardized(op, _computed(op, x), range(2, x.rank), op.number("epsilon", 1e-5))
    scale, shift = (along(op, op.value(i), 1, x.rank, part) for i, part in ((1, "scale"), (2, "shift")))
    for vector, what in ((scale, "scales"), (shift, "shifts")):
        op.require_same(vector.shape[1], x.shape[1], f"{what} for each channel")
    return _scaled(op, centered, inverse, scale, shift, x.ttype)


@operator("MeanVarianceNormalization")
def _mean_variance_normalization(op: Op) -> Value:
    x = op.value(0)
    axes = sorted(op.axis(a, x.rank) for a in op.integers("axes") or (0, 2, 3))
    centered, inverse, *_ = standardized(op, _computed(op, x), axes, 1e-9, "1.0 / (sqrt(v) + e)")
    return _scaled(op, centered, inverse, None, None, x.ttype)


@operator("GroupNormalization")
def _group_normalization(op: Op) -> Value:
    """Statistics `[n, group]` over the channels of a group and all pixels; channel c belongs to group c // size.

    Scale and shift are per group before opset 21, per channel since.
    """
    x = op.value(0)
    if x.rank < 2:
        raise ShapeError(f"an input {shape_text(x.shape)} without channels")
    groups = op.integer("num_groups", 1)
    size = op.divided(x.shape[1], groups, "groups")
    for number, what in ((1, "scales"), (2, "shifts")):
        many = x.shape[1] if op.opset >= 21 else Const(groups)
        op.require_same(op.value(number).shape[0], many, f"channels and their {what}")
    wide = _computed(op, x)
    mean = _over_group(op, wide, groups, size, "x", "mean")
    axes = op.axes_of(x.shape)
    place = [a.var for a in axes]

    def of_group(value: Value) -> Expr:
        return value.access([place[0], formula("c // s", c=place[1], s=size)])

    body = formula("x - m", x=wide.access(place), m=of_group(mean))
    offset = op.emit(axes, body, wide.ttype, part="offset")
    rest = _over_group(op, offset, groups, size, "x", "rest")
    body = formula("x - m", x=offset.access(place), m=of_group(rest))
    centered = op.emit(axes, body, wide.ttype, part="centered")
    variance = _over_group(op, centered, groups, size, "x * x", "variance")
    inverse = op.map("1.0 / sqrt(v + e)", v=variance, e=op.number("epsilon", 1e-5), part="inverse")
    channel = place[1] if op.opset >= 21 else formula("c // s", c=place[1], s=size)
    scale, shift = (op.value(i).at([channel]) for i in (1, 2))
    text = "x * f * s + b" if wide.ttype == x.ttype else f"{x.ttype}(x * f) * s + b"
    body = formula(text, x=centered.access(place), f=of_group(inverse), s=scale, b=shift)
    return op.emit(axes, body, x.ttype)


def _over_group(op: Op, x: Value, groups: int, size: Expr, text: str, part: str) -> Value:
    """The mean of an elementwise body over the channels of a group and all pixels: `[n, group]`."""
    spatial = op.builder.iterators("ng", [x.shape[0], Const(groups)])
    extents = [size, *x.shape[2:]]
    reduce = op.builder.iterators(("c", "r", "s", "t", "u")[: len(extents)], extents)
    channel = formula("g * size + c", g=spatial[1].var, size=size, c=reduce[0].var)
    element = x.access([spatial[0].var, channel, *(r.var for r in reduce[1:])])
    total = op.emit(spatial, formula(text, x=element), x.ttype, reduce, part=f"{part}_sum")
    return op.map("x / n", x=total, n=count(extents, x.ttype), part=part)
