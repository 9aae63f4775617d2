"""Movement: operators that permute, repeat or select elements, as index algebra over one tensor."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.importer.broadcasting import broadcast, repeated_index
from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.registry import operator
from tilec.importer.shapes import ShapeError, reshape_index, shape_text, size_of, solve_reshape
from tilec.importer.value import Value, extents
from tilec.ir.algebra import equal, simplify
from tilec.ir.expr import Binary, Const, Expr, constant_value

MAX_PARTS = 64
"""Maximal number of parts concatenated by one body; more are concatenated in groups, so that bodies stay small."""


def reshaped(op: Op, x: Value, shape: Sequence[Expr], part: str = "") -> Value:
    """`x` in another shape with as many elements; `x` itself when the shape is the same."""
    shape = extents(shape)
    if len(shape) == x.rank and all(equal(a, b) for a, b in zip(shape, x.shape, strict=True)):
        return x
    axes = op.axes_of(shape)
    return op.emit(axes, x.at(reshape_index(x.shape, shape, [a.var for a in axes], sizes=op.sizes)), x.ttype, part=part)


@operator("Reshape")
def _reshape(op: Op) -> Value:
    x = op.value(0)
    target = op.setting(1, "shape")
    if target is None:
        raise op.invalid("the shape is missing")
    return reshaped(op, x, solve_reshape(x.shape, target, zero_copies=not op.integer("allowzero"), sizes=op.sizes))


@operator("Flatten")
def _flatten(op: Op) -> Value:
    x = op.value(0)
    axis = op.integer("axis", 1)
    axis = x.rank if axis == x.rank else op.axis(axis, x.rank) if x.rank else 0
    return reshaped(op, x, (size_of(x.shape[:axis]), size_of(x.shape[axis:])))


@operator("Squeeze")
def _squeeze(op: Op) -> Value:
    x = op.value(0)
    axes = op.axes(1, "axes", x.rank)
    if axes is None:
        axes = tuple(d for d, extent in enumerate(x.shape) if extent == Const(1))
        for extent in x.shape:
            if constant_value(extent) is None:
                op.sizes.demand(Binary("!=", extent, Const(1)), "dimensions of one element are removed")
    for axis in axes:
        op.require_same(x.shape[axis], Const(1), f"axis {axis} of {shape_text(x.shape)} is squeezed")
    return reshaped(op, x, [extent for d, extent in enumerate(x.shape) if d not in axes])


@operator("Unsqueeze")
def _unsqueeze(op: Op) -> Value:
    x = op.value(0)
    given = op.integers("axes") or op.constants(1) or ()
    axes = op.axes(1, "axes", x.rank + len(given)) or ()
    if len(axes) != len(given):
        raise op.invalid(f"an axis occurs twice in {list(given)}")
    rest = iter(x.shape)
    return reshaped(op, x, [Const(1) if d in axes else next(rest) for d in range(x.rank + len(axes))])


@operator("Transpose")
def _transpose(op: Op) -> Value:
    x = op.value(0)
    order = op.integers("perm") or tuple(reversed(range(x.rank)))
    if sorted(order) != list(range(x.rank)):
        raise op.invalid(f"perm {list(order)} does not permute {x.rank} dimensions")
    return transposed(op, x, order)


def transposed(op: Op, x: Value, order: Sequence[int], part: str = "") -> Value:
    """Dimension `order[d]` of `x` becomes dimension d."""
    if list(order) == list(range(x.rank)):
        return x
    axes = op.axes_of([x.shape[d] for d in order])
    index = [axes[list(order).index(d)].var for d in range(x.rank)]
    return op.emit(axes, x.at(index), x.ttype, part=part)


@operator("Expand")
def _expand(op: Op) -> Value:
    x = op.value(0)
    target = op.contents(1) or ()
    shape = broadcast(x.shape, target, sizes=op.sizes)
    if len(shape) == x.rank and all(equal(a, b) for a, b in zip(shape, x.shape, strict=True)):
        return x
    axes = op.axes_of(shape)
    aligned = axes[len(axes) - x.rank :]
    return op.emit(axes, x.at(repeated_index(x.shape, aligned, op.sizes)), x.ttype)


@operator("Tile")
def _tile(op: Op) -> Value:
    x = op.value(0)
    repeats = op.contents(1) or ()
    if len(repeats) != x.rank:
        raise op.invalid(f"{len(repeats)} repeats for {x.rank} dimensions")
    axes = op.axes_of([simplify(formula("e * r", e=e, r=r)) for e, r in zip(x.shape, repeats, strict=True)])
    index = [formula("i % e", i=a.var, e=e) for a, e in zip(axes, x.shape, strict=True)]
    return op.emit(axes, x.at(index), x.ttype)


@operator("Concat")
def _concat(op: Op) -> Value:
    return concatenated(op, op.values(), op.integer("axis"))


def concatenated(op: Op, parts: Sequence[Value], axis: int, part: str = "", output: int = 0) -> Value:
    """The parts one behind another along an axis: guards select the part of an index. They are read, unless all are
    index arithmetic."""
    rank = parts[0].rank
    axis = op.axis(axis, rank)
    for other in parts[1:]:
        if other.rank != rank:
            raise ShapeError(f"shapes {' and '.join(shape_text(p.shape) for p in parts)} have different ranks")
        for d in range(rank):
            if d != axis:
                op.require_same(parts[0].shape[d], other.shape[d], f"dimension {d} of the parts")
    parts = [p for p in parts if p.shape[axis] != Const(0)] or list(parts[:1])
    while len(parts) > MAX_PARTS:
        groups = [parts[start : start + MAX_PARTS] for start in range(0, len(parts), MAX_PARTS)]
        parts = [concatenated(op, group, axis, part=f"part{number}") for number, group in enumerate(groups)]
    if len(parts) == 1:
        return parts[0]
    ends: list[Expr] = []
    for p in parts:
        ends.append(simplify(formula("end + e", end=ends[-1] if ends else 0, e=p.shape[axis])))
    axes = op.axes_of([*parts[0].shape[:axis], ends[-1], *parts[0].shape[axis + 1 :]])
    written = all(p.form is not None for p in parts)
    body: Expr | None = None
    for number in reversed(range(len(parts))):
        start = ends[number - 1] if number else Const(0)
        index = [formula("i - start", i=a.var, start=start) if d == axis else a.var for d, a in enumerate(axes)]
        element = parts[number].at(index) if written else parts[number].access(index)
        inside = {"i": axes[axis].var, "end": ends[number], "element": element}
        body = element if body is None else formula("where(i < end, element, body)", body=body, **inside)
    assert body is not None
    return op.emit(axes, body, parts[0].ttype, part=part, output=output)


@operator("DepthToSpace")
def _depth_to_space(op: Op) -> Value:
    """DCR: the block is the outer part of the channels; CRD: the inner one."""
    x = op.value(0)
    block = op.integer("blocksize")
    n, c, h, w = _image(op, x)
    depth = solve_reshape((c,), (Const(block * block), Const(-1)), zero_copies=False, sizes=op.sizes)[1]
    axes = op.builder.iterators("nchw", [n, depth, *(simplify(formula("e * b", e=e, b=block)) for e in (h, w))])
    inner = op.text("mode", "DCR")
    text = {"DCR": "((h % b) * b + w % b) * d + c", "CRD": "(c * b + h % b) * b + w % b"}.get(inner)
    if text is None:
        raise op.invalid(f"mode is {inner!r}", "It must be DCR or CRD.")
    vn, vc, vh, vw = (a.var for a in axes)
    channel = formula(text, c=vc, h=vh, w=vw, b=block, d=depth)
    index = (vn, channel, formula("h // b", h=vh, b=block), formula("w // b", w=vw, b=block))
    return op.emit(axes, x.at(index), x.ttype)


@operator("SpaceToDepth")
def _space_to_depth(op: Op) -> Value:
    x = op.value(0)
    block = op.integer("blocksize")
    n, c, h, w = _image(op, x)
    parts = (Const(-1), Const(block))
    rows, columns = (solve_reshape((e,), parts, zero_copies=False, sizes=op.sizes)[0] for e in (h, w))
    axes = op.builder.iterators("nchw", [n, simplify(formula("c * b * b", c=c, b=block)), rows, columns])
    vn, vc, vh, vw = (a.var for a in axes)
    row = formula("h * b + i // c // b", h=vh, i=vc, c=c, b=block)
    column = formula("w * b + i // c % b", w=vw, i=vc, c=c, b=block)
    return op.emit(axes, x.at((vn, formula("i % c", i=vc, c=c), row, column)), x.ttype)


def _image(op: Op, x: Value) -> tuple[Expr, Expr, Expr, Expr]:
    if x.rank != 4:
        raise op.invalid(f"the input has rank {x.rank}, not 4")
    n, c, h, w = x.shape
    return n, c, h, w
