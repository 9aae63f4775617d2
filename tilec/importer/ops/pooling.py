"""Pooling over windows and over whole images, and normalisation across channels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilec.importer.builder import Axis
from tilec.importer.formula import formula
from tilec.importer.operator import Op, count
from tilec.importer.ops.window import KERNEL, SPATIAL, WindowFunction, guarded, inside, windows
from tilec.importer.registry import operator
from tilec.importer.shapes import ShapeError, shape_text, size_of
from tilec.importer.sums import summed, wide
from tilec.importer.value import Value
from tilec.ir.algebra import simplify, simplify_scalar
from tilec.ir.evaluate import neutral
from tilec.ir.expr import Const, Expr
from tilec.ir.known_ranges import Ranges
from tilec.ir.types import TTYPES, numpy_dtype

NOWHERE = (1 << 62) - 1
"""Greater than any index of an element."""


def _frame(op: Op, x: Value) -> tuple[tuple[WindowFunction, ...], tuple[Axis, ...], tuple[Axis, ...]]:
    """The windows, iterators over the output, iterators inside a window."""
    if x.rank < 3:
        raise ShapeError(f"an input {shape_text(x.shape)} without spatial dimensions")
    frame = windows(op, x.shape[2:], [Const(k) for k in op.integers("kernel_shape") or ()])
    axes = op.builder.iterators(("n", "c", *SPATIAL[len(frame)]), [*x.shape[:2], *(w.out for w in frame)])
    reduce = op.builder.iterators(KERNEL[len(frame)], [w.kernel for w in frame])
    return frame, axes, reduce


def _positions(frame: Sequence[WindowFunction], axes: Sequence[Axis], reduce: Sequence[Axis]) -> list[Expr]:
    return [w.position(a.var, r.var) for w, a, r in zip(frame, axes, reduce, strict=True)]


@operator("MaxPool")
def _max_pool(op: Op) -> tuple[Value, ...]:
    """The maximum of every window and, as a second output, its index: see `_first`."""
    x = op.value(0)
    frame, axes, reduce = _frame(op, x)
    index = _positions(frame, axes[2:], reduce)
    lowest = np.asarray(neutral("max", numpy_dtype(x.ttype))).item()
    guards = [inside(w, i) for w, i in zip(frame, index, strict=True)]
    body = guarded(guards, x.access([axes[0].var, axes[1].var, *index]), Const(lowest))
    largest = op.emit(axes, body, x.ttype, reduce, "max")
    return (largest, _first(op, x, largest)) if op.wants(1) else (largest,)


def _first(op: Op, x: Value, largest: Value) -> Value:
    """The flat index into the whole tensor of the first element of every window that equals its maximum.

    First means in row-major order; `storage_order` 1 numbers the elements of an image column by column instead.
    """
    frame, axes, reduce = _frame(op, x)
    index = _positions(frame, axes[2:], reduce)
    element = x.access([axes[0].var, axes[1].var, *index])
    here: Expr = Const(0)
    for size, i in zip(x.shape[2:], index, strict=True):
        here = formula("flat * size + i", flat=here, size=size, i=i)
    text = "x == y or isnan(x)" if TTYPES[x.ttype].kind == "float" else "x == y"
    equals = formula(text, x=element, y=largest.access([a.var for a in axes]))
    guards = [inside(w, i) for w, i in zip(frame, index, strict=True)]
    nowhere = Const(NOWHERE)
    body = guarded(guards, guarded([equals], simplify(here), nowhere), nowhere)
    first = op.emit(axes, body, "i64", reduce, "min", part="first", output=1)
    order = op.integer("storage_order")
    if order not in (0, 1):
        raise op.invalid(f"storage_order is {order}", "It must be 0 (row-major) or 1 (column-major).")
    place = op.axes_of(largest.shape)
    inner: Expr = first.access([a.var for a in place])
    image = size_of(x.shape[2:])
    if order:
        strides = [size_of(x.shape[d + 1 :]) for d in range(2, x.rank)]
        coordinates = [formula("f // s % e", f=inner, s=s, e=e) for s, e in zip(strides, x.shape[2:], strict=True)]
        inner = Const(0)
        for size, i in zip(reversed(x.shape[2:]), reversed(coordinates), strict=True):
            inner = formula("flat * size + i", flat=inner, size=size, i=i)
    planes = {"n": place[0].var, "c": place[1].var, "channels": x.shape[1], "image": image}
    return op.emit(place, formula("(n * channels + c) * image + i", i=inner, **planes), "i64", output=1)


@operator("AveragePool")
def _average_pool(op: Op) -> Value:
    """The sum divided by the number of elements that count: in the tensor, or in its padding too; 0 without any."""
    x = op.value(0)
    frame, axes, reduce = _frame(op, x)
    index = _positions(frame, axes[2:], reduce)
    guards = [inside(w, i) for w, i in zip(frame, index, strict=True)]
    element = formula(wide("x", x.ttype), x=x.access([axes[0].var, axes[1].var, *index]))
    total = op.emit(axes, guarded(guards, element, Const(0.0)), summed(x.ttype), reduce, part="sum")
    padded = bool(op.integer("count_include_pad"))
    counted = [inside(w, i, *((w.before, w.after) if padded else (0, 0))) for w, i in zip(frame, index, strict=True)]
    ones = simplify_scalar(guarded(counted, Const(1), Const(0)), _ranges((*axes, *reduce)))
    if isinstance(ones, Const):
        return op.map("x / n", x.ttype, x=total, n=count([r.extent for r in reduce], total.ttype))
    number = op.emit(axes[2:], ones, "i64", reduce, part="count")
    return op.map(f"x / {total.ttype}(maximum(n, 1))", x.ttype, x=total, n=number)


def _ranges(axes: Sequence[Axis]) -> Ranges:
    return {a.var.name: (Const(0), simplify(formula("e - 1", e=a.extent))) for a in axes}


@operator("LpPool")
def _lp_pool(op: Op) -> Value:
    x = op.value(0)
    p = op.integer("p", 2)
    frame, axes, reduce = _frame(op, x)
    index = _positions(frame, axes[2:], reduce)
    guards = [inside(w, i) for w, i in zip(frame, index, strict=True)]
    element = x.access([axes[0].var, axes[1].var, *index])
    power = formula(wide(_power(p), x.ttype), x=element, p=float(p))
    plain = p == 1 and summed(x.ttype) == x.ttype
    total = op.emit(axes, guarded(guards, power, Const(0.0)), summed(x.ttype), reduce, part="" if plain else "sum")
    return total if plain else op.map(_root(p, x.ttype), x.ttype, x=total, p=1.0 / p)


def _power(p: int) -> str:
    return {1: "abs(x)", 2: "x * x"}.get(p, "pow(abs(x), p)")


def _root(p: int, ttype: str) -> str:
    return {1: "x" if summed(ttype) == ttype else f"{ttype}(x)", 2: "sqrt(x)"}.get(p, "pow(x, p)")


@operator("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def _global(op: Op) -> Value:
    x = op.value(0)
    if x.rank < 3:
        raise ShapeError(f"an input {shape_text(x.shape)} without spatial dimensions")
    axes = tuple(range(2, x.rank))
    if op.kind == "GlobalMaxPool":
        return op.reduce("max", axes, x=x)
    if op.kind == "GlobalLpPool":
        p = op.integer("p", 2)
        total = op.reduce("sum", axes, wide(_power(p), x.ttype), x=x, p=float(p), part="sum")
        return op.map(_root(p, x.ttype), x.ttype, x=total, p=1.0 / p)
    return op.mean(axes, x)


@operator("LRN")
def _lrn(op: Op) -> Value:
    """Each element divided by a power of the sum of squares over its neighbouring channels."""
    x = op.value(0)
    if x.rank < 2:
        raise ShapeError(f"an input {shape_text(x.shape)} without channels")
    size = op.integer("size", 1)
    if size < 1:
        raise op.invalid(f"size is {size}")
    axes = op.axes_of(x.shape)
    (r,) = op.builder.iterators("r", [Const(size)])
    at = formula("c + r - before", c=axes[1].var, r=r.var, before=(size - 1) // 2)
    element = x.access([axes[0].var, at, *(a.var for a in axes[2:])])
    condition = formula("at >= 0 and at < channels", at=at, channels=x.shape[1])
    body = guarded([condition], formula(wide("x * x", x.ttype), x=element), Const(0.0))
    total = op.emit(axes, body, summed(x.ttype), [r], part="squares")
    scale = op.number("alpha", 1e-4) / size
    numerator = wide("x", x.ttype)
    return op.map(
        f"{numerator} / pow(bias + scale * s, beta)",
        x.ttype,
        x=x,
        s=total,
        bias=op.number("bias", 1.0),
        scale=scale,
        beta=op.number("beta", 0.75),
    )


@operator("LpNormalization")
def _lp_normalization(op: Op) -> Value:
    """Each vector along an axis divided by its norm; 0 stays 0."""
    x = op.value(0)
    p = op.integer("p", 2)
    axis = op.axis(op.integer("axis", -1), x.rank)
    if p not in (1, 2) or TTYPES[x.ttype].kind != "float":
        raise op.invalid(f"p is {p}, the type {x.ttype}", "p must be 1 or 2, the input floating-point.")
    norm = op.reduce("sum", (axis,), wide(_power(p), x.ttype), x=x, part="sum")
    text = f"where(n == 0.0, 0.0, {wide('x', x.ttype)} / {'sqrt(n)' if p == 2 else 'n'})"
    return op.map(text, x.ttype, x=x, n=norm)
