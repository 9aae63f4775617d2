"""Candidate tiles of a node at a level below a core's, as arrays, the largest first (W19)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import permutations
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilec.ir.expr import TensorExpr

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

MAX_TILES = 300
"""Candidates of a node at most, but for the ones of a node with very many iterators."""

UNEVEN = 1.03
"""What windows that start anywhere cost more, where the last tile moves back: they are held with some room."""

ORDERED = 4
"""Loops of which every order is tried."""

GRAINS = 32
"""Sizes are multiples of a power of two that is at most this fraction of them."""


@dataclass(frozen=True)
class LevelTiles:
    """Candidates as flat arrays: sizes of the iterators that tiles cut, and how many tiles lie along each.

    `everywhere`: all tiles of a candidate are looked at.
    """

    sizes: Mapping[str, Ints]
    counts: Mapping[str, Ints]
    extents: Mapping[str, int] = field(default_factory=dict)
    everywhere: bool = False
    known: dict[int, Floats] = field(default_factory=dict, compare=False)

    @property
    def loops(self) -> tuple[str, ...]:
        """The iterators, in the order of the node."""
        return tuple(self.sizes)

    @cached_property
    def number(self) -> Floats:
        """Tiles of every candidate."""
        return np.asarray(prod((n.astype(np.float64) for n in self.counts.values()), start=np.ones(1)), np.float64)

    @cached_property
    def orders(self) -> tuple[tuple[int, ...], ...]:
        """Orders of the loops, outermost first: all, or where the loops are many each one innermost."""
        loops = range(len(self.sizes))
        if len(loops) <= ORDERED:
            return tuple(permutations(loops))
        return tuple((*(k for k in loops if k != inner), inner) for inner in reversed(loops))

    @cached_property
    def inner(self) -> Ints:
        """For every order and candidate the innermost loop that runs more than once; the number of loops if none."""
        found = np.full((len(self.orders), self.number.size), len(self.sizes), np.int64)
        for at, order in enumerate(self.orders):
            for k in order:
                found[at] = np.where(self.counts[self.loops[k]] > 1, k, found[at])
        return found

    @cached_property
    def handicap(self) -> Floats:
        """What costs are multiplied with: more than 1 where tiles do not cut an iterator evenly (`UNEVEN`)."""
        even: Flags = np.ones(self.number.size, np.bool_)
        for iterator, size in self.sizes.items():
            even = even & (self.extents[iterator] % size == 0)
        return np.where(even, 1.0, UNEVEN)

    def only(self, candidate: int) -> LevelTiles:
        """One candidate, looked at everywhere."""
        place = slice(candidate, candidate + 1)
        sizes, counts = ({i: n[place] for i, n in of.items()} for of in (self.sizes, self.counts))
        return LevelTiles(sizes, counts, self.extents, everywhere=True)

    def times(self, moving: int) -> Floats:
        """For every order and candidate how often something is loaded that some loops (as bits) move: once for every
        tile of the loops down to the innermost of them."""
        found = self.known.get(moving)
        if found is None:
            found = self.known[moving] = np.ones((len(self.orders), self.number.size))
            for at, order in enumerate(self.orders):
                rounds: Floats = np.ones(1)
                for k in order:
                    rounds = rounds * self.counts[self.loops[k]]
                    if moving >> k & 1:
                        found[at] = rounds
        return found


def coarse(expr: TensorExpr, extents: Mapping[str, int]) -> LevelTiles:
    """Powers of a ratio in every iterator, few enough to be combined; with the whole and a single element."""
    long = [i for i in expr.spatial if extents[i] > 1]
    logs = sum(np.log2(extents[i]) for i in long)
    density = (MAX_TILES / max(1.0, float(np.prod([np.log2(extents[i]) for i in long])))) ** (1 / max(1, len(long)))
    share = min(1.0, density) if logs else 1.0
    return _combined({i: _counts(extents[i], share) for i in long}, extents)


def finer(found: Mapping[str, int], extents: Mapping[str, int]) -> LevelTiles:
    """Every count of tiles near those of sizes that were found, thinned out where they are many."""
    each = max(3, int(MAX_TILES ** (1 / max(1, len(found)))))
    near: dict[str, Iterable[int]] = {}
    for iterator, size in found.items():
        count = -(-extents[iterator] // size)
        least, most = max(1, count // 2), min(extents[iterator], 2 * count)
        near[iterator] = {*np.linspace(least, most, min(each, most - least + 1)).astype(int), count}
    return _combined(near, extents)


def _counts(extent: int, share: float) -> Iterable[int]:
    """Numbers of tiles along an iterator, from one to as many as it has elements; `share` of the powers of two."""
    steps = max(2, round(np.log2(extent) * share) + 1)
    return {round(n) for n in np.geomspace(1, extent, steps)}


def _combined(counts: Mapping[str, Iterable[int]], extents: Mapping[str, int]) -> LevelTiles:
    """All combinations of nearly equal tiles, each once, the largest first."""
    axes = {i: sorted({_round(extents[i], int(n)) for n in wanted}, reverse=True) for i, wanted in counts.items()}
    grid = np.meshgrid(*(np.asarray(a, np.int64) for a in axes.values()), indexing="ij")
    flat = [g.ravel() for g in grid] or [np.ones(1, np.int64)]
    order = np.argsort(-prod((f.astype(np.float64) for f in flat), start=np.ones(flat[0].size)), kind="stable")
    sizes = {i: f[order] for i, f in zip(axes, flat, strict=False)}
    return LevelTiles(sizes, {i: -(-extents[i] // n) for i, n in sizes.items()}, extents)


def _round(extent: int, count: int) -> int:
    """The size of nearly equal tiles, rounded up a little so that windows of strided readers and tiles of higher
    levels start where they did in the whole."""
    size = -(-extent // count)
    grain = 1 << max(0, (size // GRAINS).bit_length() - 1)
    return min(extent, -(-size // grain) * grain)
