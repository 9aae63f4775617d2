"""RoiAlign and MaxRoiPool: regions of images, divided into bins that are sampled or searched."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilec.importer.builder import Axis
from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.ops.gather import require_range
from tilec.importer.ops.window import guarded
from tilec.importer.registry import operator
from tilec.importer.shapes import ShapeError, shape_text
from tilec.importer.value import Value
from tilec.importer.work_estimate import require_affordable
from tilec.ir.evaluate import neutral
from tilec.ir.expr import Call, Const, Expr, substitute
from tilec.ir.types import numpy_dtype

MAX_SAMPLES = 64
"""Maximal number of samples a bin along a dimension, for regions of known size."""


@dataclass(frozen=True, slots=True)
class Samples:
    """The samples of all bins along a dimension: two neighbours each, tables over (neighbour, region, bin, sample).

    `number` is the number of samples in the bins of each region, None when all have `most`.
    """

    index: Value
    weight: Value
    most: int
    number: Value | None


@operator("RoiAlign")
def _roi_align(op: Op) -> Value:
    """Every bin of a region is the average, or maximum, of samples interpolated between four elements."""
    x, rois, batches = op.value(0), op.value(1), op.value(2)
    described = f"an image {shape_text(x.shape)} and regions {shape_text(rois.shape)}"
    if x.rank != 4 or rois.rank != 2 or batches.rank != 1:
        raise ShapeError(described)
    op.require_same(rois.shape[1], Const(4), f"{described}, coordinates")
    op.require_same(rois.shape[0], batches.shape[0], "the regions and their images")
    require_range(op, batches, x.shape[0], wraps=False)
    mode = op.text("mode", "avg")
    if mode not in ("avg", "max"):
        raise op.invalid(f"mode is {mode!r}", "It must be avg or max.")
    compute = x.ttype if x.ttype in ("f32", "f64") else "f32"
    bins = op.integer("output_height", 1), op.integer("output_width", 1)
    rows, columns = (_samples(op, rois, d, x.shape[2 + d], bins[d], compute) for d in range(2))
    axes = op.builder.iterators(("n", "c", "h", "w"), [rois.shape[0], x.shape[1], *map(Const, bins)])
    reduce = op.builder.iterators(("r", "s", "t", "u"), [*map(Const, (rows.most, columns.most)), Const(2), Const(2)])
    n, c, h, w = (a.var for a in axes)
    r, s, t, u = (Const(0) if a.extent == Const(1) else a.var for a in reduce)
    image = _image(batches, n, x.shape[0])

    def product(t: Expr, u: Expr) -> Expr:
        above, left = (t, n, h, r), (u, n, w, s)
        element: Expr = x.access([image, c, rows.index.access(above), columns.index.access(left)])
        element = element if x.ttype == compute else Call(compute, (element,))
        return formula("x * a * b", x=element, a=rows.weight.access(above), b=columns.weight.access(left))

    numbers = [_count(v, n, compute) for v in (rows, columns)]
    pairs = [(v.number, i) for v, i in ((rows, r), (columns, s)) if v.number is not None]
    conditions = [formula("i < e", i=i, e=number.access([n])) for number, i in pairs]
    if mode == "avg":
        total = op.emit(axes, guarded(conditions, product(t, u), Const(0.0)), compute, reduce, part="sum")
        text = "x / maximum(a * b, 1.0)"
    else:
        corners = [product(Const(t), Const(u)) for t in range(2) for u in range(2)]
        best = formula("maximum(maximum(a, b), maximum(c, d))", **dict(zip("abcd", corners, strict=True)))
        lowest = Const(float(np.asarray(neutral("max", numpy_dtype(compute)))))
        total = op.emit(axes, guarded(conditions, best, lowest), compute, reduce[:2], "max", part="max")
        text = "where(a * b > 0.0, x, 0.0)"
    body = formula(text, x=total.access([n, c, h, w]), a=numbers[0], b=numbers[1])
    return op.emit(axes, body if x.ttype == compute else Call(x.ttype, (body,)), x.ttype)


def _image(batches: Value, region: Expr, images: Expr) -> Expr:
    """The image of a region, clamped to the batch."""
    number: Expr = batches.access([region])
    number = number if batches.ttype == "i64" else Call("i64", (number,))
    return formula("maximum(minimum(b, n - 1), 0)", b=number, n=images)


def _count(samples: Samples, region: Expr, compute: str) -> Expr:
    """The number of samples in a bin of a region along a dimension."""
    if samples.number is None:
        return Const(float(samples.most))
    return Call(compute, (samples.number.access([region]),))


def _samples(op: Op, rois: Value, d: int, size: Expr, bins: int, compute: str) -> Samples:
    """The samples of every region's bins along a dimension: rows (0) or columns (1)."""
    if bins < 1:
        raise op.invalid(f"a region is divided into {bins} bins")
    wanted = op.integer("sampling_ratio")
    number = None if wanted > 0 else _adaptive(op, rois, d, bins)
    most = wanted if number is None else int(np.asarray(number.array).max(initial=0))
    n, at, sample = axes = op.builder.iterators(("n", "p", "g"), [rois.shape[0], Const(bins), Const(most)])
    start, length = _extent(op, rois, d, n.var, compute)
    count = _count(Samples(rois, rois, most, number), n.var, compute)
    text = f"start + {compute}(p) * (length / bins) + ({compute}(g) + 0.5) * (length / bins) / count"
    operands = {"start": start, "length": length, "bins": float(bins), "count": count, "p": at.var, "g": sample.var}
    where = op.emit(axes, formula(text, **operands), compute, part=f"position{d}")
    position = where.access([a.var for a in axes])
    (neighbour,) = op.builder.iterators(("t",), [Const(2)])
    first = formula("i64(floor(maximum(y, 0.0)))", y=position)
    place = formula("maximum(minimum(first + t, size - 1), 0)", first=first, t=neighbour.var, size=size)
    index = op.emit((neighbour, *axes), place, "i64", part=f"index{d}")
    above = formula("maximum(y, 0.0)", y=position)
    share = formula("where(first >= size - 1, 0.0, y - floor(y))", first=first, size=size, y=above)
    inside = formula(f"y >= -1.0 and y <= {compute}(size)", y=position, size=size)
    chosen = formula("where(t == 0, 1.0 - f, f)", t=neighbour.var, f=share)
    weight = op.emit((neighbour, *axes), guarded([inside], chosen, Const(0.0)), compute, part=f"weight{d}")
    return Samples(index, weight, most, number)


