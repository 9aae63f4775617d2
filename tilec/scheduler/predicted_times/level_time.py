"""Predicted time of a block of a level below a core's: its link, and the blocks inside of it (W46)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilec.scheduler.building.block import Block
from tilec.scheduler.memory_levels.hierarchical_search import tile_seconds, upper_levels
from tilec.scheduler.memory_levels.incremental_cost import IncrementalCost
from tilec.scheduler.memory_levels.level_problem import LevelProblem, OuterExtents
from tilec.scheduler.memory_levels.level_tiles import LevelTiles
from tilec.scheduler.predicted_times.core_time import core_seconds, planned_parts
from tilec.scheduler.predicted_times.planned_group import PlannedGroup


@dataclass(frozen=True)
class OrderedTiles(LevelTiles):
    """One tile in one order of its loops, looked at everywhere."""

    order: tuple[str, ...] = ()

    @property
    def orders(self) -> tuple[tuple[int, ...], ...]:
        """The one order; loops that it does not name stand outside."""
        named = [self.loops.index(i) for i in self.order if i in self.loops]
        return ((*(k for k in range(len(self.loops)) if k not in named), *named),)


def group_seconds(planned: PlannedGroup) -> float:
    """Seconds of a group of a plan."""
    return _seconds(planned, planned.block, {}, 0)


def _seconds(planned: PlannedGroup, block: Block, around: OuterExtents, taken: int) -> float:
    """Seconds of a block in a tile of the level below, `around` it; lower levels hold `taken` bytes of a pool."""
    target = planned.target
    if block.level == target.core:
        upper = upper_levels(target, taken) if target.core > 1 else target
        return core_seconds(planned, block, upper, around.get(block.final.name, {}))
    cores = [inner for inner in block.walk() if inner.level == target.core]
    parts = [part.nodes for core in cores for part in planned_parts(planned, core, target)]
    problem = LevelProblem(parts, planned.graph, target, block.level, planned.numbers, "time", around)
    extents = problem.facts[block.final.name].extents
    sizes = {i: np.asarray([min(n, extents[i])], np.int64) for i, n in block.sizes.items()}
    counts = {i: -(-extents[i] // n) for i, n in sizes.items()}
    walk = IncrementalCost(
        problem,
        OrderedTiles(sizes, counts, extents, everywhere=True, order=block.order),
        len(parts) - 1,
        frozenset(range(len(parts))),
    )
    for number in reversed(range(len(parts))):
        walk.add(number)
    best = walk.best()
    inside = walk.extents(0) if block.sizes or around else {}
    held = taken + (int(best.held) if target.levels[block.level].pool else 0)
    inner = [_seconds(planned, each, inside, held) for each in block.inner]
    return tile_seconds(problem, int(best.moved), int(walk.tiles.number[0]), inner)
