"""DeformConv: a convolution whose windows are sampled at fractional offsets given by a tensor."""

from __future__ import annotations

from itertools import product

from tilec.importer.builder import Axis
from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.ops.convolution import biased, in_groups, kernel_of, require_channels
from tilec.importer.ops.window import KERNEL, SPATIAL, WindowFunction, guarded, windows
from tilec.importer.registry import operator
from tilec.importer.shapes import ShapeError, shape_text, size_of
from tilec.importer.value import Value
from tilec.ir.algebra import simplify
from tilec.ir.expr import Call, Const, Expr

INNER = {1: ("x",), 2: ("y", "x"), 3: ("z", "y", "x")}
"""Iterators over the elements of a window while it is gathered."""


@operator("DeformConv")
def _deform_conv(op: Op) -> Value:
    """The elements of all windows are gathered first, then contracted with the weight."""
    x, weight, offset, bias, mask = op.value(0), op.value(1), op.value(2), op.optional(3), op.optional(4)
    if x.rank - 2 not in SPATIAL or weight.rank != x.rank or offset.rank != x.rank:
        raise ShapeError(f"an input {shape_text(x.shape)} and a weight {shape_text(weight.shape)}")
    kernel, channels = kernel_of(op, weight), weight.shape[1]
    require_channels(op, channels)
    group, outputs = in_groups(op, weight.shape[0], "output")
    op.require_same(x.shape[1], simplify(formula("c * g", c=channels, g=group)), "channels of the input and the weight")
    groups, alike = in_groups(op, x.shape[1], "input", "offset_group", "groups of offsets")
    frame = windows(op, x.shape[2:], kernel)
    points = len(kernel)
    elements = simplify(formula("g * k * n", g=groups, k=size_of(kernel), n=points))
    op.require_same(offset.shape[1], elements, "offsets and elements of the window")
    for each, what in ((offset, "offsets"), (mask, "the mask")):
        if each is not None:
            wanted = (x.shape[0], *(w.out for w in frame))
            for found, extent in zip((each.shape[0], *each.shape[2:]), wanted, strict=True):
                op.require_same(found, extent, f"{what} {shape_text(each.shape)} and windows")
    if mask is not None:
        op.require_same(mask.shape[1], simplify(formula("g * k", g=groups, k=size_of(kernel))), "the mask and windows")
    columns = _gathered(op, x, offset, mask, frame, groups, alike)
    names = SPATIAL[points]
    axes = op.builder.iterators(("n", "o", *names), [x.shape[0], weight.shape[0], *(w.out for w in frame)])
    reduce = op.builder.iterators(("c", *KERNEL[points]), [channels, *kernel])
    c, *inner = (Const(0) if r.extent == Const(1) else r.var for r in reduce)
    channel = c if group == 1 else formula("o // m * n + c", o=axes[1].var, m=outputs, n=channels, c=c)
    value = columns.access([axes[0].var, channel, *inner, *(a.var for a in axes[2:])])
    body = formula("x * w", x=value, w=weight.access([axes[1].var, c, *inner]))
    total = op.emit(axes, body, x.ttype, reduce, part="" if bias is None else "product")
    return biased(op, total, bias)


def _gathered(
    op: Op, x: Value, offset: Value, mask: Value | None, frame: tuple[WindowFunction, ...], groups: int, channels: Expr
) -> Value:
    """The elements of every window for every channel; `channels` of them share the offsets of one of `groups`."""
    rank = len(frame)
    compute = x.ttype if x.ttype in ("f32", "f64") else "f32"
    inner = op.builder.iterators(INNER[rank], [w.kernel for w in frame])
    outer = op.builder.iterators(SPATIAL[rank], [w.out for w in frame])
    (batch, group) = op.builder.iterators(("n", "g"), [x.shape[0], Const(groups)])
    number = _numbered(group.var, frame, inner)
    points = (batch, group, *inner, *outer)
    lines = [_line(op, offset, points, number, d, frame, compute) for d in range(rank)]
    (channel,) = op.builder.iterators(("c",), [x.shape[1]])
    axes = (batch, channel, *inner, *outer)
    place = [batch.var, formula("c // n", c=channel.var, n=channels), *(a.var for a in (*inner, *outer))]

    def term(corner: tuple[int, ...]) -> Expr:
        positions = [index.access([Const(t), *place]) for t, (index, _) in zip(corner, lines, strict=True)]
        clamped = [
            formula("maximum(minimum(i, n - 1), 0)", i=i, n=w.size) for i, w in zip(positions, frame, strict=True)
        ]
        inside = [formula("i >= 0 and i < n", i=i, n=w.size) for i, w in zip(positions, frame, strict=True)]
        element: Expr = x.access([batch.var, channel.var, *clamped])
        element = guarded(inside, element if x.ttype == compute else Call(compute, (element,)), Const(0.0))
        for t, (_, weight) in zip(corner, lines, strict=True):
            element = formula("x * w", x=element, w=weight.access([Const(t), *place]))
        return element

    corners = list(product(range(2), repeat=rank))
    body = term(corners[0])
    for corner in corners[1:]:
        body = formula("a + b", a=body, b=term(corner))
    if mask is not None:
        each = _numbered(place[1], frame, inner)
        factor: Expr = mask.access([batch.var, each, *(a.var for a in outer)])
        body = formula("x * m", x=body, m=factor if mask.ttype == compute else Call(compute, (factor,)))
    return op.emit(axes, body if x.ttype == compute else Call(x.ttype, (body,)), x.ttype, part="columns")


def _numbered(group: Expr, frame: tuple[WindowFunction, ...], inner: tuple[Axis, ...]) -> Expr:
    """The number of an element of the window among those of all groups of offsets."""
    number = group
    for w, a in zip(frame, inner, strict=True):
        number = formula("i * e + k", i=number, e=w.kernel, k=a.var)
    return number


def _line(
    op: Op,
    offset: Value,
    points: tuple[Axis, ...],
    number: Expr,
    d: int,
    frame: tuple[WindowFunction, ...],
    compute: str,
) -> tuple[Value, Value]:
    """Indices and weights of the two neighbours of every point along a dimension, neighbours first."""
    rank = len(frame)
    outer = [a.var for a in points[-rank:]]
    channel = formula("i * rank + d", i=number, rank=rank, d=d)
    given: Expr = offset.access([points[0].var, channel, *outer])
    given = given if offset.ttype == compute else Call(compute, (given,))
    regular = Call(compute, (frame[d].position(outer[d], points[2 + d].var),))
    where = op.emit(points, formula("p + o", p=regular, o=given), compute, part=f"position{d}")
    position = where.access([a.var for a in points])
    (tap,) = op.builder.iterators(("t",), [Const(2)])
    index = op.emit((tap, *points), formula("i64(floor(y)) + t", y=position, t=tap.var), "i64", part=f"index{d}")
    share = formula("where(t == 0, 1.0 - (y - floor(y)), y - floor(y))", t=tap.var, y=position)
    return index, op.emit((tap, *points), share, compute, part=f"weight{d}")
