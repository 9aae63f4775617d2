"""Checks and counts of the elements that tiles read, following the guards (`where`) around accesses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tilec.ir.evaluate import Points, TensorWindow, scalar_value
from tilec.ir.expr import Access, Call, Expr, children
from tilec.ir.numpy_scalars import Array
from tilec.machine.batch import Batch, Read, places
from tilec.machine.units import volumes

_YES = np.True_
_NOWHERE = np.int64(1 << 62)
Guards = tuple[tuple[Expr, bool], ...]


def _all(valid: Array) -> Array:
    """A mask reduced to one truth value where it holds for all points, to keep arrays small."""
    return np.asarray(_YES) if valid.all() else valid


def defined(done: Batch) -> bool:
    """Whether the expression reads only written elements inside windows; of a `where` only the selected branch
    counts."""
    return bool(_defined(done.expr.value, done.points, done.reads).all())


def _defined(expr: Expr, points: Points, reads: Mapping[str, Read]) -> Array:
    match expr:
        case Call("where", (condition, yes, no)):
            sides = [_defined(side, points, reads) for side in (yes, no)]
            certain = _defined(condition, points, reads)
            if all(side.all() for side in sides):
                return certain
            return _all(certain & np.where(np.asarray(scalar_value(condition, points)), *sides))
        case Access(tensor):
            return _element(expr, reads[tensor], points, reads)
        case _:
            valid: Array = np.asarray(_YES)
            for child in children(expr):
                valid = valid & _defined(child, points, reads)
            return _all(valid)


def _element(access: Access, read: Read, points: Points, reads: Mapping[str, Read]) -> Array:
    if read.inside is None:
        if read.written is None:
            return np.asarray(_YES)
        marks = {access.tensor: TensorWindow(read.written, (0,) * read.written.ndim)}
        return _all(np.asarray(scalar_value(access, Points(points.box, marks, points.variables))))
    valid: Array = np.asarray(_YES)
    row, *index = places(access, points)
    for part, place, extents in zip(access.index[1:], index, read.inside.T, strict=True):
        ends = extents.reshape([-1, *[1] * (len(points.box) - 1)])
        valid = valid & _defined(part, points, reads)
        valid = valid & _all((place >= 0) & (place < ends))
    if read.written is None:
        return _all(valid)
    if not read.written.size:
        return np.zeros(np.broadcast_shapes(valid.shape, *(place.shape for place in index)), bool)
    near = [np.clip(place, 0, size - 1) for place, size in zip(index, read.written.shape[1:], strict=True)]
    return _all(valid & read.written[(row, *near)])


def followed(done: Batch, tensor: str) -> Array:
    """Number of distinct elements of a gathered tensor that each lane reads: [lanes]."""
    lanes = done.points.shape[0]
    flat: list[Array] = []
    for access, guards in _guarded(done.expr.value, ()):
        read, stored = done.reads[access.tensor], done.points.windows[access.tensor].array
        if read.held.buffer.tensor != tensor or not stored.size:
            continue
        evaluated = np.asarray(_YES)
        for condition, holds in guards:
            evaluated = evaluated & (np.asarray(scalar_value(condition, done.points), bool) == holds)
        _row, *index = places(access, done.points)
        near = [np.clip(place, 0, size - 1) for place, size in zip(index, stored.shape[1:], strict=True)]
        lane = np.arange(lanes).reshape([-1, *[1] * (len(done.points.box) - 1)])
        evaluated, lane, *near = np.broadcast_arrays(evaluated, lane, *near)
        shape = (lanes, *stored.shape[1:])
        flat.append(np.asarray(np.ravel_multi_index((lane[evaluated], *(place[evaluated] for place in near)), shape)))
        each = int(np.prod(stored.shape[1:], dtype=np.int64))
    if not flat:
        return np.zeros(lanes, np.int64)
    return np.bincount(np.unique(np.concatenate(flat)) // each, minlength=lanes)


def windows(done: Batch, tensor: str, whole: Array) -> Array:
    """Number of elements in the hull of what each lane reads of a tensor of extents `whole`: [lanes]."""
    lanes = done.points.shape[0]
    lowest: Array | None = None
    highest: Array | None = None
    for access, guards in _guarded(done.expr.value, ()):
        read = done.reads[access.tensor]
        if read.held.buffer.tensor != tensor:
            continue
        lo, hi = read.hull or _hull(access, guards, read, done, lanes)
        lo, hi = np.maximum(lo, 0), np.minimum(hi, whole)
        lowest = lo if lowest is None else np.minimum(lowest, lo)
        highest = hi if highest is None else np.maximum(highest, hi)
    if lowest is None or highest is None:
        return np.zeros(lanes, np.int64)
    return volumes(np.maximum(highest - lowest, 0))


def _hull(access: Access, guards: Guards, read: Read, done: Batch, lanes: int) -> tuple[Array, Array]:
    """The hull of the indices of an access in every lane: of those that guards let through and that are in the
    window."""
    evaluated = np.asarray(_YES)
    for condition, holds in guards:
        evaluated = evaluated & (np.asarray(scalar_value(condition, done.points), bool) == holds)
    _row, *index = places(access, done.points)
    shape = (lanes, *done.points.shape[1:])
    first, last = read.held.lo[read.rows], read.held.hi[read.rows]
    lo, hi = np.full((lanes, len(index)), _NOWHERE), np.zeros((lanes, len(index)), np.int64)
    for axis, place in enumerate(index):
        at = np.broadcast_to(place, shape).reshape(lanes, -1) + first[:, axis : axis + 1]
        read_there = np.broadcast_to(evaluated, shape).reshape(lanes, -1) & (at >= 0) & (at < last[:, axis : axis + 1])
        lo[:, axis] = np.where(read_there, at, _NOWHERE).min(axis=1, initial=_NOWHERE)
        hi[:, axis] = np.where(read_there, at + 1, 0).max(axis=1, initial=0)
    return lo, hi


def _guarded(expr: Expr, guards: Guards) -> Iterator[tuple[Access, Guards]]:
    """Every access with the conditions around it, and the values they must have for the access to be evaluated."""
    match expr:
        case Call("where", (condition, yes, no)):
            yield from _guarded(condition, guards)
            yield from _guarded(yes, (*guards, (condition, True)))
            yield from _guarded(no, (*guards, (condition, False)))
            return
        case Access():
            yield expr, guards
    for child in children(expr):
        yield from _guarded(child, guards)
