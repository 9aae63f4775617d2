"""Candidate sizes of a task's tile: multiples of register tiles that cut extents evenly, and whole waves of tasks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import prod

import numpy as np

from tilec.ir.expr import constant_value
from tilec.scheduler.analysis.contraction import is_contraction
from tilec.scheduler.tiling.reduce_loops import Ints
from tilec.scheduler.tiling.tiling_problem import TilingProblem

CHOICES = 12
"""Candidate sizes of an iterator."""

WAVES = 8
"""Whole waves of tasks that candidate sizes are made for, where there are more cores than sizes: of more, the last one
is a small part."""

MAX_CANDIDATES = 12000
"""Candidates of all iterators together."""

MAX_OPEN_CANDIDATES = 4000
"""Those of a node with sizes that vary, of which the best at one size are looked at at others."""


def candidates(
    problem: TilingProblem, fine: bool = False, choices: int = CHOICES, most: int = MAX_CANDIDATES
) -> dict[str, Ints]:
    """Sizes of every iterator of the final node that tiles may cut, an axis each; all combinations are candidates.

    What depends on few iterators stays small, and most of what windows are made of does.  `fine` allows tiles smaller
    than register tiles, but for the vector iterator of packed weights.
    """
    moving = tiled_iterators(problem)
    if problem.further:
        most = min(most, MAX_OPEN_CANDIDATES)
    grain = _grain(problem, fine)
    whole = {i: problem.extent(i) for i in moving}
    panelled = _panelled(problem)
    finer = {i: _finer(whole[i], grain[i]) if i not in panelled else [] for i in moving}
    axes = [_sizes(whole[i], grain[i], choices) for i in moving]
    while choices > 2 and prod(len(axis) for axis in axes) > most:
        choices -= 1
        axes = [_sizes(whole[i], grain[i], choices) for i in moving]
    if prod(len(axis) + len(finer[i]) for i, axis in zip(moving, axes, strict=True)) <= most:
        axes = [(*finer[i], *axis) for i, axis in zip(moving, axes, strict=True)]
    cores = problem.target.cores
    full = [sorted({*axis, *_waves(whole[i], grain[i], cores)}) for i, axis in zip(moving, axes, strict=True)]
    if cores > choices and prod(map(len, full)) <= most:
        axes = [tuple(axis) for axis in full]
    grid = np.meshgrid(*(np.asarray(a, np.int64) for a in axes), indexing="ij", sparse=True) if moving else []
    return dict(zip(moving, grid, strict=True))


def tiled_iterators(problem: TilingProblem) -> list[str]:
    """Iterators of the final node that tiles may cut: with further sinks those that these move along."""
    final, sinks = problem.group.final, problem.group.sinks
    moving = [i for i, e in zip(final.spatial, final.shape, strict=True) if constant_value(e) != 1]
    return [i for i in moving if i in sinks.aligned] if sinks.names else moving


def _grain(problem: TilingProblem, fine: bool) -> dict[str, int]:
    """What sizes are multiples of: the register tile, for rows the largest of any part."""
    shared = problem.group.rows.shared
    grain: dict[str, int] = {}
    for iterator in problem.group.final.spatial:
        if fine and iterator != problem.tiles[-1].along:
            grain[iterator] = 1
            continue
        sizes = [problem.tiles[-1].grain(iterator, problem.extent(iterator))]
        for part, tile in zip(problem.group.parts[:-1], problem.tiles[:-1], strict=True):
            twin = shared.get(iterator, {}).get(part[-1].name)
            if twin is not None:
                sizes.append(tile.grain(twin, problem.extent(iterator)))
        grain[iterator] = max(sizes)
    return grain


@lru_cache(maxsize=4096)
def _sizes(extent: int, grain: int, choices: int) -> tuple[int, ...]:
    """Multiples of a grain that cut an extent evenly, thinned out, and the whole extent."""
    grain = max(1, grain)
    even = sorted({min(extent, -(-part // grain) * grain) for part in _parts(extent, -(-extent // grain))} | {extent})
    if len(even) <= choices:
        return tuple(even)
    places = np.unique(np.geomspace(1, len(even), choices).astype(int) - 1)
    return tuple(even[int(p)] for p in places)


def _finer(extent: int, grain: int) -> list[int]:
    """Sizes below a grain: powers of two and divisors of the extent, for work that is short of tasks."""
    return [n for n in range(1, min(extent, grain)) if extent % n == 0 or n & (n - 1) == 0]


def _waves(extent: int, grain: int, cores: int) -> list[int]:
    """Multiples of a grain that cut an extent into no more parts than some whole waves of tasks, one on each core."""
    grain = max(1, grain)
    counts = [wave * cores for wave in range(1, WAVES + 1) if wave * cores * grain <= extent]
    return [min(extent, -(-extent // (count * grain)) * grain) for count in counts]


def _panelled(problem: TilingProblem) -> frozenset[str]:
    """The final node's iterator along which weights may be cut into panels: it is tiled by whole ones."""
    last = problem.tiles[-1]
    return frozenset({last.along} if is_contraction(problem.group.parts[-1][0].expr) else ())


def _parts(extent: int, most: int) -> Iterator[int]:
    """The sizes, each once, of the largest of n nearly equal parts of an extent, n from 1 to `most`."""
    n = 1
    while n <= most:
        rest = (extent - 1) // n
        yield rest + 1
        if rest == 0:
            break
        n = (extent - 1) // rest + 1
