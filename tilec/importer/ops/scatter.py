"""Scatters in gather form: every element searches the updates that write it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilec.importer.builder import Axis
from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.ops.gather import require_range
from tilec.importer.ops.known_scatter import KnownIndices, computed_coordinates, known_coordinates, known_elements
from tilec.importer.registry import operator
from tilec.importer.shapes import ShapeError, reshape_index, shape_text, size_of
from tilec.importer.value import Value
from tilec.importer.work_estimate import require_affordable
from tilec.ir.algebra import bounds_of
from tilec.ir.expr import Access, Binary, Call, Const, Expr
from tilec.ir.types import TTYPES

REDUCTIONS = {
    "add": ("sum", "x + u"),
    "max": ("max", "maximum(x, u)"),
    "min": ("min", "minimum(x, u)"),
    "mul": ("prod", "x * u"),
}
"""Reduction of an element's updates -> reducer, formula that joins updates and element."""


@dataclass(frozen=True, slots=True)
class Search:
    """The updates of an element.

    axes      iterators over the data; whether an update writes an element depends on the first `depth` of them
    reads     iterators over the candidate updates, in the order in which the operator writes them
    inside    whether the element at `axes` can have updates; None when all can
    hit       whether the update at `reads` writes an element inside
    update    the update at a position along `reads` for the element at `axes`
    known     the same for known indices
    """

    axes: tuple[Axis, ...]
    depth: int
    reads: tuple[Axis, ...]
    inside: Expr | None
    hit: Expr
    update: Callable[[Sequence[Expr]], Access]
    known: KnownIndices | None

    def within(self, body: Expr, outside: Expr) -> Expr:
        """A body that reads updates, guarded where there are elements without."""
        return body if self.inside is None else formula("where(c, a, b)", c=self.inside, a=body, b=outside)


@operator("Scatter", "ScatterElements")
def _scatter_elements(op: Op) -> Value:
    """`Y[i][indices[i][j][k]][k] = updates[i][j][k]` along axis 1, like `GatherElements` with the sides exchanged."""
    x, indices, updates = (op.value(i) for i in range(3))
    axis = op.axis(op.integer("axis"), x.rank)
    if not x.rank == indices.rank == updates.rank:
        raise ShapeError(f"data {shape_text(x.shape)} and indices {shape_text(indices.shape)} have different ranks")
    for d in range(x.rank):
        op.require_same(indices.shape[d], updates.shape[d], f"dimension {d} of indices and updates")
        room = bounds_of(Binary("-", x.shape[d], indices.shape[d]))[1]
        if d != axis and room is not None and room < 0:
            raise ShapeError(f"data {shape_text(x.shape)} has no room for indices {shape_text(indices.shape)}")
    require_range(op, indices, x.shape[axis])
    axes = op.axes_of(x.shape)
    reads = op.builder.iterators("r", [indices.shape[axis]])
    hit = _lands(indices, [reads[0].var if d == axis else a.var for d, a in enumerate(axes)], axes[axis])
    inside: Expr | None = None
    for d, a in enumerate(axes):
        if d != axis and a.extent != indices.shape[d]:
            short = formula("i < e", i=a.var, e=indices.shape[d])
            inside = short if inside is None else formula("a and b", a=inside, b=short)

    def update(places: Sequence[Expr]) -> Access:
        return updates.access([places[0] if d == axis else a.var for d, a in enumerate(axes)])

    known = known_elements(op, axes, indices, axis)
    return scattered(op, x, Search(axes, x.rank, reads, inside, hit, update, known))


@operator("ScatterND")
def _scatter_nd(op: Op) -> Value:
    """The last dimension of the indices has leading coordinates into the data, the updates the rest."""
    x, indices, updates = (op.value(i) for i in range(3))
    depth = indices.rank - 1 + x.rank - updates.rank
    described = f"updates {shape_text(updates.shape)} at {shape_text(indices.shape)} into data {shape_text(x.shape)}"
    if not indices.rank or not 0 <= depth <= x.rank:
        raise ShapeError(described)
    op.require_same(indices.shape[-1], Const(depth), f"{described}, coordinates")
    wanted = (*indices.shape[:-1], *x.shape[depth:])
    for d, (a, b) in enumerate(zip(updates.shape, wanted, strict=True)):
        op.require_same(a, b, f"dimension {d} of the updates")
    for c in range(depth):
        require_range(op, indices, x.shape[c], c)
    axes = op.axes_of(x.shape)
    reads = op.builder.iterators([f"r{d}" for d in range(indices.rank - 1)], indices.shape[:-1])
    hit: Expr = Const(True)
    for c in range(depth):
        lands = _lands(indices, [*(r.var for r in reads), Const(c)], axes[c])
        hit = formula("a and b", a=hit, b=lands) if c else lands

    def update(places: Sequence[Expr]) -> Access:
        return updates.access([*places, *(a.var for a in axes[depth:])])

    known = known_coordinates(op, axes[:depth], indices) or computed_coordinates(op, axes[:depth], reads, indices)
    return scattered(op, x, Search(axes, depth, reads, None, hit, update, known))


