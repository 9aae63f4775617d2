"""Bytes that a group draws from the lowest level past the caches below a core's, for many candidate tiles at once.

A cache keeps what was used last (`tilec.lower.counts.cache_traffic` predicts the same of a finished program). Tasks run
in waves, one on each core: what the tasks of a wave share is fetched once for all of them. A later wave finds what an
earlier one read unless more than the cache holds was touched in between. Between the share of a cache that a plan may
count on and all of it, the part that is missed grows evenly, so that no cost jumps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilec.scheduler.tiling.tile_footprints import TileFootprints
from tilec.scheduler.tiling.tiling_problem import TilingProblem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STRIPES = (1, 2, 4, 8, 16, 32)
"""Candidate widths of a raster, in tasks."""


@dataclass(frozen=True, slots=True)
class TaskWalk:
    """An order of tasks: their loops, outermost first, and the raster: of the outermost loop, `stripe` tasks run
    through innermost, so that those that run side by side are neighbours in two directions."""

    order: tuple[str, ...]
    stripe: int = 1


def drawn_bytes(
    problem: TilingProblem,
    loaded: Mapping[str, Floats],
    seen: TileFootprints,
    tasks: Ints,
    sizes: Mapping[str, Ints],
    walk: TaskWalk | None = None,
) -> Floats:
    """Bytes from and to the lowest level of tasks that load so many bytes each, in the order of a walk, or in the best
    one.

    Constants are fetched at least once: nothing computed them. Other operands, and results, are in the cache as far as
    all that the group touches fits. Of what comes from below in lines, a run takes one more than it has (measured: a
    depthwise convolution of 510 channels 44 ms in runs of 64 bytes, 36 of 128, 24 of 2040).
    """
    target = problem.target
    whole = {tensor: float(problem.whole(tensor)) for tensor in (*loaded, *problem.group.outputs)}
    out = sum(whole[tensor] for tensor in problem.group.outputs)
    lines = {tensor: _lines(problem, seen, tensor) for tensor in whole}
    if not target.cache:
        stored = sum(whole[tensor] * lines[tensor] for tensor in problem.group.outputs)
        return np.asarray(sum((tasks * size * lines[tensor] for tensor, size in loaded.items()), stored), np.float64)
    distinct = {tensor: np.minimum(tasks * size, whole[tensor]) for tensor, size in loaded.items()}
    missed = _missed(problem, np.asarray(sum(distinct.values()) + out, np.float64))
    total: Floats = np.zeros(1)
    for tensor, size in distinct.items():
        total = total + size * (1.0 if tensor in problem.group.constants else missed) * lines[tensor]
    total = total + sum(whole[tensor] * lines[tensor] for tensor in problem.group.outputs) * missed
    if not np.any(missed > 0):
        return total
    walks = (walk,) if walk is not None else task_walks(problem, sizes)
    again = _drawn_again(problem, walks, loaded, distinct, lines, sizes)
    return total + np.where(missed > 0, again, 0.0)


def task_walks(problem: TilingProblem, sizes: Mapping[str, Ints]) -> tuple[TaskWalk, ...]:
    """Walks to choose from: every loop outermost once, with every raster where programs fill a core's level.

    Hardware that fills a core's level itself reads ahead along the order of its own (`task_order`): there the outermost
    loop alone makes the difference below it.
    """
    tasks = {i: int(np.max(-(-problem.extent(i) // np.maximum(n, 1)))) for i, n in sizes.items()}
    moving = [i for i in problem.group.final.spatial if tasks.get(i, 1) > 1]
    stripes = STRIPES if len(moving) > 1 and not problem.target.is_cached else STRIPES[:1]
    return tuple(
        TaskWalk((first, *(i for i in moving if i != first)), stripe)
        for first in moving
        for stripe in stripes
        if stripe < 2 * tasks[first]
    ) or (TaskWalk(()),)


def _missed(problem: TilingProblem, touched: Floats) -> Floats:
    """Part that is no longer in the cache when so many bytes were touched since."""
    full = problem.target.cache
    usable = full * problem.target.costs.usable_cache
    return np.clip((touched - usable) / (full - usable), 0.0, 1.0)


def _drawn_again(
    problem: TilingProblem,
    walks: Sequence[TaskWalk],
    loaded: Mapping[str, Floats],
    distinct: Mapping[str, Floats],
    lines: Mapping[str, Floats | float],
    sizes: Mapping[str, Ints],
) -> Floats:
    """Bytes that waves fetch beside the first time, in the walk that fetches the fewest, where the cache does not hold
    all that tasks touch."""
    operands = [_Operand(size, distinct[t], lines[t], problem.group.moved_by(t)) for t, size in loaded.items()]
    trips = {i: np.asarray(-(-problem.extent(i) // np.maximum(sizes[i], 1)), np.float64) for i in walks[0].order}
    every = (*trips.values(), *(each for of in operands for each in (of.loaded, of.distinct, of.lines)))
    beside = (1,) * max((np.ndim(each) for each in every), default=0)
    least: Floats = np.full(1, np.inf)
    for order in dict.fromkeys(walk.order for walk in walks):
        stripes = np.asarray([walk.stripe for walk in walks if walk.order == order], np.float64)
        again = _again(problem, order, stripes.reshape(-1, *beside), operands, trips)
        least = np.minimum(least, np.min(again, axis=0))
    return least


@dataclass(frozen=True, slots=True)
class _Operand:
    """Bytes of an operand that a task loads, that all tasks load of it, bytes of lines over those in them, and the tile
    loops that move it."""

    loaded: Floats
    distinct: Floats
    lines: Floats | float
    moved: frozenset[str]


def _again(
    problem: TilingProblem,
    order: Sequence[str],
    stripes: Floats,
    operands: Sequence[_Operand],
    trips: Mapping[str, Floats],
) -> Floats:
    """Bytes of all operands that waves fetch beside the first time, for every stripe (first axis) and candidate."""
    lanes = _lanes(order, stripes, trips, problem.target.cores)
    waves = {i: trips[i] / lanes[i] for i in order}
    touched = [
        np.minimum(of.distinct, of.loaded * prod((lanes[i] for i in order if i in of.moved), start=1.0))
        for of in operands
    ]
    fetched = list(touched)
    for loop in reversed(order):
        again = 1 + (waves[loop] - 1) * _missed(problem, np.asarray(sum(touched), np.float64))
        for number, of in enumerate(operands):
            if loop in of.moved:
                fetched[number] = fetched[number] * waves[loop]
                touched[number] = np.minimum(of.distinct, touched[number] * waves[loop])
            else:
                fetched[number] = fetched[number] * again
    beside = (
        np.maximum(of.lines * (all_waves - of.distinct), 0.0) for of, all_waves in zip(operands, fetched, strict=True)
    )
    return np.asarray(sum(beside), np.float64)


def _lanes(order: Sequence[str], stripes: Floats, trips: Mapping[str, Floats], cores: int) -> dict[str, Floats]:
    """Tasks along each loop that run side by side: the stripe of the outermost, then loops from the innermost on."""
    if not order:
        return {}
    first, *others = order
    lanes: dict[str, Floats] = {first: np.minimum(np.minimum(trips[first], stripes), float(cores))}
    left = cores / lanes[first]
    for loop in reversed(others):
        lanes[loop] = np.minimum(trips[loop], left)
        left = np.maximum(left / lanes[loop], 1.0)
    lanes[first] = np.minimum(trips[first], lanes[first] * left)
    return lanes


def _lines(problem: TilingProblem, seen: TileFootprints, tensor: str) -> Floats | float:
    """Bytes that lines have over those of the runs of a tensor in them."""
    target = problem.target
    if not target.line or tensor in problem.group.constants or tensor not in seen.windows:
        return 1.0
    run = seen.run(tensor, problem.group.graph.tensors[tensor].shape, problem.numbers)
    return 1.0 + target.line / np.asarray(run * problem.storage.bytes_of(tensor), np.float64)
