"""Tasks that run side by side, each on a unit with a buffer of its own that is empty when the task begins.

A grid of tasks takes the tiles of some iterators of the output apart: every one of them is in another task. Where these
are fewer than there are units, the tiles of one more plain iterator, often of the reduction, are divided among several
tasks, in runs of consecutive tiles; its loop is then the outermost of a task. The other loops run inside a task in any
order and keep what `loops` keeps. What a task needs first it fetches in full. A reduce iterator that is cut leaves a
partial sum in each task, which is written and, but for the last one, read again: 2 * evicted - |output|, as between the
tiles of one task.

No grid moves less than the same tiles in one task: whatever a task fetches first, a single task that runs the tiles one
after another fetches at most.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilec.bounds.einsum.einsum import Einsum
from tilec.bounds.einsum.loop_orders import Mode, Orders, operand_of
from tilec.bounds.einsum.loops import NEVER, ONE, ZERO, Ints, Space
from tilec.bounds.einsum.operand_traffic import times, total


@dataclass(frozen=True)
class Grid:
    """Iterators whose tiles are `apart`, and the one whose tiles are divided among tasks, if any."""

    apart: frozenset[str]
    cut: str | None = None


@dataclass(frozen=True)
class Chosen:
    """The grid of one tiling: `tasks` along iterators, and the `order` of the loops inside a task."""

    grid: Grid
    tasks: tuple[tuple[str, int], ...]
    order: tuple[str, ...]


class TaskOrders(Orders):
    """Grids of at least `space.units` tasks and their loop orders, of many tilings at once.

    With the `smallest` tiles of blocks of tilings, `tiles` are the largest: traffic is then a lower limit for all
    members of a block.
    """

    def __init__(
        self, einsum: Einsum, tiles: Mapping[str, Ints], space: Space, smallest: Mapping[str, Ints] | None = None
    ) -> None:
        super().__init__(einsum, tiles, space, relaxed=smallest is not None)
        self._einsum = einsum
        self._units = space.units
        self._limits = smallest is not None
        counted = tiles if smallest is None else smallest
        self._number = {dim: -(-extent // counted[dim]) for dim, extent in einsum.extents.items()}

    def traffic(self, modes: Sequence[Mode]) -> list[Ints]:
        """Bits moved by every tiling under its best grid and loop order, for each mode; `NEVER` without a grid."""
        streamed = list(dict.fromkeys(operand_of(mode) for mode in modes))
        inner = {frozenset[str](): [ZERO for _ in streamed]}
        for size in range(1, len(self._loops) + 1):
            for loops in combinations(self._loops, size):
                inner[frozenset(loops)] = self._best(loops, inner, streamed)
        least = [np.array(NEVER) for _ in streamed]
        for grid in self._grids():
            least = [np.minimum(*pair) for pair in zip(least, self._bits_of(grid, inner, streamed), strict=True)]
        return [self._with_stream(least[streamed.index(operand_of(mode))], mode) for mode in modes]

    def best_grids(self, mode: Mode, tilings: int) -> list[Chosen]:
        """The grids and loop orders behind `traffic`, of `tilings` tilings in one-dimensional arrays."""
        choices, bits = self._choices(mode, tilings)
        inner, grids = {inside: [each] for inside, each in bits.items()}, list(self._grids())
        costs = [self._bits_of(grid, inner, [operand_of(mode)])[0] for grid in grids]
        which = np.argmin(np.stack([np.broadcast_to(cost, tilings) for cost in costs]), axis=0)
        trips = {dim: np.broadcast_to(self._dims[dim].trips, tilings) for dim in self._loops}
        result = []
        for tiling, grid in enumerate(grids[position] for position in which.tolist()):
            number = {dim: int(trips[dim][tiling]) for dim in self._loops}
            places = {inside: int(position[tiling]) for inside, position in choices.items()}
            result.append(self._chosen(grid, number, places))
        return result

    def _chosen(self, grid: Grid, number: Mapping[str, int], places: Mapping[frozenset[str], int]) -> Chosen:
        tasks = {dim: number[dim] for dim in grid.apart}
        rest = [loop for loop in self._loops if loop not in grid.apart and loop != grid.cut]
        order = self._order(rest, places, {loop: count > 1 for loop, count in number.items()})
        if grid.cut is not None:
            tasks[grid.cut] = -(-self._units // prod(tasks.values()))
            order = (grid.cut, *order) if tasks[grid.cut] < number[grid.cut] else order
        counts = tuple((dim, tasks[dim]) for dim in self._loops if tasks.get(dim, 1) > 1)
        return Chosen(grid, counts, order)

    def moved_in(self, grid: Grid, order: Sequence[str], mode: Mode = None) -> list[Ints]:
        """Words that enter or leave the buffers of all tasks, per operand, the output last."""
        loops = [loop for loop in order if loop not in grid.apart]
        around = [(loop, frozenset(loops[at + 1 :])) for at, loop in enumerate(loops)]
        if grid.cut is not None and grid.cut not in loops:
            around.insert(0, (grid.cut, frozenset(loops)))
        words = []
        for i, steps in enumerate(self._steps):
            if mode is not None and i == mode.operand:
                words.append(steps.streamed(mode.sliding))
                continue
            inside = [step for at in around if (step := steps.of(*at)) is not None]
            starts = [steps.starts(grid.apart)]
            if grid.cut is not None:
                starts.append((self._groups(grid) - 1) * self._again(i, grid, starts[0], around[0][1]))
            words.append(total([*starts, *inside]))
        return [*words[:-1], 2 * words[-1] - self._results]

    def _grids(self) -> Iterator[Grid]:
        """Sets of iterators of the output with at most one plain iterator of any kind beside them."""
        spatial = [loop for loop in self._loops if loop in self._einsum.output.dims]
        for size in range(len(spatial) + 1):
            for loops in combinations(spatial, size):
                apart = frozenset(loops)
                yield Grid(apart)
                yield from (Grid(apart, loop) for loop in self._loops if loop in self._einsum.plain - apart)

    def _tasks(self, grid: Grid) -> Ints:
        return times([ONE, *(self._number[dim] for dim in grid.apart)])

    def _groups(self, grid: Grid) -> Ints:
        """Number of tasks among which the tiles of the cut iterator are divided: the fewest that make enough."""
        return -(-self._units // self._tasks(grid))

    def _bits_of(
        self, grid: Grid, inner: Mapping[frozenset[str], list[Ints]], streamed: Sequence[int | None]
    ) -> list[Ints]:
        """Bits that a grid moves besides the streamed operand, for each of them; `NEVER` where tasks are too few."""
        inside = frozenset(self._loops) - grid.apart
        starts = [steps.starts(grid.apart) for steps in self._steps]
        loads, enough = [s * w for s, w in zip(starts, self._weights, strict=True)], self._enough(grid)
        if grid.cut is None:
            moved = inner[inside]
        else:
            moved, more = self._option(grid.cut, inside, inner, streamed), self._groups(grid) - 1
            rest = inside - {grid.cut}
            again = [self._again(i, grid, words, rest) * self._weights[i] for i, words in enumerate(starts)]
            loads = [load + more * each for load, each in zip(loads, again, strict=True)]
        return [
            np.where(enough, bits + total([load for i, load in enumerate(loads) if i != operand]), NEVER)
            for operand, bits in zip(streamed, moved, strict=True)
        ]

    def _enough(self, grid: Grid) -> NDArray[np.bool_]:
        """Whether a grid has tasks for all units; one that needs no further cut is not cut."""
        tasks = self._tasks(grid)
        if grid.cut is None:
            return np.asarray(tasks >= self._units)
        return np.asarray((tasks < self._units) & (self._groups(grid) <= self._number[grid.cut]))

    def _again(self, operand: int, grid: Grid, starts: Ints, rest: frozenset[str]) -> Ints:
        """Words of an operand that one more cut of the divided iterator fetches again: its first tiles, less what the
        advance between the two runs of tiles fetches anyway. Tiles that move with the iterator are new either way.

        Of blocks only the output counts, where its tiles stay: other first tiles grow with the tile.
        """
        loop, dims = grid.cut, self._einsum.operands[operand].dims
        if loop is None or loop in dims:
            return ZERO
        if self._limits:
            stays = operand == len(self._steps) - 1 and not rest & dims
            return np.array(self._results) if stays else ZERO
        step = self._steps[operand].of(loop, rest)
        return starts if step is None else starts - step // np.maximum(self._dims[loop].trips - 1, 1)

    def _with_stream(self, bits: Ints, mode: Mode) -> Ints:
        """The bits with those of the streamed operand, less the results' first reads."""
        more = -self._results * self._bits[-1] * ONE
        if mode is not None:
            more = more + self._steps[mode.operand].streamed(mode.sliding) * self._weights[mode.operand]
        return np.where(bits == NEVER, NEVER, bits + more)