def _lands(indices: Value, at: Sequence[Expr], axis: Axis) -> Expr:
    """Whether an index, counted from the end where negative, is the element's; one outside the data is no element's."""
    index = indices.at(at)
    if indices.ttype != "i64" and not isinstance(index, Const):
        index = Call("i64", (index,))
    return formula("where(at < 0, at + e, at) == i", at=index, e=axis.extent, i=axis.var)


def scattered(op: Op, x: Value, search: Search) -> Value:
    """The data with the updates of a search, joined by the attribute `reduction`."""
    reduction = op.text("reduction", "none")
    if reduction not in ("none", *REDUCTIONS):
        raise op.invalid(f"reduction is {reduction!r}", f"It must be none, {', '.join(REDUCTIONS)}.")
    if any(r.extent == Const(0) for r in search.reads):
        return x
    element = x.at([a.var for a in search.axes])
    joined = "u" if reduction == "none" else _texts(x, reduction)[1]
    known = search.known
    if known is not None and known.places is not None:
        chosen = formula(joined, u=search.update(known.places), x=element)
        if known.inside is not None:
            chosen = formula("where(c, a, b)", c=known.inside, a=chosen, b=element)
        return op.emit(search.axes, search.within(chosen, element), x.ttype)
    if reduction == "none" or (known is not None and known.single):
        last = _last(op, search)
        at = last.at([a.var for a in search.axes[: search.depth]])
        update = search.update(_places(search, formula("maximum(at, 0)", at=at)))
        chosen = formula(f"where(at >= 0, {joined}, x)", at=at, u=update, x=element)
        return op.emit(search.axes, search.within(chosen, element), x.ttype)
    require_affordable(op, [a.extent for a in (*search.axes, *search.reads)])
    reducer = _texts(x, reduction)[0]
    update = search.update([r.var for r in search.reads])
    if not search.reads:
        return op.emit(search.axes, formula(f"where(hit, {joined}, x)", hit=search.hit, u=update, x=element), x.ttype)
    miss: Expr = {"sum": _literal(x, 0), "prod": _literal(x, 1)}.get(reducer, element)
    body = search.within(formula("where(hit, u, miss)", hit=search.hit, u=update, miss=miss), miss)
    joined_updates = op.emit(search.axes, body, x.ttype, search.reads, reducer, part="updates")
    return op.map(joined, x=x, u=joined_updates)


def _places(search: Search, flat: Expr) -> list[Expr]:
    """The index along each of `reads` of the update with this number."""
    places: list[Expr] = []
    for d, read in enumerate(search.reads):
        behind = size_of([r.extent for r in search.reads[d + 1 :]])
        place = flat if behind == Const(1) else formula("i // n", i=flat, n=behind)
        places.append(place if d == 0 else formula("i % e", i=place, e=read.extent))
    return places


def _texts(x: Value, reduction: str) -> tuple[str, str]:
    """Reducer and joining body; for booleans the sum is `or`, the product `and`."""
    if x.ttype == "bool":
        reduction = {"add": "max", "mul": "min"}.get(reduction, reduction)
    return REDUCTIONS[reduction]


def _literal(x: Value, number: int) -> Const:
    return Const(float(number)) if TTYPES[x.ttype].kind == "float" else Const(number)


def _last(op: Op, search: Search) -> Value:
    """The number of the last update that writes each element, -1 where none does."""
    if search.known is not None and search.known.order is not None:
        return op.constant(search.known.order, "i64", part="last")
    axes = search.axes[: search.depth]
    extents = [r.extent for r in search.reads]
    require_affordable(op, [*(a.extent for a in axes), *extents])
    flat = reshape_index([size_of(extents)], extents, [r.var for r in search.reads], sizes=op.sizes)[0]
    body = search.within(formula("where(hit, flat, -1)", hit=search.hit, flat=flat), Const(-1))
    return op.emit(axes, body, "i64", search.reads, "max", part="last")
