"""Branch and bound over a product of candidate tiles: blocks of tilings are dropped instead of evaluating each tiling.

A block is a range of neighbouring tiles for every plain iterator and one tile for every other. Its members need at
least the buffer of its smallest tiles and move at least the traffic that `cut(relaxed=True)` counts for its largest.
Blocks that a known point dominates or equals are dropped, as are mirror images of others. The remaining ones are halved
until single tilings are left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilec.bounds.einsum.einsum import Einsum
from tilec.bounds.einsum.front import front
from tilec.bounds.einsum.lookup import Reached, Within
from tilec.bounds.einsum.loop_orders import Mode, Orders, buffers
from tilec.bounds.einsum.loops import NEVER, ZERO, Ints, Space
from tilec.bounds.einsum.symmetry import mirrored_pair
from tilec.bounds.einsum.task_grids import TaskOrders

Candidates = Mapping[str, Sequence[int]]
"""Candidate tile sizes per iterator, in the Einsum's order, rising."""

_CHUNK = 1 << 13
"""Number of tilings evaluated at once: their arrays stay in cache."""

_RATIO = {True: 1.3, False: 2.0}
"""Ratio of largest to smallest tile in an initial block, by whether every iterator is plain: large blocks have looser
limits, small ones are more."""

_RATIO_AT_CAPACITY = 16.0
"""The same with a capacity, where most blocks do not fit: on a 3x3 convolution of 512 x 512 x 64 a ratio of 2 takes
6.8 s, 4 takes 4.1 s, 16 and more 2.2 s."""

_TRY_EVERY = 4
"""The smallest tiles of one of so many blocks are evaluated: more give a better front, but cost time."""


@dataclass(frozen=True)
class _Blocks:
    """`low` and `high`: positions of smallest and largest tiles, a row per iterator, a column per block. `floor`: lower
    limit in bits of every member's traffic, a row per mode; `NEVER` where no member can improve the front."""

    def alive(self) -> _Blocks:
        """The blocks that can improve the front in some mode."""
        return self.where(np.any(self.floor < NEVER, axis=0))

    low: Ints
    high: Ints
    floor: Ints

    def where(self, chosen: NDArray[np.bool_]) -> _Blocks:
        """The chosen columns."""
        return _Blocks(*(np.compress(chosen, each, axis=1) for each in (self.low, self.high, self.floor)))

    def parts(self) -> Iterator[_Blocks]:
        """Blocks in groups to be evaluated at once."""
        for at in range(0, self.low.shape[1], _CHUNK):
            end = at + _CHUNK
            yield _Blocks(self.low[:, at:end], self.high[:, at:end], self.floor[:, at:end])

    def lower(self, axis: int) -> _Blocks:
        """The lower halves along one iterator; blocks of one tile stay whole."""
        high = self.high.copy()
        high[axis] = (self.low[axis] + high[axis]) // 2
        return _Blocks(self.low, high, self.floor)

    def upper(self, axis: int) -> _Blocks:
        """The upper halves along one iterator of the blocks of several tiles."""
        halves = self.where(self.low[axis] < self.high[axis])
        halves.low[axis] = (halves.low[axis] + halves.high[axis]) // 2 + 1
        return halves


def _joined(blocks: Sequence[_Blocks]) -> _Blocks:
    rows = [(each.low, each.high, each.floor) for each in blocks]
    return _Blocks(*(np.concatenate(arrays, axis=1) for arrays in zip(*rows, strict=True)))


def _along(axes: Sequence[Ints]) -> list[Ints]:
    """One-dimensional arrays as the axes of a product."""
    return [axis.reshape([-1 if i == at else 1 for i in range(len(axes))]) for at, axis in enumerate(axes)]


def _chunks(axes: Sequence[Ints]) -> Iterator[list[Ints]]:
    """Partition of a product of axes into products of at most `_CHUNK` members."""
    if prod(len(axis) for axis in axes) <= _CHUNK:
        yield list(axes)
        return
    longest = max(range(len(axes)), key=lambda i: len(axes[i]))
    half = len(axes[longest]) // 2
    for part in (axes[longest][:half], axes[longest][half:]):
        yield from _chunks([*axes[:longest], part, *axes[longest + 1 :]])


