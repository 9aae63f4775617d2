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
    whole = {tensor: float(problem.whole(tensor)) for tensor in (*loaded, *problem.outputs)}
    out = sum(whole[tensor] for tensor in problem.outputs)
    lines = {tensor: _lines(problem, seen, tensor) for tensor in whole}
    if not target.cache:
        stored = sum(whole[tensor] * lines[tensor] for tensor in problem.outputs)
        return np.asarray(sum((tasks * size * lines[tensor] for tensor, size in loaded.items()), stored), np.float64)
    distinct = {tensor: np.minimum(tasks * size, whole[tensor]) for tensor, size in loaded.items()}
    missed = _missed(problem, np.asarray(sum(distinct.values()) + out, np.float64))
    again: Mapping[str, Floats | float] = {}
    if np.any(missed > 0):
        walks = (walk,) if walk is not None else task_walks(problem, sizes)
        again = _least([_again(problem, each, loaded, distinct, sizes) for each in walks])
    total: Floats = np.zeros(1)
    for tensor, size in distinct.items():
        fetched = size * (1.0 if tensor in problem.constants else missed) + again.get(tensor, 0.0)
        total = total + fetched * lines[tensor]
    return total + sum(whole[tensor] * lines[tensor] for tensor in problem.outputs) * missed


def task_walks(problem: TilingProblem, sizes: Mapping[str, Ints]) -> tuple[TaskWalk, ...]:
    """Walks to choose from: every loop outermost once, with every raster where programs fill a core's level.

    Hardware that fills a core's level itself reads ahead along the order of its own (`task_order`): there the outermost
    loop alone makes the difference below it.
    """
    moving = [i for i in problem.final.spatial if i in sizes and np.any(sizes[i] < problem.extent(i))]
    stripes = STRIPES if len(moving) > 1 and not problem.target.is_cached else STRIPES[:1]
    return tuple(
        TaskWalk((first, *(i for i in moving if i != first)), stripe) for first in moving for stripe in stripes
    ) or (TaskWalk(()),)


def _missed(problem: TilingProblem, touched: Floats) -> Floats:
    """Part that is no longer in the cache when so many bytes were touched since."""
    full = problem.target.cache
    usable = full * problem.target.costs.usable_cache
    return np.clip((touched - usable) / (full - usable), 0.0, 1.0)


def _again(
    problem: TilingProblem,
    walk: TaskWalk,
    loaded: Mapping[str, Floats],
    distinct: Mapping[str, Floats],
    sizes: Mapping[str, Ints],
) -> dict[str, Floats]:
    """Bytes of each operand that waves fetch beside the first time."""
    trips = {i: -(-problem.extent(i) // np.maximum(sizes[i], 1)) for i in walk.order}
    lanes = _lanes(walk, trips, problem.target.cores)
    waves = {i: np.asarray(trips[i] / lanes[i], np.float64) for i in walk.order}
    moved = {tensor: problem.moved_by(tensor) for tensor in loaded}
    touched: dict[str, Floats] = {}
    for tensor, size in loaded.items():
        side = prod((lanes[i] for i in walk.order if i in moved[tensor]), start=np.asarray(1.0))
        touched[tensor] = np.minimum(distinct[tensor], size * side)
    fetched = dict(touched)
    for loop in reversed(walk.order):
        missed = _missed(problem, np.asarray(sum(touched.values()), np.float64))
        for tensor in loaded:
            if loop in moved[tensor]:
                fetched[tensor] = fetched[tensor] * waves[loop]
                touched[tensor] = np.minimum(distinct[tensor], touched[tensor] * waves[loop])
            else:
                fetched[tensor] = fetched[tensor] * (1 + (waves[loop] - 1) * missed)
    return {tensor: np.maximum(fetched[tensor] - distinct[tensor], 0.0) for tensor in loaded}


def _lanes(walk: TaskWalk, trips: Mapping[str, Ints], cores: int) -> dict[str, Floats]:
    """Tasks along each loop that run side by side: the stripe of the outermost, then loops from the innermost on."""
    if not walk.order:
        return {}
    first, *others = walk.order
    lanes: dict[str, Floats] = {first: np.minimum(np.minimum(trips[first], walk.stripe), float(cores))}
    left = cores / lanes[first]
    for loop in reversed(others):
        lanes[loop] = np.minimum(trips[loop], left)
        left = np.maximum(left / lanes[loop], 1.0)
    lanes[first] = np.minimum(trips[first], lanes[first] * left)
    return lanes


def _least(options: Sequence[Mapping[str, Floats]]) -> Mapping[str, Floats]:
    """For every candidate what the option with the least sum has."""
    if len(options) == 1:
        return options[0]
    sums = np.stack(np.broadcast_arrays(*(sum(of.values(), start=np.zeros(1)) for of in options)))
    best = np.argmin(sums, axis=0)[None]
    return {
        tensor: np.take_along_axis(np.stack([np.broadcast_to(of[tensor], sums.shape[1:]) for of in options]), best, 0)[
            0
        ]
        for tensor in options[0]
    }


def _lines(problem: TilingProblem, seen: TileFootprints, tensor: str) -> Floats | float:
    """Bytes that lines have over those of the runs of a tensor in them."""
    target = problem.target
    if not target.line or tensor in problem.constants or tensor not in seen.windows:
        return 1.0
    run = seen.run(tensor, problem.graph.tensors[tensor].shape, problem.numbers)
    return 1.0 + target.line / np.asarray(run * problem.bytes_of(tensor), np.float64)