def _extent(op: Op, rois: Value, d: int, region: Expr, compute: str) -> tuple[Expr, Expr]:
    """Start and length of a region along a dimension, in elements of the image."""
    half = op.text("coordinate_transformation_mode", "half_pixel" if op.opset >= 16 else "output_half_pixel")
    if half not in ("half_pixel", "output_half_pixel"):
        hint = "It must be half_pixel or output_half_pixel."
        raise op.invalid(f"coordinate_transformation_mode is {half!r}", hint)
    corners = [rois.access([region, Const(k)]) for k in (1 - d, 3 - d)]
    low, high = (c if rois.ttype == compute else Call(compute, (c,)) for c in corners)
    scale = op.number("spatial_scale", 1.0)
    if half == "half_pixel":
        operands = {"low": low, "high": high, "s": scale}
        return formula("low * s - 0.5", **operands), formula("(high * s - 0.5) - (low * s - 0.5)", **operands)
    length = formula("where(high * s - low * s > 1.0, high * s - low * s, 1.0)", low=low, high=high, s=scale)
    return formula("low * s", low=low, s=scale), length


def _adaptive(op: Op, rois: Value, d: int, bins: int) -> Value:
    """As many samples as a bin has elements, for known regions."""
    (n,) = op.builder.iterators(("n",), [rois.shape[0]])
    compute = "f64" if rois.ttype == "f64" else "f32"
    _, length = _extent(op, rois, d, n.var, compute)
    samples = formula("i64(ceil(length / bins))", length=length, bins=float(bins))
    number = op.emit([n], samples, "i64", part=f"number{d}")
    if number.array is None:
        raise op.unsupported(
            "sampling_ratio 0 makes the number of samples depend on the regions",
            "Set sampling_ratio, or make the regions a constant.",
        )
    if np.asarray(number.array).max(initial=0) > MAX_SAMPLES:
        raise op.unsupported(f"more than {MAX_SAMPLES} samples a bin", "Set sampling_ratio.")
    return number


