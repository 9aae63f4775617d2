"""Taps of a resized dimension: coordinates, rounding, and weights of the neighbours (Resize, Upsample).

Coordinates, indices and weights are small tensors over one dimension. Where the extents are known they fold into
constants, and indices of the form `i // n` or `start + step * i` become index algebra.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from tilec.importer.builder import Axis
from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.value import Value
from tilec.ir.expr import Call, Const, Expr, constant_value

COORDINATES = {
    "half_pixel": "(i + 0.5) / scale - 0.5",
    "pytorch_half_pixel": "where(out > 1.0, (i + 0.5) / scale - 0.5, 0.0)",
    "asymmetric": "i / scale",
    "tf_half_pixel_for_nn": "(i + 0.5) / scale",
    "align_corners": "where(out > 1.0, i * (size - 1.0) / (out - 1.0), 0.0)",
    "half_pixel_symmetric": "offset + (i + 0.5) / scale - 0.5",
    "tf_crop_and_resize": "where(out > 1.0, start * (size - 1.0) + i * (end - start) * (size - 1.0) / (out - 1.0), "
    "0.5 * (start + end) * (size - 1.0))",
}
"""coordinate_transformation_mode -> the coordinate in the input of output position i."""

ROUNDING = {
    "round_prefer_floor": "floor(c) + where(c - floor(c) > 0.500001, 1.0, 0.0)",
    "round_prefer_ceil": "floor(c) + where(c - floor(c) >= 0.499999, 1.0, 0.0)",
    "floor": "floor(c)",
    "ceil": "ceil(c)",
}
"""nearest_mode -> the position nearest to coordinate c; within a millionth of the middle counts as the middle, as in
the reference."""

CUBIC = (
    "where(t <= 1.0, ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0, "
    "where(t < 2.0, ((a * t - 5.0 * a) * t + 8.0 * a) * t - 4.0 * a, 0.0))"
)
HAT = "where(t < 1.0, 1.0 - t, 0.0)"
"""Weights by the distance t of a neighbour: cubic convolution (Keys 1981) and linear interpolation."""


@dataclass(frozen=True, slots=True)
class Line:
    """A resized dimension: extents before and after, the scale, start and end of the region of interest."""

    dimension: int
    size: Expr
    out: Expr
    scale: Expr
    start: Expr = Const(0.0)
    end: Expr = Const(1.0)


@dataclass(frozen=True, slots=True)
class Taps:
    """The `count` neighbours of each output position, from `first` (one i64 each) on, and their weights (neighbours by
    positions)."""

    count: int
    first: Value
    weights: Value


def coordinates(op: Op, line: Line, mode: str) -> Value:
    """The coordinate of every output position, in f32 (half_pixel_symmetric: f64) as in the reference."""
    if mode not in COORDINATES:
        hint = f"It must be one of {', '.join(COORDINATES)}."
        raise op.invalid(f"coordinate_transformation_mode is {mode!r}", hint)
    (axis,) = op.axes_of([line.out])
    operands = {"size": as_float(line.size), "out": as_float(line.out), "start": line.start, "end": line.end}
    if mode == "half_pixel_symmetric":
        offset, scale = (_wide(e) for e in (_offset(line), line.scale))
        wide_body = formula(COORDINATES[mode], i=Call("f64", (axis.var,)), scale=scale, offset=offset)
        body: Expr = Call("f32", (wide_body,))
    else:
        body = formula(COORDINATES[mode], i=Call("f32", (axis.var,)), scale=line.scale, **operands)
    return op.emit([axis], body, "f32", part=f"at{line.dimension}")


def _offset(line: Line) -> Expr:
    """Distance of the centres of the image before and after, in the input's coordinates, in f32."""
    size, out = constant_value(line.size), constant_value(line.out)
    if size is None or out is None or not isinstance(line.scale, Const):
        operands = {"size": as_float(line.size), "out": as_float(line.out), "scale": line.scale}
        return formula("size / 2.0 * (1.0 - out / (scale * size))", **operands)
    whole, one = np.float32(size), np.float32(1)
    return Const(float(whole / np.float32(2) * (one - np.float32(out) / (np.float32(line.scale.value) * whole))))


