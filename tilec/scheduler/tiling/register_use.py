"""Registers of the units that compute a task: how many tasks share those of a core, and when they do not suffice."""

from __future__ import annotations

import numpy as np

from tilec.scheduler.analysis.contraction import is_contraction
from tilec.scheduler.analysis.window_propagation import Ints, extents_of
from tilec.scheduler.tiling.register_tiles import RegisterTile
from tilec.scheduler.tiling.tile_footprints import TileFootprints
from tilec.scheduler.tiling.tiling_problem import TilingProblem

BESIDE_POINTS = 24
"""Registers of a lane beside those of the points of its tile: addresses, temporaries (rows and elements: 30 to 40 in
all on an H100)."""

BESIDE_SUMS = 64
"""The same of a contraction, whose operands are loaded in blocks (50 to 110 on an H100; the assembler refuses products
by warpgroups with less than 26)."""

SCHEDULERS = 4
"""Parts of a core, each with as many of its warps and of its registers (CUDA C++ Programming Guide, Hardware
Multithreading; also of HIP's)."""

WORD = 4
"""Bytes of a register of a lane."""


def part_registers(problem: TilingProblem, number: int, tile: RegisterTile, seen: TileFootprints) -> Ints:
    """Bytes of registers of the units that compute a part of a task at a time."""
    target, final = problem.target, problem.parts[number][-1].expr
    box, extents = seen.boxes.get(final.tensor, {}), extents_of(final, problem.numbers)
    units, points = np.asarray(1, np.int64), WORD
    for iterator in final.spatial:
        size = tile.sizes.get(iterator) or extents.get(iterator) or 1
        lo, hi = box.get(iterator, (0, size))
        units, points = units * -(-np.asarray(hi - lo) // size), points * size
    if tile.warps == 1:  # units take turns
        units = np.minimum(units, max(1, target.costs.task_threads * WORD // target.lanes_bytes))
    units = -(-units // SCHEDULERS) * SCHEDULERS
    beside = BESIDE_SUMS if is_contraction(problem.parts[number][0].expr) else BESIDE_POINTS
    return np.asarray(units * (points + beside * target.lanes_bytes))


def task_registers(problem: TilingProblem, seen: TileFootprints) -> Ints:
    """Bytes of registers that a task takes: those of the part that needs most."""
    most: Ints = np.asarray(1, np.int64)
    for number, tile in enumerate(problem.tiles):
        most = np.maximum(most, part_registers(problem, number, tile, seen))
    return most