@operator("MaxRoiPool")
def _max_roi_pool(op: Op) -> Value:
    """The maximum of every bin of every region, over columns first and then over rows; 0 where a bin is empty."""
    x, rois = op.value(0), op.value(1)
    bins = op.integers("pooled_shape") or ()
    described = f"an image {shape_text(x.shape)} and regions {shape_text(rois.shape)} in {list(bins)} bins"
    if x.rank != 4 or rois.rank != 2 or len(bins) != 2 or min(bins) < 1:
        raise ShapeError(described)
    op.require_same(rois.shape[1], Const(5), f"{described}, images and coordinates")
    n, c, h, w = op.builder.iterators(("n", "c", "h", "w"), [rois.shape[0], x.shape[1], *map(Const, bins)])
    y, z = op.builder.iterators(("r", "s"), x.shape[2:])
    require_affordable(op, [rois.shape[0], *x.shape[1:], w.extent], [a.extent for a in (n, c, h, w)])
    rows, columns = (_bins(op, rois, d, x.shape[2 + d], bins[d]) for d in range(2))
    image = _image(_first_column(op, rois), n.var, x.shape[0])
    lowest = np.asarray(neutral("max", numpy_dtype(x.ttype))).item()

    def within(limits: tuple[Value, Value], i: Expr, at: Axis) -> Expr:
        first, last = (v.access([n.var, at.var]) for v in limits)
        return formula("i >= a and i < b", i=i, a=first, b=last)

    element = guarded([within(columns, z.var, w)], x.access([image, c.var, y.var, z.var]), Const(lowest))
    (line,) = op.builder.iterators(("y",), [x.shape[2]])
    element = substitute(element, {y.var.name: line.var})
    widest = op.emit((n, c, line, w), element, x.ttype, [z], "max", part="columns")
    row = guarded([within(rows, y.var, h)], widest.access([n.var, c.var, y.var, w.var]), Const(lowest))
    largest = op.emit((n, c, h, w), row, x.ttype, [y], "max", part="rows")
    limits = [[v.access([n.var, i.var]) for v in pair] for pair, i in ((rows, h), (columns, w))]
    full = [formula("b > a", a=first, b=last) for first, last in limits]
    reached = largest.access([n.var, c.var, h.var, w.var])
    return op.emit((n, c, h, w), guarded(full, reached, Const(0.0)), x.ttype)


def _first_column(op: Op, rois: Value) -> Value:
    (n,) = op.builder.iterators(("n",), [rois.shape[0]])
    return op.emit([n], Call("i64", (rois.access([n.var, Const(0)]),)), "i64", part="image")


def _bins(op: Op, rois: Value, d: int, size: Expr, bins: int) -> tuple[Value, Value]:
    """The first element of every bin of every region along a dimension, and the one behind its last."""
    compute = rois.ttype if rois.ttype in ("f32", "f64") else "f32"
    n, at = axes = op.builder.iterators(("n", "p"), [rois.shape[0], Const(bins)])
    corners = [Call(compute, (rois.access([n.var, Const(k)]),)) for k in (2 - d, 4 - d)]
    scale = op.number("spatial_scale", 1.0)
    low, high = (formula("sign(v * s) * floor(abs(v * s) + 0.5)", v=v, s=scale) for v in corners)
    step = formula("maximum(high - low + 1.0, 1.0) / bins", low=low, high=high, bins=float(bins))
    ends = []
    for text, part in ((f"floor({compute}(p) * step) + low", "begin"), (f"ceil({compute}(p + 1) * step) + low", "end")):
        place = formula(text, p=at.var, step=step, low=low)
        clamped = formula("maximum(minimum(i64(v), size), 0)", v=place, size=size)
        ends.append(op.emit(axes, clamped, "i64", part=f"{part}{d}"))
    return ends[0], ends[1]