def _wide(value: Expr) -> Expr:
    """A value in a body of type f64."""
    return value if isinstance(value, Const) else Call("f64", (value,))


def as_float(extent: Expr) -> Expr:
    """An extent in a body of type f32."""
    fixed = constant_value(extent)
    return Call("f32", (extent,)) if fixed is None else Const(float(fixed))


def nearest(op: Op, line: Line, at: Value, rounding: str, index: Expr) -> Expr:
    """The index read at output position `index`, clamped to the tensor."""
    if rounding not in ROUNDING:
        raise op.invalid(f"nearest_mode is {rounding!r}", f"It must be one of {', '.join(ROUNDING)}.")
    (axis,) = op.axes_of([line.out])
    rounded = Call("i64", (formula(ROUNDING[rounding], c=at.access([axis.var])),))
    body = formula("maximum(minimum(n, size - 1), 0)", n=rounded, size=line.size)
    return read(op.emit([axis], body, "i64", part=f"index{line.dimension}"), index)


def read(table: Value, at: Expr) -> Expr:
    """`table[at]`, as index algebra where the table is `at // n` or a progression."""
    if table.array is not None and (repeat := _repeats(table.array)) is not None:
        return formula("i // n", i=at, n=repeat)
    return table.access([at]) if table.array is None else table.at([at])


def _repeats(table: NDArray[np.int64]) -> int | None:
    """The n for which a table is `i // n`; None if there is none."""
    steps = np.diff(table)
    if not steps.any() or table[0] != 0:
        return None
    repeat = int(np.flatnonzero(steps)[0]) + 1
    return repeat if np.array_equal(table, np.arange(table.size) // repeat) else None


def neighbours(op: Op, line: Line, at: Value, mode: str, smooth: bool, exclude: bool) -> Taps:
    """The neighbours of every position and their weights; `smooth` widens the filter as the image shrinks.

    `exclude` leaves out neighbours outside the tensor; otherwise they repeat the edge.
    """
    reach, shrink = 1.0 if mode == "linear" else 2.0, 1.0
    if smooth:
        factor = line.scale.value if isinstance(line.scale, Const) else None
        if factor is None:
            raise op.unsupported("antialias at a scale that depends on symbols", "Bind them with --shape SYMBOL=SIZE.")
        shrink = min(float(factor), 1.0)
    count = 2 * ceil(reach / shrink)
    d = line.dimension
    tap, axis = op.axes_of([Const(count), line.out])
    first = formula("i64(floor(c)) - before", c=at.access([axis.var]), before=count // 2 - 1)
    start = op.emit([axis], first, "i64", part=f"first{d}")
    place = formula("first + t", first=start.access([axis.var]), t=tap.var)
    distance = formula("abs(f32(i) - c) * s", i=place, c=at.access([axis.var]), s=float(np.float32(shrink)))
    if shrink == 1.0:
        distance = formula("abs(f32(i) - c)", i=place, c=at.access([axis.var]))
    body = formula(HAT if mode == "linear" else CUBIC, t=distance, a=op.number("cubic_coeff_a", -0.75))
    if exclude:
        body = formula("where(i >= 0 and i < size, w, 0.0)", i=place, size=line.size, w=body)
    weights = op.emit([tap, axis], body, "f32", part=f"weight{d}")
    if smooth or exclude:
        weights = _normalized(op, weights, axis, count, d)
    return Taps(count, start, weights)


def _normalized(op: Op, weights: Value, axis: Axis, count: int, d: int) -> Value:
    """The weights of every position divided by their sum."""
    total: Expr = weights.access([Const(0), axis.var])
    for t in range(1, count):
        total = formula("a + b", a=total, b=weights.access([Const(t), axis.var]))
    sums = op.emit([axis], total, "f32", part=f"total{d}")
    tap, axis = op.axes_of(weights.shape)
    share = formula("w / n", w=weights.access([tap.var, axis.var]), n=sums.access([axis.var]))
    return op.emit([tap, axis], share, "f32", part=f"share{d}")