class Search:
    """Search of the front; `best` is the front so far: rows of buffer bits, traffic bits, index of the mode, tile of
    every iterator. With a `capacity` in bytes, search of the best point within it."""

    def __init__(self, einsum: Einsum, space: Space, modes: Sequence[Mode], capacity: int | None = None) -> None:
        self._einsum = einsum
        self._space = space
        self._modes = modes
        self.best: Ints = np.zeros((3 + len(einsum.dims), 0), np.int64)
        self._capacity = capacity
        self._reached = self._front()
        pair = mirrored_pair(einsum)
        self._pair = None if pair is None else (einsum.dims.index(pair[0]), einsum.dims.index(pair[1]))

    def try_product(self, candidates: Candidates) -> None:
        """Evaluate every member of a product of tiles."""
        for axes in _chunks([np.array(sizes, np.int64) for sizes in candidates.values()]):
            self._evaluate(_along(axes), tuple(len(axis) for axis in axes) or (1,))

    def try_blocks(self, candidates: Candidates) -> None:
        """Search a product of tiles of one or more iterators by branch and bound."""
        sizes = [np.array(tiles, np.int64) for tiles in candidates.values()]
        plain = self._einsum.plain
        ratio = _RATIO[plain == set(self._einsum.dims)] if self._capacity is None else _RATIO_AT_CAPACITY
        firsts, lasts = zip(
            *(_ranges(tiles, ratio if dim in plain else 1) for dim, tiles in candidates.items()), strict=True
        )
        promising = []
        for axes in _chunks([np.arange(len(first)) for first in firsts]):
            low, high = (_along(_tiles(ends, axes)) for ends in (firsts, lasts))
            promising.append(self._promising(sizes, low, high, tuple(len(axis) for axis in axes)))
        blocks = self._unmirrored(_joined(promising))
        while blocks.low.size:
            blocks = self._halved(sizes, blocks)

    def _unmirrored(self, blocks: _Blocks) -> _Blocks:
        """The blocks without mirror images: every tiling or its mirror image is in a block that stays. Interchangeable
        iterators have equal extents, hence equal candidates."""
        if self._pair is None:
            return blocks
        first, second = self._pair
        return blocks.where(blocks.low[first] <= blocks.high[second])

    def _promising(
        self,
        sizes: Sequence[Ints],
        low: Iterable[Ints],
        high: Iterable[Ints],
        shape: tuple[int, ...],
        known: Ints = ZERO,
    ) -> _Blocks:
        """The blocks, broadcast to a shape, that may improve the front; `known` is an earlier lower limit."""
        low, high = list(low), list(high)
        if self._capacity is not None:
            low, high, shape, known = self._fitting(sizes, low, high, shape, known)
        orders = self._limits(*(self._named(_tiles(sizes, ends)) for ends in (low, high)))
        moved = np.stack([np.broadcast_to(bits, shape).ravel() for bits in orders.traffic(self._modes)])
        floor = np.maximum(moved, known)
        self._drop(floor, _tiles(sizes, low), shape)
        (alive,) = np.nonzero((floor < NEVER).any(axis=0))
        at = np.unravel_index(alive, shape)
        ends = [np.stack([np.broadcast_to(end, shape)[at] for end in side]) for side in (low, high)]
        return _Blocks(ends[0], ends[1], np.take(floor, alive, axis=1))

    def _fitting(
        self, sizes: Sequence[Ints], low: list[Ints], high: list[Ints], shape: tuple[int, ...], known: Ints
    ) -> tuple[list[Ints], list[Ints], tuple[int, ...], Ints]:
        """The blocks whose smallest tiles fit the capacity in some mode, in one row."""
        needs = buffers(self._einsum, self._named(_tiles(sizes, low)), self._modes)
        least = np.minimum.reduce([np.broadcast_to(need, shape).ravel() for need in needs])
        assert self._capacity is not None
        (fits,) = np.nonzero(least <= 8 * self._capacity)
        at = np.unravel_index(fits, shape)
        low, high = ([np.broadcast_to(end, shape)[at] for end in side] for side in (low, high))
        return low, high, (len(fits),), known if known.ndim == 0 else np.take(known, fits, axis=1)

    def _halved(self, sizes: Sequence[Ints], blocks: _Blocks) -> _Blocks:
        """The halves along every iterator that may improve the front; the smallest tiles are evaluated first."""
        single = (blocks.low == blocks.high).all(axis=0)
        tried = blocks.where(single | (np.arange(len(single)) % _TRY_EVERY == 0))
        for part in tried.parts():
            self._evaluate(_tiles(sizes, part.low), part.low.shape[1:])
        blocks = blocks.where(~single)
        for axis in range(len(sizes)):
            # Lower halves have the limits of their blocks, which were promising.
            upper = blocks.upper(axis)
            self._drop(upper.floor, _tiles(sizes, upper.low), upper.low.shape[1:])
            blocks = _joined([blocks.lower(axis), upper.alive()])
        blocks = self._unmirrored(blocks)
        halves = [
            self._promising(sizes, part.low, part.high, part.low.shape[1:], part.floor) for part in blocks.parts()
        ]
        return _joined([blocks.where(np.zeros(blocks.low.shape[1], bool)), *halves])

    def _limits(self, smallest: Mapping[str, Ints], largest: Mapping[str, Ints]) -> Orders:
        """Loop orders whose traffic is a lower limit for all tilings between the smallest and the largest tiles."""
        if self._space.units > 1:
            return TaskOrders(self._einsum, largest, self._space, smallest)
        return Orders(self._einsum, largest, self._space, relaxed=True)

    def _named(self, tiles: Sequence[Ints]) -> dict[str, Ints]:
        return dict(zip(self._einsum.dims, tiles, strict=True))

    def _evaluate(self, tiles: Sequence[Ints], shape: tuple[int, ...]) -> None:
        """Merge tilings, broadcast to a shape, into the front."""
        named = self._named(tiles)
        rows = [self.best]
        needs = buffers(self._einsum, named, self._modes)
        moved = orders_of(self._einsum, named, self._space).traffic(self._modes)
        for index, bits in enumerate(zip(needs, moved, strict=True)):
            needed, traffic = (np.broadcast_to(each, shape).ravel() for each in bits)
            (new,) = np.nonzero(traffic < self._reached.within(needed))
            best = new[front(needed[new], traffic[new])]
            at = np.unravel_index(best, shape)
            chosen = [np.broadcast_to(t, shape)[at] for t in tiles]
            rows.append(np.stack([needed[best], traffic[best], np.full(len(best), index), *chosen]))
        merged = np.concatenate(rows, axis=1)
        self.best = merged[:, front(merged[0], merged[1])]
        if self._capacity is not None:
            self.best = self.best[:, -1:]
        self._reached = self._front()

    def _front(self) -> Reached | Within:
        """The lookup of what is known."""
        if self._capacity is not None:
            return Within(8 * self._capacity, self.best[1], NEVER - 1)
        return Reached(self.best[0], self.best[1], NEVER - 1)

    def _drop(self, floor: Ints, smallest: Sequence[Ints], shape: tuple[int, ...]) -> None:
        """Set `floor` to `NEVER` where no member of a block is better than every point of the front."""
        for need, bits in zip(buffers(self._einsum, self._named(smallest), self._modes), floor, strict=True):
            (alive,) = np.nonzero(bits < NEVER)
            needed = np.broadcast_to(need, shape).ravel()[alive]
            bits[alive[bits[alive] >= self._reached.within(needed)]] = NEVER


def orders_of(einsum: Einsum, tiles: Mapping[str, Ints], space: Space) -> Orders:
    """The loop orders of tilings, in tasks for several units."""
    return TaskOrders(einsum, tiles, space) if space.units > 1 else Orders(einsum, tiles, space)


def _tiles(sizes: Sequence[Ints], positions: Iterable[Ints]) -> list[Ints]:
    return [tiles[ends] for tiles, ends in zip(sizes, positions, strict=True)]


def _ranges(tiles: Sequence[int], ratio: float) -> tuple[Ints, Ints]:
    """First and last positions of the initial ranges: tiles within a ratio."""
    starts = [0]
    for position, tile in enumerate(tiles):
        if tile > tiles[starts[-1]] * ratio:
            starts.append(position)
    return np.array(starts), np.array([*starts[1:], len(tiles)]) - 1
