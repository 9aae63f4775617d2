"""Scatters turned around: every element searches the updates for those that hit it (known indices become a table)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilec.importer.builder import Axis
from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.registry import operator
from tilec.importer.shapes import ShapeError, require_same, reshape_index, shape_text, size_of
from tilec.importer.value import Value, static
from tilec.importer.work import FREE_STEPS, require_affordable
from tilec.ir.expr import Access, Call, Const, Expr, bound
from tilec.ir.types import TTYPES

REDUCTIONS = {
    "add": ("sum", "x + u"),
    "max": ("max", "maximum(x, u)"),
    "min": ("min", "minimum(x, u)"),
    "mul": ("prod", "x * u"),
}
"""Reduction of the updates of an element -> reducer, how the updates join the element."""


@dataclass(frozen=True, slots=True)
class Search:
    """Which updates hit an element.

    axes      iterators over the data; whether an update hits depends on the first `depth` of them
    reads     iterators over the updates that may hit, in the order in which the operator writes them
    inside    whether the element at `axes` is one that updates exist for; None when all are
    hit       whether the update at `reads` hits an element inside
    update    the update at places along `reads` that belongs to the element at `axes`
    order     where the indices are known: for each element the number of the last update that hits it, -1 for none;
              `single` says that no element is hit twice
    """

    axes: tuple[Axis, ...]
    depth: int
    reads: tuple[Axis, ...]
    inside: Expr | None
    hit: Expr
    update: Callable[[Sequence[Expr]], Access]
    order: NDArray[np.int64] | None
    single: bool

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
        require_same(indices.shape[d], updates.shape[d], f"dimension {d} of indices and updates")
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

    order, single = _element_order(op, x, indices, axis) or (None, False)
    return scattered(op, x, Search(axes, x.rank, reads, inside, hit, update, order, single))


@operator("ScatterND")
def _scatter_nd(op: Op) -> Value:
    """The last dimension of the indices holds leading coordinates into the data, the updates what lies behind."""
    x, indices, updates = (op.value(i) for i in range(3))
    depth = bound(indices.shape[-1]) if indices.rank else None
    if depth is None or depth > x.rank:
        raise ShapeError(f"indices {shape_text(indices.shape)} into data {shape_text(x.shape)}")
    wanted = (*indices.shape[:-1], *x.shape[depth:])
    if len(wanted) != updates.rank:
        raise ShapeError(f"updates {shape_text(updates.shape)} where {shape_text(wanted)} is written")
    for d, (a, b) in enumerate(zip(updates.shape, wanted, strict=True)):
        require_same(a, b, f"dimension {d} of the updates")
    axes = op.axes_of(x.shape)
    reads = op.builder.iterators([f"r{d}" for d in range(indices.rank - 1)], indices.shape[:-1])
    hit: Expr = Const(True)
    for c in range(depth):
        lands = _lands(indices, [*(r.var for r in reads), Const(c)], axes[c])
        hit = formula("a and b", a=hit, b=lands) if c else lands

    def update(places: Sequence[Expr]) -> Access:
        return updates.access([*places, *(a.var for a in axes[depth:])])

    order, single = _coordinate_order(op, x, indices, depth) or (None, False)
    return scattered(op, x, Search(axes, depth, reads, None, hit, update, order, single))


def _lands(indices: Value, at: Sequence[Expr], axis: Axis) -> Expr:
    """Whether an index, counted from the end where negative, is the element's; one outside the data hits nothing."""
    index = indices.at(at)
    if indices.ttype != "i64" and not isinstance(index, Const):
        index = Call("i64", (index,))
    return formula("where(at < 0, at + e, at) == i", at=index, e=axis.extent, i=axis.var)


