"""Regions: boxes of a tensor as functions of the loops around a statement, evaluated for all loop positions at once.

The ends of an interval are integer arrays over the positions: the loop at depth d runs along axis -(d+1), so that ends
that depend on outer loops only broadcast into inner ones. The first interval of a region is its presence, [0, 1) where
the region exists and [0, 0) where it does not; a scalar's region has no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Ends = tuple[Ints, Ints]
Region = tuple[Ends, ...]

MAX_POSITIONS = 1 << 18
"""Maximal number of loop positions that one comparison evaluates."""
MAX_PIECES = 256
"""Maximal number of boxes into which a union that is no box is split."""
_FAR = np.int64(1) << 60


def ints(value: object) -> Ints:
    """A number or an array as int64."""
    return np.asarray(value, np.int64)


PRESENT: Ends = (ints(0), ints(1))


def empty(region: Region) -> Bools:
    """Mask over loop positions: whether a region has no elements."""
    result: Bools = np.asarray(False)
    for lo, hi in region:
        here = hi <= lo
        if here.any():
            result = np.asarray(result | here)
    return result


def intersection(a: Region, b: Region) -> Region:
    """The intersection of two regions."""
    pairs = zip(a, b, strict=True)
    return tuple((np.maximum(p[0], q[0]), np.minimum(p[1], q[1])) for p, q in pairs)


def arrays_of(*regions: Region) -> list[Ints]:
    """The arrays of all interval ends."""
    return [end for region in regions for ends in region for end in ends]


def sampled(*regions: Region) -> tuple[Region, ...]:
    """The regions at all loop positions or, where those are too many, at the first, middle and last of the longest
    loops: windows move monotonically with loops, so that a property of these holds in between."""
    shape = list(np.broadcast_shapes(*(end.shape for end in arrays_of(*regions))))
    chosen: dict[int, Ints] = {}
    while prod(shape) > MAX_POSITIONS and max(shape) > 5:
        axis = shape.index(max(shape))
        n = shape[axis]
        chosen[axis - len(shape)] = ints(sorted({0, 1, n // 2, n - 2, n - 1}))
        shape[axis] = len(chosen[axis - len(shape)])

    def pick(end: Ints) -> Ints:
        for axis, positions in chosen.items():
            if -axis <= end.ndim and end.shape[axis] > 1:
                end = np.take(end, positions, axis)
        return end

    if not chosen:
        return regions
    return tuple(tuple((pick(lo), pick(hi)) for lo, hi in region) for region in regions)


def inside(inner: Region, outer: Region) -> Bools:
    """Mask over loop positions: whether `inner` is empty or lies in `outer`."""
    result: Bools = np.asarray(True)
    for (lo, hi), (a, b) in zip(inner, outer, strict=True):
        here = (a <= lo) & (hi <= b)
        if not here.all():
            result = np.asarray(result & here)
    return np.asarray(result | empty(inner)) if not result.all() else np.asarray(True)


def disjoint(a: Region, b: Region) -> bool:
    """Whether two regions have no common element at any loop position."""
    common = intersection(a, b)
    if any((hi <= lo).all() for lo, hi in common):
        return True
    (small,) = sampled(common)
    return bool(empty(small).all())


def covered(region: Region, boxes: Sequence[Region]) -> bool:
    """Whether the union of the boxes contains the region at every loop position."""
    if any(bool(inside(region, box).all()) for box in boxes if _cheap(region, box)):
        return True
    small, *rest = sampled(region, *boxes)
    open_: Bools = ~empty(small)
    for box in rest:
        open_ = np.asarray(open_ & ~inside(small, box))
    if not open_.any():
        return True
    shape = np.broadcast_shapes(open_.shape, *(end.shape for end in arrays_of(small, *rest)))
    positions = np.argwhere(np.broadcast_to(open_, shape))[:64]
    return len(boxes) > 1 and all(
        _painted(at_position(small, p, shape), [at_position(b, p, shape) for b in rest]) for p in positions
    )


def _cheap(*regions: Region) -> bool:
    shapes = (end.shape for end in arrays_of(*regions))
    return prod(np.broadcast_shapes(*shapes)) <= MAX_POSITIONS


def at_position(region: Region, position: Ints, shape: tuple[int, ...]) -> list[tuple[int, int]]:
    """The intervals of a region at one position of the loop grid `shape`."""
    where = tuple(int(i) for i in position)
    return [(int(np.broadcast_to(lo, shape)[where]), int(np.broadcast_to(hi, shape)[where])) for lo, hi in region]


def _painted(region: list[tuple[int, int]], boxes: list[list[tuple[int, int]]]) -> bool:
    """Whether boxes cover a region at one loop position: the region is cut along all ends of boxes and every cell
    checked."""
    cuts = []
    for dim, (lo, hi) in enumerate(region):
        ends = {e for box in boxes for e in box[dim] if lo < e < hi}
        cuts.append(sorted({lo, hi} | ends))
    if prod(len(c) for c in cuts) > 1 << 20:
        return True
    painted = np.zeros([len(c) - 1 for c in cuts], bool)
    for box in boxes:
        cells = [[a >= lo and b <= hi for a, b in pairwise(c)] for c, (lo, hi) in zip(cuts, box, strict=True)]
        painted[np.ix_(*(np.flatnonzero(c) for c in cells))] = True
    return bool(painted.all())


def varies(region: Region, depth: int) -> list[int]:
    """Dimensions of a region (without presence) that depend on the loop at `depth`."""
    return [d for d, ends in enumerate(region) if d and any(_moves(end, depth) for end in ends)]


def _moves(end: Ints, depth: int) -> bool:
    if end.ndim <= depth or end.shape[-1 - depth] == 1:
        return False
    first = np.take(end, [0], -1 - depth)
    return bool((end != first).any())


def at_iteration(region: Region, depth: int, position: int) -> Region:
    """The region in one iteration of the loop at `depth`."""

    def pick(end: Ints) -> Ints:
        if end.ndim <= depth or end.shape[-1 - depth] == 1:
            return end
        return np.take(end, [position], -1 - depth)

    return tuple((pick(lo), pick(hi)) for lo, hi in region)


def _trips(region: Region, depth: int) -> int:
    return max((end.shape[-1 - depth] for end in arrays_of(region) if end.ndim > depth), default=1)


def united(region: Region, depth: int) -> list[Region] | None:
    """The boxes that a region sweeps over all iterations of the loop at `depth`; None when they are too many."""
    trips = _trips(region, depth)
    if trips == 0:
        return []
    if _cheap(_sometimes_empty(region)):
        region = _continued(region, depth)
        moving = varies(region, depth)
        if not moving and not any(_moves(end, depth) for end in region[0]):
            return [at_iteration(region, depth, 0)]
        swept = _sweep(region, moving[0] if moving else 0, depth) if len(moving) <= 1 else None
        if swept is not None:
            return [swept]
    if trips > MAX_PIECES or not _cheap(region):
        return None
    return merged([at_iteration(region, depth, i) for i in range(trips)])


def _continued(region: Region, depth: int) -> Region:
    """The same region with the ends of empty positions replaced by those of a position that is not empty (and marked
    absent there), so that an interval moves only if it moves where the region exists."""
    gone = _deep(empty(region), depth)
    if not gone.any():
        return region
    axis = -1 - depth

    def fill(end: Ints) -> Ints:
        if end.ndim <= depth or end.shape[axis] == 1:
            return end
        whole, lost = np.broadcast_arrays(_deep(end, depth), gone)
        there = np.take_along_axis(whole, np.argmin(lost, axis, keepdims=True), axis)
        return ints(np.where(lost, there, whole))

    return ((ints(0), ints(~gone)), *((fill(lo), fill(hi)) for lo, hi in region[1:]))


def _sometimes_empty(region: Region) -> Region:
    """The intervals that are empty at some positions; only those have to be combined over all loops."""
    return tuple(ends for ends in region if (ends[1] <= ends[0]).any())


def _sweep(region: Region, dim: int, depth: int) -> Region | None:
    """The box that the union of the intervals of one dimension forms; None when they leave gaps."""
    axis = -1 - depth
    gone = empty(region)
    low = np.where(gone, _FAR, region[dim][0])
    high = np.where(gone, -_FAR, region[dim][1])
    low, high = np.broadcast_arrays(*(_deep(end, depth) for end in (low, high)))
    order = np.argsort(low, axis, kind="stable")
    low, high = np.take_along_axis(low, order, axis), np.take_along_axis(high, order, axis)
    reach = np.maximum.accumulate(high, axis)
    before = np.take(reach, range(reach.shape[axis] - 1), axis)
    after = np.take(low, range(1, low.shape[axis]), axis)
    if ((after > before) & (after != _FAR)).any():
        return None
    there = (~_deep(gone, depth)).any(axis, keepdims=True)
    rest: list[Ends] = [at_iteration((ends,), depth, 0)[0] for ends in region]
    if dim:
        least, most = np.min(low, axis, keepdims=True), np.max(high, axis, keepdims=True)
        rest[dim] = (ints(np.where(there, least, 0)), ints(np.where(there, most, 0)))
    rest[0] = (ints(0), ints(there))
    return tuple(rest)


def _deep(array: Ints | Bools, depth: int) -> Ints:
    missing = depth + 1 - array.ndim
    return np.asarray(array.reshape((1,) * missing + array.shape) if missing > 0 else array)


def overlaps(region: Region, depth: int, trips: int) -> bool:
    """Whether two of the `trips` iterations of the loop at `depth` have a common element."""
    (region,) = sampled(region)
    gone = empty(region)
    if trips <= 1 or gone.all():
        return False
    trips = _trips(region, depth)
    if trips <= 1:
        return True
    axis = -1 - depth
    apart: Bools = np.asarray(False)
    for lo, hi in region[1:]:
        low = _deep(np.where(gone, _FAR, lo), depth)
        high = _deep(np.where(gone, _FAR, hi), depth)
        low, high = np.broadcast_arrays(low, high)
        if low.shape[axis] != trips:
            continue
        order = np.argsort(low, axis, kind="stable")
        low, high = np.take_along_axis(low, order, axis), np.take_along_axis(high, order, axis)
        step = np.take(high, range(trips - 1), axis) <= np.take(low, range(1, trips), axis)
        apart = np.asarray(apart | step.all(axis, keepdims=True))
        if apart.all():
            return False
    if trips > 64:
        return True
    single = [at_iteration(region, depth, i) for i in range(trips)]
    return not all(disjoint(a, b) for i, a in enumerate(single) for b in single[:i])


def repeats(region: Region, depth: int, trips: int) -> bool:
    """Whether some iteration of the loop at `depth` has the same region as the one before it."""
    (region,) = sampled(region)
    axis = -1 - depth
    there = ~_deep(empty(region), depth)
    if trips <= 1 or not there.any():
        return False
    same: Bools = np.asarray(
        np.take(there, range(1, there.shape[axis]), axis) if there.shape[axis] > 1 else there, bool
    )
    for end in arrays_of(region):
        deep = _deep(end, depth)
        if deep.shape[axis] > 1:
            later, earlier = (
                np.take(deep, range(1, deep.shape[axis]), axis),
                np.take(deep, range(deep.shape[axis] - 1), axis),
            )
            same = np.asarray(same & (later == earlier))
    return bool(same.any())


def merged(boxes: list[Region]) -> list[Region]:
    """Fewer boxes with the same elements: boxes that touch or overlap along one dimension become one."""
    result = list(boxes)
    start = -1
    while len(result) != start:
        start = len(result)
        joined: list[Region] = []
        for box in result:
            reach = range(max(0, len(joined) - 16), len(joined))
            pairs = ((i, _join(joined[i], box)) for i in reversed(reach))
            i, pair = next(((i, pair) for i, pair in pairs if pair is not None), (-1, None))
            if pair is None:
                joined.append(box)
            else:
                joined[i] = pair
        result = joined
    return result


def _join(a: Region, b: Region) -> Region | None:
    if not _cheap(a, b):
        return None
    if inside(b, a).all():
        return a
    if inside(a, b).all():
        return b
    different = [d for d, (p, q) in enumerate(zip(a, b, strict=True)) if (p[0] != q[0]).any() or (p[1] != q[1]).any()]
    if len(different) != 1 or different[0] == 0:
        return None
    (dim,) = different
    (lo, hi), (c, d) = a[dim], b[dim]
    if ((c > hi) | (lo > d) | (hi <= lo) | (d <= c)).any():
        return None
    return (*a[:dim], (np.minimum(lo, c), np.maximum(hi, d)), *a[dim + 1 :])
