"""Registers of the units that compute a task: how many tasks share those of a core, and when they do not suffice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilec.ir.expr import TensorExpr
from tilec.scheduler.analysis.contraction import is_contraction
from tilec.scheduler.analysis.window_propagation import Ints, extents_of, volume
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.tiling.reduce_loops import ReduceLoops
from tilec.scheduler.tiling.register_tiles import RegisterTile
from tilec.scheduler.tiling.tile_footprints import TileFootprints
from tilec.scheduler.tiling.tiling_problem import TilingProblem

WORD = 4
"""Bytes of a register of a lane."""


@dataclass(frozen=True, slots=True)
class TaskRegisters:
    """Bytes of registers that a task takes, those of the part that needs most, the `least` with which nothing spills,
    and those that a `unit` needs at once for products that follow one another; the `units` of the part with most."""

    taken: Ints
    least: Ints
    unit: Ints
    units: Ints


def task_registers(problem: TilingProblem, seen: TileFootprints, loops: ReduceLoops) -> TaskRegisters:
    """The registers of a task; none where no units of a core work side by side.  Units of a reduce loop, at whose
    barriers all meet, are there while other parts are computed, and have registers for those, too."""
    target, costs = problem.target, problem.target.costs
    taken: Ints = np.asarray(1, np.int64)
    least, most = taken, np.asarray(0, np.int64)
    tiles = problem.tiles if target.hides_latency_by_threads else ()
    works = [_units(problem, number, tile, seen) for number, tile in enumerate(tiles)]
    there, every = np.asarray(1, np.int64), np.asarray(1, np.int64)
    for number, (units, _) in enumerate(works):
        every = np.maximum(every, units)
        rounds = loops.sums.get(anchor_of(problem, number).tensor, 1)
        there = np.where(np.asarray(rounds) > 1, np.maximum(there, units), there)
    for number, (units, points) in enumerate(works):
        tile, units = problem.tiles[number], np.maximum(units, there)
        if tile.further:
            most = np.maximum(most, points + costs.beside_sums * target.lanes_bytes)
        few, many = (
            np.asarray(units * (points + beside * target.lanes_bytes))
            for beside in (costs.beside_points, costs.beside_sums)
        )
        alone = tile.warps == 1
        taken = np.maximum(taken, few if alone and not is_contraction(problem.group.parts[number][0].expr) else many)
        least = np.maximum(least, few if alone else many)
    return TaskRegisters(taken, least, most, every)


def anchor_of(problem: TilingProblem, number: int) -> TensorExpr:
    """The reduction whose steps a part takes: its first node, the last product where several follow one another."""
    tile = problem.tiles[number]
    return problem.group.parts[number][tile.further[-1][0] if tile.further else 0].expr


def task_units(target: TargetModel) -> int:
    """Units that compute a task at a time at most."""
    return max(1, target.costs.task_threads * WORD // target.lanes_bytes)


def units_of(problem: TilingProblem, number: int, tile: RegisterTile, seen: TileFootprints) -> Ints:
    """Units that compute a part of a task at a time."""
    return _units(problem, number, tile, seen)[0]


def _units(problem: TilingProblem, number: int, tile: RegisterTile, seen: TileFootprints) -> tuple[Ints, Ints]:
    """Units that compute a part of a task at a time, and the bytes of the points of one: those of its result, and of
    what a step of products that follow one another begins with."""
    target, first, final = problem.target, problem.group.parts[number][0].expr, problem.group.parts[number][-1].expr
    box, extents = seen.boxes.get(final.tensor, {}), extents_of(final, problem.numbers)
    units, points = np.asarray(1, np.int64), np.asarray(WORD, np.int64)
    for iterator in final.spatial:
        size = tile.sizes.get(iterator) or extents.get(iterator) or 1
        lo, hi = box.get(iterator, (0, size))
        units, points = units * -(-np.asarray(hi - lo) // size), points * size
    if tile.further and first.tensor in seen.boxes:
        begun = volume([seen.boxes[first.tensor][i] for i in first.spatial])
        points = points + WORD * -(-begun // np.maximum(units, 1))
    if tile.warps == 1:  # units take turns
        units = np.minimum(units, task_units(target))
    return -(-units // target.costs.schedulers) * target.costs.schedulers, points