def scattered(op: Op, x: Value, search: Search) -> Value:
    """The data with the updates that a search finds, joined as the attribute `reduction` says."""
    reduction = op.text("reduction", "none")
    if reduction not in ("none", *REDUCTIONS):
        raise op.invalid(f"reduction is {reduction!r}", f"It must be none, {', '.join(REDUCTIONS)}.")
    if any(r.extent == Const(0) for r in search.reads):
        return x
    element = x.at([a.var for a in search.axes])
    if reduction == "none" or (search.order is not None and search.single):
        last = _last(op, search)
        at = last.at([a.var for a in search.axes[: search.depth]])
        update = search.update(_places(search, formula("maximum(at, 0)", at=at)))
        joined = "u" if reduction == "none" else _texts(x, reduction)[1]
        chosen = formula(f"where(at >= 0, {joined}, x)", at=at, u=update, x=element)
        return op.emit(search.axes, search.within(chosen, element), x.ttype)
    require_affordable(op, [a.extent for a in (*search.axes, *search.reads)])
    reducer, joined = _texts(x, reduction)
    update = search.update([r.var for r in search.reads])
    if not search.reads:
        return op.emit(search.axes, formula(f"where(hit, {joined}, x)", hit=search.hit, u=update, x=element), x.ttype)
    miss: Expr = {"sum": _literal(x, 0), "prod": _literal(x, 1)}.get(reducer, element)
    body = search.within(formula("where(hit, u, miss)", hit=search.hit, u=update, miss=miss), miss)
    found = op.emit(search.axes, body, x.ttype, search.reads, reducer, part="updates")
    return op.map(joined, x=x, u=found)


def _places(search: Search, flat: Expr) -> list[Expr]:
    """The place along each of `reads` of the update with this number."""
    places: list[Expr] = []
    for d, read in enumerate(search.reads):
        behind = size_of([r.extent for r in search.reads[d + 1 :]])
        place = flat if behind == Const(1) else formula("i // n", i=flat, n=behind)
        places.append(place if d == 0 else formula("i % e", i=place, e=read.extent))
    return places


def _texts(x: Value, reduction: str) -> tuple[str, str]:
    """Reducer and joining body; of booleans the sum is `or`, the product `and`."""
    if x.ttype == "bool":
        reduction = {"add": "max", "mul": "min"}.get(reduction, reduction)
    return REDUCTIONS[reduction]


def _literal(x: Value, number: int) -> Const:
    return Const(float(number)) if TTYPES[x.ttype].kind == "float" else Const(number)


def _last(op: Op, search: Search) -> Value:
    """The number of the last update that hits each element, -1 where none does."""
    if search.order is not None:
        return op.constant(search.order, "i64", part="last")
    axes = search.axes[: search.depth]
    extents = [r.extent for r in search.reads]
    require_affordable(op, [*(a.extent for a in axes), *extents])
    flat = reshape_index([size_of(extents)], extents, [r.var for r in search.reads])[0]
    body = search.within(formula("where(hit, flat, -1)", hit=search.hit, flat=flat), Const(-1))
    return op.emit(axes, body, "i64", search.reads, "max", part="last")


def _wrapped(op: Op, indices: NDArray[np.int64], extent: int) -> NDArray[np.int64]:
    """Known indices counted from the front. Raises ConfigError for one outside."""
    outside = indices[(indices < -extent) | (indices >= extent)]
    if outside.size:
        raise op.invalid(f"index {int(outside[0])} lies outside a dimension of extent {extent}")
    return np.where(indices < 0, indices + extent, indices)


Order = tuple[NDArray[np.int64], bool]


def _element_order(op: Op, x: Value, indices: Value, axis: int) -> Order | None:
    """`Search.order` and `Search.single` of known indices along an axis; None where a table would be large."""
    shape = static(x.shape)
    if indices.array is None or shape is None or np.prod(shape) > FREE_STEPS:
        return None
    at = _wrapped(op, indices.array.astype(np.int64), shape[axis])
    order = np.full(shape, -1, np.int64)
    part = order[tuple(slice(None if d == axis else e) for d, e in enumerate(at.shape))]
    numbers = np.arange(at.shape[axis]).reshape([-1 if d == axis else 1 for d in range(at.ndim)])
    np.put_along_axis(part, at, numbers, axis)
    return order, int((order >= 0).sum()) == at.size


def _coordinate_order(op: Op, x: Value, indices: Value, depth: int) -> Order | None:
    """The same for known coordinates."""
    shape = static(x.shape[:depth])
    if indices.array is None or shape is None or np.prod(shape) > FREE_STEPS:
        return None
    at = (
        indices.array.astype(np.int64).reshape(-1, depth) if depth else np.zeros((indices.array.size or 1, 0), np.int64)
    )
    places = tuple(_wrapped(op, at[:, c], extent) for c, extent in enumerate(shape))
    order = np.full(shape, -1, np.int64)
    order[places] = np.arange(len(at))
    return order, int((order >= 0).sum()) == len(at)
