"""Registers of the units that compute a task: how many tasks share those of a core, and when they do not suffice."""

from __future__ import annotations

import numpy as np

from tilec.scheduler.analysis.contraction import is_contraction
from tilec.scheduler.analysis.window_propagation import Ints, extents_of, volume
from tilec.scheduler.tiling.register_tiles import RegisterTile
from tilec.scheduler.tiling.tile_footprints import TileFootprints
from tilec.scheduler.tiling.tiling_problem import TilingProblem

BESIDE_POINTS = 24
"""Registers of a lane beside those of the points of its tile: addresses, temporaries (rows and elements: 30 to 40 in
all on an H100)."""

BESIDE_SUMS = 64
"""The same of a contraction, whose operands are loaded in blocks (50 to 110 on an H100; the assembler refuses products
by groups of warps with less than 26); it does with fewer where a block has many warps, but for groups of warps."""

SCHEDULERS = 4
"""Parts of a core, each with as many of its warps and of its registers (CUDA C++ Programming Guide, Hardware
Multithreading; also of HIP's)."""

WORD = 4
"""Bytes of a register of a lane."""


def task_registers(problem: TilingProblem, seen: TileFootprints, *, least: bool = False) -> Ints:
    """Bytes of registers that a task takes, or the `least` with which nothing spills: those of the part that needs
    most."""
    most: Ints = np.asarray(1, np.int64)
    for number, tile in enumerate(problem.tiles):
        few = tile.warps == 1 and (least or not is_contraction(problem.parts[number][0].expr))
        most = np.maximum(most, _part_registers(problem, number, tile, seen, BESIDE_POINTS if few else BESIDE_SUMS))
    return most


def unit_registers(problem: TilingProblem, seen: TileFootprints) -> Ints:
    """Bytes of registers that a unit needs at once for products that follow one another."""
    most: Ints = np.asarray(0, np.int64)
    for number, tile in enumerate(problem.tiles):
        if tile.further:
            _, points = _units_and_points(problem, number, tile, seen)
            most = np.maximum(most, points + BESIDE_SUMS * problem.target.lanes_bytes)
    return most


def units_of(problem: TilingProblem, number: int, tile: RegisterTile, seen: TileFootprints) -> Ints:
    """Units that compute a part of a task."""
    return _units_and_points(problem, number, tile, seen)[0]


def _part_registers(problem: TilingProblem, number: int, tile: RegisterTile, seen: TileFootprints, beside: int) -> Ints:
    """Bytes of registers of the units that compute a part of a task at a time, `beside` registers of a lane beside
    those of its points."""
    target = problem.target
    units, points = _units_and_points(problem, number, tile, seen)
    if tile.warps == 1:  # units take turns
        units = np.minimum(units, max(1, target.costs.task_threads * WORD // target.lanes_bytes))
    units = -(-units // SCHEDULERS) * SCHEDULERS
    return np.asarray(units * (points + beside * target.lanes_bytes))


def _units_and_points(
    problem: TilingProblem, number: int, tile: RegisterTile, seen: TileFootprints
) -> tuple[Ints, Ints]:
    """Units that compute a part of a task, and bytes of the points of the tile of each: those of its result, and of
    what a step of products that follow one another begins with."""
    first, final = problem.parts[number][0].expr, problem.parts[number][-1].expr
    box, extents = seen.boxes.get(final.tensor, {}), extents_of(final, problem.numbers)
    units, points = np.asarray(1, np.int64), np.asarray(WORD, np.int64)
    for iterator in final.spatial:
        size = tile.sizes.get(iterator) or extents.get(iterator) or 1
        lo, hi = box.get(iterator, (0, size))
        units, points = units * -(-np.asarray(hi - lo) // size), points * size
    if tile.further and first.tensor in seen.boxes:
        begun = volume([seen.boxes[first.tensor][i] for i in first.spatial])
        points = points + WORD * -(-begun // np.maximum(units, 1))
    return units, points
