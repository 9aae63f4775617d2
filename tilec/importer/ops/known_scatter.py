"""Scatters with indices known at import or computed from sizes: for each element the update that writes it, as index
algebra or a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilec.importer.builder import Axis
from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.value import Value, static
from tilec.ir.algebra import bounds_of, equal, simplify, simplify_scalar
from tilec.ir.expr import Binary, Const, Expr, Var, constant_value, substitute, variables
from tilec.ir.index_forms import is_index
from tilec.ir.text import text_of

Indices = NDArray[np.int64]

MAX_TABLE_ELEMENTS = 1 << 20
"""Maximal number of elements of a table."""


@dataclass(frozen=True, slots=True)
class KnownIndices:
    """The update of the element at the scatter's iterators, for known indices.

    places    the update's index, None when `order` gives it
    inside    whether the element has an update; None when all have
    order     for each element the number of the last update that writes it, -1 for none
    single    whether no element is written twice
    """

    places: tuple[Expr, ...] | None
    inside: Expr | None
    order: Indices | None
    single: bool


def known_elements(op: Op, axes: Sequence[Axis], indices: Value, axis: int) -> KnownIndices | None:
    """Known indices along one axis; None when they are not known, or only too large a table could represent them."""
    size = constant_value(axes[axis].extent)
    if indices.array is None or size is None:
        return None
    at = _wrapped(op, indices.array.astype(np.int64), size)
    lines = np.moveaxis(at, axis, -1)
    line = lines.reshape(-1, at.shape[axis])[0] if at.size else None
    walked = _walked([line], [axes[axis]]) if line is not None and (lines == line).all() else None
    if walked is not None:
        return walked
    shape = static([a.extent for a in axes])
    if shape is None or np.prod(shape) > MAX_TABLE_ELEMENTS:
        return None
    order = np.full(shape, -1, np.int64)
    part = order[tuple(slice(None if d == axis else e) for d, e in enumerate(at.shape))]
    numbers = np.arange(at.shape[axis]).reshape([-1 if d == axis else 1 for d in range(at.ndim)])
    np.put_along_axis(part, at, numbers, axis)
    return KnownIndices(None, None, order, int((order >= 0).sum()) == at.size)


def known_coordinates(op: Op, axes: Sequence[Axis], indices: Value) -> KnownIndices | None:
    """The same for coordinates along the first axes, which are the last dimension of the indices."""
    shape = static([a.extent for a in axes])
    if indices.array is None or shape is None:
        return None
    array = indices.array.astype(np.int64)
    places = tuple(_wrapped(op, array[..., c], extent) for c, extent in enumerate(shape))
    walked = _walked(places, axes) if array.size else None
    if walked is not None:
        return walked
    if np.prod(shape) > MAX_TABLE_ELEMENTS:
        return None
    number = int(np.prod(array.shape[:-1]))
    order = np.full(shape, -1, np.int64)
    order[tuple(p.ravel() for p in places)] = np.arange(number) if shape else number - 1
    return KnownIndices(None, None, order, int((order >= 0).sum()) == number)


def computed_coordinates(op: Op, axes: Sequence[Axis], reads: Sequence[Axis], indices: Value) -> KnownIndices | None:
    """Coordinates along the first axes that are computed from sizes, for the updates at `reads`, where each walks by
    ones along its own dimension of the updates, as in assignments to slices: the sizes must leave room. None for any
    others."""
    inside: Expr | None = None
    rooms: list[tuple[Expr, Expr]] = []
    first = {read.var.name: Const(0) for read in reads if read.extent == Const(1)}
    left = {read.var: read.extent for read in reads if read.var.name not in first}
    places: dict[Var, Expr] = {}
    for c, axis in enumerate(axes):
        index = simplify_scalar(substitute(indices.at([*(read.var for read in reads), Const(c)]), first))
        if not is_index(index):
            return None
        start, along = _start(index, left)
        low = bounds_of(start)[0]
        if low is None or low < 0 or not variables(start).isdisjoint(read.var.name for read in reads):
            return None
        offset = simplify(formula("i - start", i=axis.var, start=start))
        if along is not None:
            places[along] = offset
        count = Const(1) if along is None else left.pop(along)
        rooms.append((simplify(formula("start + n", start=start, n=count)), axis.extent))
        for condition in _within(offset, start, count, axis.extent):
            inside = condition if inside is None else formula("a and b", a=inside, b=condition)
    if left:
        return None
    for end, extent in rooms:
        op.sizes.demand(Binary("<=", end, extent), f"elements up to {text_of(end)} of {text_of(extent)} are written")
    return KnownIndices(tuple(places.get(r.var, Const(0)) for r in reads), inside, None, single=True)


def _start(index: Expr, along: Iterable[Var]) -> tuple[Expr, Var | None]:
    """The first place of an index, and the iterator by whose ones it goes on; None where it is one place."""
    for var in along:
        start = simplify(substitute(index, {var.name: Const(0)}))
        if equal(index, formula("start + i", start=start, i=var)):
            return start, var
    return index, None


def _within(offset: Expr, start: Expr, count: Expr, extent: Expr) -> Iterator[Expr]:
    """The conditions under which a number of steps from the start is one of `count`."""
    if start != Const(0):
        yield formula("offset >= 0", offset=offset)
    if not equal(formula("start + n", start=start, n=count), extent):
        yield formula("offset < n", offset=offset, n=count)


def _wrapped(op: Op, indices: Indices, extent: int) -> Indices:
    """Known indices counted from the front. Raises ConfigError for one outside."""
    outside = indices[(indices < -extent) | (indices >= extent)]
    if outside.size:
        raise op.invalid(f"index {int(outside[0])} lies outside a dimension of extent {extent}")
    return np.where(indices < 0, indices + extent, indices)


def _walked(lines: Sequence[Indices], axes: Sequence[Axis]) -> KnownIndices | None:
    """Coordinates with a constant step along each axis, each along its own dimension of the updates: assignments to
    slices. None for any others."""
    extents = lines[0].shape
    places: list[Expr] = [Const(0)] * len(extents)
    inside: Expr | None = None
    left = {d for d, e in enumerate(extents) if e > 1}
    for line, axis in zip(lines, axes, strict=True):
        along = [d for d in range(line.ndim) if (line != line.take([0], d)).any()]
        if len(along) > 1 or not left.issuperset(along):
            return None
        left.difference_update(along)
        origin, count = int(line.flat[0]), extents[along[0]] if along else 1
        step = int(line.take(1, along[0]).flat[0]) - origin if along else 1
        walk = origin + step * np.arange(count).reshape([-1 if d in along else 1 for d in range(line.ndim)])
        if not (line == walk).all():
            return None
        place, conditions = _place(axis, origin, step, count)
        if along:
            places[along[0]] = place
        for condition in conditions:
            inside = condition if inside is None else formula("a and b", a=inside, b=condition)
    return None if left else KnownIndices(tuple(places), inside, None, single=True)


def _place(axis: Axis, origin: int, step: int, count: int) -> tuple[Expr, list[Expr]]:
    """The number of steps from the origin to an index, and the conditions under which it is one of `count`."""
    size = constant_value(axis.extent) or 0
    offset = formula("i - o" if step > 0 else "o - i", i=axis.var, o=origin)
    ends = sorted(o if step > 0 else -o for o in (-origin, size - 1 - origin))
    place = formula("offset // s", offset=offset, s=abs(step)) if abs(step) > 1 else offset
    conditions: list[Expr] = []
    if ends[0] < 0:
        conditions.append(formula("offset >= 0", offset=offset))
    if ends[1] >= abs(step) * count:
        conditions.append(formula("offset < n", offset=offset, n=abs(step) * count))
    if abs(step) > 1:
        conditions.append(formula("offset % s == 0", offset=offset, s=abs(step)))
    return place, conditions
