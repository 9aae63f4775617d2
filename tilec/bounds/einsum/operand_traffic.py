"""Traffic of one operand whenever one loop over tiles advances, counted for many tilings at once.

When loop j advances, the loops outside it stand still, those inside it restart. The new box of an operand then differs
from the old one by a shift per index, and the elements fetched are the new box less their intersection. Both are
products over indices, so their sums over all positions of the outer loops are products of sums over a few cases: each
loop stands on a full tile or on its last one, which may be ragged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from tilec.bounds.einsum.einsum import Operand, Rank
from tilec.bounds.einsum.loops import ONE, ZERO, Dim, Ints

__all__ = ["ONE", "ZERO", "Ints", "Steps", "extent", "times", "total"]


def total(values: Sequence[Ints]) -> Ints:
    """The sum of arrays that broadcast."""
    return sum(values[1:], values[0]) if values else ZERO


def times(values: Sequence[Ints]) -> Ints:
    """The product of arrays that broadcast."""
    result = values[0] if values else ONE
    for value in values[1:]:
        result = result * value
    return result


@dataclass(frozen=True)
class _Stand:
    """Position of an iterator before and after an advance: offset and size of its tile."""

    before: Ints
    size_before: Ints
    after: Ints
    size_after: Ints


def extent(rank: Rank, sizes: Mapping[str, Ints]) -> Ints:
    """Extent of the box of a tile along one index: 1 + sum |c| * (tile - 1)."""
    return total([ONE, *(abs(c) * (sizes[dim] - 1) for dim, c in rank)])


def _low(rank: Rank, starts: dict[str, Ints], sizes: dict[str, Ints]) -> Ints:
    return total([c * (starts[dim] if c > 0 else starts[dim] + sizes[dim] - 1) for dim, c in rank])


def _components(ranks: Sequence[Rank]) -> list[list[Rank]]:
    """Indices grouped so that no iterator occurs in two groups."""
    groups: list[list[Rank]] = []
    for rank in filter(None, ranks):
        dims = {dim for dim, _ in rank}
        sharing = [g for g in groups if any(dim in dims for member in g for dim, _ in member)]
        groups = [g for g in groups if g not in sharing]
        groups.append([*(member for g in sharing for member in g), rank])
    return groups


class Steps:
    """Words that `operand` fetches, for every tiling of the iterators `dims`."""

    def __init__(self, operand: Operand, dims: dict[str, Dim]) -> None:
        self._operand = operand
        self._dims = dims
        self._components = [(group, frozenset(d for rank in group for d, _ in rank)) for group in
                            _components(operand.ranks)]  # fmt: skip
        self._known: dict[tuple[str | None, frozenset[str]], Ints | None] = {}
        self._parts: dict[tuple[int, str | None, frozenset[str]], tuple[Ints, Ints]] = {}
        sizes = {name: dim.tile for name, dim in dims.items()}
        self.volume: Ints = times([extent(rank, sizes) for rank in operand.ranks if rank])

    def of(self, loop: str, inside: frozenset[str]) -> Ints | None:
        """Words fetched over all advances of `loop` around the loops `inside`; None where nothing moves."""
        dims = self._operand.dims
        moving = loop if loop in dims else None
        if moving is None and not inside & dims:
            return None
        key = (moving, inside & dims)
        if key not in self._known:
            new, overlap = zip(*(self._sums(position, *key) for position in range(len(self._components))), strict=True)
            if all(words is stay for words, stay in zip(new, overlap, strict=True)):
                self._known[key] = None  # loops that turn on full tiles: everything needed is in the buffer
            elif any(stay is ZERO for stay in overlap):
                self._known[key] = times(new)
            else:
                self._known[key] = times(new) - times(overlap)
        known = self._known[key]
        if known is None:
            return None
        repeats = [dim.trips for name, dim in self._dims.items() if name not in dims | inside | {loop}]
        if moving is None:
            repeats.append(self._dims[loop].trips - 1)
        return times([known, *repeats])

    def starts(self, apart: frozenset[str]) -> Ints:
        """Words of the first tiles of all tasks, one for every tile of the iterators `apart`."""
        words = []
        for group, dims in self._components:
            chosen = [
                [(name, size, n) for size, n in (self._dims[name].standing if name in apart else self._first(name))]
                for name in sorted(dims)
            ]
            cases = [({name: size for name, size, _ in case}, [n for _, _, n in case]) for case in product(*chosen)]
            words.append(total([times([*(extent(rank, sizes) for rank in group), *n]) for sizes, n in cases]))
        repeats = [dim.trips for name, dim in self._dims.items() if name in apart - self._operand.dims]
        return times([*words, *repeats])

    def _first(self, name: str) -> tuple[tuple[Ints, Ints], ...]:
        return ((self._dims[name].tile, ONE),)

    def streamed(self, sliding: str | None) -> Ints:
        """Words fetched where every tile reads all its slices anew, sliding windows only their new elements."""
        used, streams = self._operand.dims, self._operand.streamable
        whole = [
            self._slid(group, dims, sliding) if sliding in dims else self._sums(position, None, frozenset())[0]
            for position, (group, dims) in enumerate(self._components)
            if not dims <= streams
        ]
        slices = [np.array(self._dims[dim].extent) for dim in streams]
        return times([*whole, *slices, *(dim.trips for name, dim in self._dims.items() if name not in used)])

    def _slid(self, group: Sequence[Rank], dims: frozenset[str], sliding: str | None) -> Ints:
        """Sum over all tiles of the words that a group of indices fetches, one window after another along `sliding`."""
        words = []
        for stands, count in self._cases(dims, None, frozenset()):
            sizes = {dim: stand.size_after for dim, stand in stands.items()}
            extents = [extent(rank, sizes) for rank in group]
            for position, rank in enumerate(group):
                for dim, stride in rank:
                    if dim == sliding:
                        window = extent(rank, {**sizes, dim: ONE})
                        extents[position] = window + (sizes[dim] - 1) * np.minimum(abs(stride), window)
            words.append(times([*extents, count]))
        return total(words)

    def _sums(self, position: int, moving: str | None, inside: frozenset[str]) -> tuple[Ints, Ints]:
        """Sums of the new extents and of the overlaps of one group of indices."""
        group, dims = self._components[position]
        key = (position, moving if moving in dims else None, inside & dims)
        if key not in self._parts and self._dims[min(dims)].turns:
            # Linear in the tile, so that sums over positions need no cases, and unchanged tiles are identical arrays.
            dim = self._dims[min(dims)]
            whole = np.array(dim.extent)
            known = (dim.extent - dim.tile, ZERO) if key[1] else (dim.tile, dim.last) if key[2] else (whole, whole)
            self._parts[key] = known
        if key not in self._parts:
            new, overlap = [], []
            for stands, count in self._cases(dims, moving, inside):
                before = {d: s.before for d, s in stands.items()}, {d: s.size_before for d, s in stands.items()}
                after = {d: s.after for d, s in stands.items()}, {d: s.size_after for d, s in stands.items()}
                extents = [extent(rank, after[1]) for rank in group]
                overlaps = [_overlap(rank, e, before, after) for rank, e in zip(group, extents, strict=True)]
                new.append(times([*extents, count]))
                overlap.append(times([*overlaps, count]))
            self._parts[key] = total(new), total(overlap)
        return self._parts[key]

    def _cases(
        self, dims: frozenset[str], moving: str | None, inside: frozenset[str]
    ) -> Iterator[tuple[dict[str, _Stand], Ints]]:
        """Positions of the iterators of a group around an advance, with the number of such advances."""
        choices: list[list[tuple[str, _Stand, Ints]]] = []
        for name in sorted(dims):
            dim = self._dims[name]
            if name in inside:
                choices.append([(name, _Stand(dim.back, dim.last, ZERO, dim.tile), ONE)])
            elif name == moving:
                choices.append([(name, _Stand(ZERO, dim.tile, dim.tile, size), n) for size, n in dim.advancing])
            else:
                choices.append([(name, _Stand(ZERO, size, ZERO, size), n) for size, n in dim.standing])
        for case in product(*choices):
            yield {name: stand for name, stand, _ in case}, times([count for _, _, count in case])


_Place = tuple[dict[str, Ints], dict[str, Ints]]


def _overlap(rank: Rank, width: Ints, before: _Place, after: _Place) -> Ints:
    """Number of values of one index common to the boxes before and after an advance."""
    low, old_low = _low(rank, *after), _low(rank, *before)
    high = np.minimum(low + width, old_low + extent(rank, before[1]))
    shared: Ints = np.maximum(high - np.maximum(low, old_low), 0)
    return shared
