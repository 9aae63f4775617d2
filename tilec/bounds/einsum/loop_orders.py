"""Best loop order of many tilings at once, by dynamic programming over sets of inner loops.

The traffic that loop j adds depends on the set of loops inside it, not on their order. So the best order of a set of
inner loops is the best choice of its outermost loop around the best order of the rest: n loops take n * 2^(n-1) vector
operations instead of n! orders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tilec.bounds.einsum.einsum import Einsum, Rank
from tilec.bounds.einsum.loops import ONE, ZERO, Ints, Space, cut, results
from tilec.bounds.einsum.operand_traffic import Steps, extent, times, total


@dataclass(frozen=True)
class Stream:
    """The position of the streamed operand, and the iterator along which its slices slide as windows."""

    operand: int
    sliding: str | None = None


Mode = Stream | None
"""The streamed operand; None where all operands keep their tiles."""


def modes(einsum: Einsum, space: Space) -> list[Mode]:
    """None, then every operand in all ways in which it can be streamed along iterators of more than one iteration.

    Iterators without halo that occur in every operand are left out: slices along them are tiles of one iteration.
    """
    shared = frozenset.intersection(*(operand.streamable for operand in einsum.operands))
    result: list[Mode] = [None]
    for position, operand in enumerate(einsum.operands if space.streams else ()):
        if any(einsum.extents[dim] > 1 for dim in operand.streamable - shared):
            result.append(Stream(position))
        result += [Stream(position, dim) for dim in einsum.dims if dim in operand.slidable and einsum.extents[dim] > 1]
    return result


def buffers(einsum: Einsum, tiles: Mapping[str, Ints], modes: Sequence[Mode]) -> list[Ints]:
    """Bits of buffer of every tiling, for each mode: a tile of every operand, a slice of the streamed one."""
    whole = [_words([rank for rank in operand.ranks if rank], tiles) * operand.bits for operand in einsum.operands]
    together = total(whole)
    return [together + (_slice(einsum, tiles, mode) - whole[mode.operand]) if mode else together for mode in modes]


def _slice(einsum: Einsum, tiles: Mapping[str, Ints], mode: Stream) -> Ints:
    operand = einsum.operands[mode.operand]
    sizes = {**tiles, mode.sliding: ONE} if mode.sliding else tiles
    remaining = [rank for rank in operand.ranks if rank and (len(rank) > 1 or rank[0][0] not in operand.streamable)]
    return _words(remaining, sizes) * operand.bits


def _words(ranks: Sequence[Rank], sizes: Mapping[str, Ints]) -> Ints:
    return times([extent(rank, sizes) for rank in ranks])


class Orders:
    """Loop orders of many tilings of one Einsum: `tiles` has one array per iterator, all broadcastable to one shape.

    `relaxed` is that of `cut`: traffic is then a lower limit for all smaller tiles of plain iterators.
    """

    def __init__(self, einsum: Einsum, tiles: Mapping[str, Ints], space: Space, *, relaxed: bool = False) -> None:
        self._dims = cut(einsum, tiles, space, relaxed=relaxed)
        self._loops = [dim for dim in einsum.dims if einsum.extents[dim] > 1]
        self._steps = [Steps(operand, self._dims) for operand in einsum.operands]
        self._bits = [operand.bits for operand in einsum.operands]
        # An evicted partial sum is written and read again, except for its first read.
        self._weights = [*self._bits[:-1], 2 * self._bits[-1]]
        self._results = results(einsum)

    def traffic(self, modes: Sequence[Mode]) -> list[Ints]:
        """Bits moved by every tiling under its best loop order, for each mode."""
        streamed = list(dict.fromkeys(operand_of(mode) for mode in modes))
        best = {frozenset[str](): [ZERO for _ in streamed]}
        for size in range(1, len(self._loops) + 1):
            best = {frozenset(inside): self._best(inside, best, streamed) for inside in combinations(self._loops, size)}
        (added,) = best.values()
        return [added[streamed.index(operand_of(mode))] + self._fixed(mode) for mode in modes]

    def fetched(self, order: Sequence[str], mode: Mode = None) -> list[Ints]:
        """Words that enter the buffer under one loop order, outermost first, per operand, the output last."""
        around = [(loop, frozenset(order[position + 1 :])) for position, loop in enumerate(order)]
        return [
            steps.streamed(mode.sliding)
            if mode is not None and i == mode.operand
            else total([steps.volume, *(step for at in around if (step := steps.of(*at)) is not None)])
            for i, steps in enumerate(self._steps)
        ]

    def moved(self, order: Sequence[str], mode: Mode = None) -> list[Ints]:
        """Words that enter or leave the buffer, as in `fetched`: results leave, partial sums come back."""
        *inputs, evicted = self.fetched(order, mode)
        return [*inputs, 2 * evicted - self._results]

    def best_orders(self, mode: Mode, tilings: int) -> list[tuple[str, ...]]:
        """The loop orders, outermost first, behind `traffic`, of `tilings` tilings in one-dimensional arrays.

        Loops of one trip are left out.
        """
        choices, _ = self._choices(mode, tilings)
        repeated = self._repeated(tilings)
        table = np.array([*choices.values(), *repeated], np.int64).reshape(len(choices) + len(repeated), tilings)
        first, kind = _kinds(table)
        orders = []
        for column in table[:, first].T.tolist():
            places = dict(zip(choices, column, strict=False))
            turning = dict(zip(self._loops, column[len(choices) :], strict=True))
            orders.append(self._order(self._loops, places, turning))
        return [orders[each] for each in kind.tolist()]

    def _choices(self, mode: Mode, tilings: int) -> tuple[dict[frozenset[str], Ints], dict[frozenset[str], Ints]]:
        """For every set of inner loops the position of the outermost one in their best order, and the bits it moves."""
        best = {frozenset[str](): [ZERO]}
        choices: dict[frozenset[str], Ints] = {}
        for size in range(1, len(self._loops) + 1):
            for loops in combinations(self._loops, size):
                inside = frozenset(loops)
                options = [self._option(loop, inside, best, [operand_of(mode)])[0] for loop in loops]
                costs = np.stack([np.broadcast_to(option, tilings) for option in options])
                choices[inside] = np.argmin(costs, axis=0)
                best[inside] = [costs.min(axis=0)]
        return choices, {inside: bits for inside, (bits,) in best.items()}

    def _repeated(self, tilings: int) -> list[NDArray[np.bool_]]:
        """Whether each loop has more than one trip."""
        return [np.broadcast_to(self._dims[loop].trips > 1, tilings) for loop in self._loops]

    def _order(
        self, loops: Sequence[str], places: Mapping[frozenset[str], int], turning: Mapping[str, bool]
    ) -> tuple[str, ...]:
        """The order of `loops` in which the outermost of every rest stands at its place."""
        remaining, order = list(loops), []
        while remaining:
            loop = remaining.pop(places[frozenset(remaining)])
            if turning[loop]:
                order.append(loop)
        return tuple(order)

    def _fixed(self, mode: Mode) -> Ints:
        """Bits that move under any order: first tiles and the streamed operand, less the results' first reads."""
        first = [
            step.streamed(mode.sliding) if mode is not None and i == mode.operand else step.volume
            for i, step in enumerate(self._steps)
        ]
        moved = total([words * weight for words, weight in zip(first, self._weights, strict=True)])
        return moved - self._results * self._bits[-1]

    def _best(
        self, loops: tuple[str, ...], inner: Mapping[frozenset[str], list[Ints]], streamed: Sequence[int | None]
    ) -> list[Ints]:
        """Bits that all advances of `loops` move under their best order, for each streamed operand."""
        inside = frozenset(loops)
        least = self._option(loops[0], inside, inner, streamed)
        for loop in loops[1:]:
            options = self._option(loop, inside, inner, streamed)
            least = [np.minimum(*pair) for pair in zip(least, options, strict=True)]
        return least

    def _option(
        self,
        loop: str,
        inside: frozenset[str],
        inner: Mapping[frozenset[str], list[Ints]],
        streamed: Sequence[int | None],
    ) -> list[Ints]:
        """Bits that the advances of the loops `inside` move when `loop` is the outermost, for each streamed operand."""
        rest = inside - {loop}
        steps = [step.of(loop, rest) for step in self._steps]
        bits = [None if step is None else step * weight for step, weight in zip(steps, self._weights, strict=True)]
        together = total([each for each in bits if each is not None])
        moved = []
        for operand, least in zip(streamed, inner[rest], strict=True):
            streamed_bits = None if operand is None else bits[operand]
            moved.append(least + (together if streamed_bits is None else together - streamed_bits))
        return moved


def _kinds(table: Ints) -> tuple[Ints, Ints]:
    """Distinct columns of a table of small numbers: the position of one of each kind, and the kind of every column."""
    code, span = np.zeros(table.shape[1], np.int64), 1
    for row, size in zip(table, (table.max(axis=1, initial=0) + 1).tolist(), strict=True):
        if span * size >= 2**62:
            distinct, code = np.unique(code, return_inverse=True)
            span = len(distinct)
        code, span = code * size + row, span * size
    _, first, kind = np.unique(code, return_index=True, return_inverse=True)
    return first, kind


def operand_of(mode: Mode) -> int | None:
    """The position of the streamed operand."""
    return None if mode is None else mode.operand
