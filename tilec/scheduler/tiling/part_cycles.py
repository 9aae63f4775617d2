"""The cycles that the register tiles of a task's parts take, for many candidate tiles at once (W23)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod

import numpy as np
from numpy.typing import NDArray

from tilec.ir.expr import TensorExpr, accesses, operands, variables
from tilec.ir.matrix_units import matrix_product
from tilec.scheduler.analysis.window_propagation import Box, extent_of, extents_of
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.tiling.bank_layouts import row_layouts
from tilec.scheduler.tiling.reduce_loops import Floats, Ints, ReduceLoops, Steps
from tilec.scheduler.tiling.register_tiles import RegisterTile
from tilec.scheduler.tiling.register_use import TaskRegisters, anchor_of, task_registers, task_units
from tilec.scheduler.tiling.task_needs import task_needs
from tilec.scheduler.tiling.tile_footprints import TileFootprints
from tilec.scheduler.tiling.tiling_problem import TilingProblem

NO_CODE = 1e6
"""Times as long as tiles count that have no code: those that units that read operands in memory do not compute, and
those of more units around a reduce loop, at whose barriers all meet, than compute a task."""


@dataclass(frozen=True, slots=True)
class PartWork:
    """The cycles of a part in a task whose units are all busy, the number of its register tiles, and the independent
    chains of instructions in one."""

    cycles: Floats
    tiles: Floats
    chains: int = 1

    def shared(self, target: TargetModel, resident: Ints) -> Floats:
        """The cycles where `resident` tasks share a core: units wait where there is too little to do at a time."""
        if not target.hides_latency_by_threads:
            return self.cycles
        return np.asarray(self.cycles / np.clip(resident * self.tiles * self.chains / target.threads, 1e-9, 1))


def register_tiles(
    problem: TilingProblem, sizes: Mapping[str, Ints], steps: Steps, options: Sequence[Sequence[RegisterTile]]
) -> list[RegisterTile]:
    """For every part the one of its register tiles that takes the fewest cycles in a core's tile."""
    tasks, loops, seen, held = task_needs(problem, sizes, steps)
    resident = resident_tasks(problem, held, tasks, task_registers(problem, seen, loops))

    found: list[RegisterTile] = []
    for number, tiles in enumerate(options):
        works = (_part_work(problem, number, tile, seen, loops) for tile in tiles)
        cycles = [float(np.max(work.shared(problem.target, resident))) for work in works]
        found.append(tiles[cycles.index(min(cycles))])
    return found


def resident_tasks(problem: TilingProblem, held: Ints, tasks: Ints, registers: TaskRegisters) -> Ints:
    """Tasks that share a core: its level has room for them, and so have its registers."""
    target = problem.target
    share = np.clip(-(-tasks // target.cores), 1, target.costs.resident_tasks)
    most = target.capacity // np.maximum(held, 1)
    if target.hides_latency_by_threads and target.register_bytes < inf:
        most = np.minimum(most, target.register_bytes // registers.taken)
    return np.asarray(np.clip(most, 1, share), np.int64)


def part_works(problem: TilingProblem, seen: TileFootprints, loops: ReduceLoops) -> list[PartWork]:
    """The work of all parts in a task."""
    return [_part_work(problem, number, tile, seen, loops) for number, tile in enumerate(problem.tiles)]


def task_cycles(target: TargetModel, works: Sequence[PartWork], registers: TaskRegisters, resident: Ints) -> Floats:
    """Cycles of one task: the register tiles of all parts, as many at a time as there are units to hold them."""
    total: Floats = np.zeros(1)
    for work in works:
        total = total + work.shared(target, resident)
    if target.hides_latency_by_threads:
        spills = (registers.least > target.register_bytes) | (registers.unit > (target.levels[-1].capacity or inf))
        total = total * np.where(spills, target.costs.spilled, 1.0)
    return total


def _part_work(
    problem: TilingProblem, number: int, tile: RegisterTile, seen: TileFootprints, loops: ReduceLoops
) -> PartWork:
    """The work of one part in a task."""
    target, expr = problem.target, problem.group.parts[number][-1].expr
    box = seen.boxes.get(expr.tensor)
    if box is None:
        return PartWork(np.zeros(1), np.ones(1))
    tiles: dict[str, Ints | Floats | float] = {}
    extents = extents_of(expr, problem.numbers)
    lanes, widths = target.lanes(problem.storage.bytes_of(expr.tensor)), list[int]()
    for iterator in expr.spatial:
        lo, hi = box[iterator]
        size = tile.sizes.get(iterator) or extents[iterator] or 1
        narrow = tile.clipped and iterator != tile.along
        tiles[iterator] = (hi - lo) / size if narrow else -(-(hi - lo) // size)
        widths.insert(0, size)
    count: Floats = np.asarray(prod(tiles.values()) * _crossing(problem, tile, box), np.float64)
    cycles: Floats = np.asarray(count * tile.cycles * loops.around(number) * seen.share(expr.tensor), np.float64)
    anchor = anchor_of(problem, number)
    cycles = cycles * _ragged_depth(problem, anchor, tile, loops)
    if any(operands(problem.group.parts[number][0].expr)[place] in problem.storage.unstaged for place in tile.streamed):
        cycles = cycles * np.where(_takes_rows(tile, box, extents), 1.0, NO_CODE)
    if tile.warps > 1:
        cycles = cycles * np.where(_takes_groups(problem, number, tile, seen, loops), 1.0, NO_CODE)
    if target.hides_latency_by_threads and anchor.tensor in loops.sums and problem.group.chain is None:
        together = (loops.sums[anchor.tensor] > 1) & (prod(tiles.values()) > task_units(target))
        cycles = cycles * np.where(together, NO_CODE, 1.0)
    if expr.tensor in loops.sums:
        for moved, rescaled in problem.group.rescaling.get(expr.tensor, {}).items():
            times = prod((hi - lo if i in moved else tiles[i] for i, (lo, hi) in box.items() if i in tiles), start=1)
            width = _sum_lanes(problem, anchor, tile, moved) if tile.unit else lanes if tile.along in moved else 1
            cycles = cycles + loops.sums[expr.tensor] * times * rescaled / width / 2
    return PartWork(cycles, count, _chains(target, tile, tuple(widths), lanes))


def _chains(target: TargetModel, tile: RegisterTile, widths: tuple[int, ...], lanes: int) -> int:
    """Chains of instructions of a register tile of some widths, the fastest first, that do not wait for each other."""
    most = target.costs.latency_chains
    if not target.hides_latency_by_threads or tile.vector.kind == "reduce":
        return most
    return min(target.vectors_of_box(widths, lanes), most)


def _sum_lanes(problem: TilingProblem, anchor: TensorExpr, tile: RegisterTile, moved: Collection[str]) -> int:
    """Lanes that hold different sums of a unit of matrices along some iterators."""
    unit = next(unit for unit, _ in problem.target.matrices if unit.name == tile.unit)
    ttypes = {tensor: problem.group.graph.tensors[tensor].ttype for tensor in operands(anchor)}
    product = matrix_product(anchor, ttypes, unit)
    axes = () if product is None else zip((product.rows, product.columns), unit.sums, strict=True)
    return prod(span.lanes for name, span in axes if name in moved)


def _ragged_depth(problem: TilingProblem, anchor: TensorExpr, tile: RegisterTile, loops: ReduceLoops) -> Floats:
    """Relative time of reduce steps that the depth of a unit of matrices does not divide: zeros fill the rest."""
    step = loops.steps.get(anchor.tensor, {}).get(tile.vector.iterator)
    unit = next((unit for unit, _ in problem.target.matrices if unit.name == tile.unit), None)
    if step is None or unit is None:
        return np.ones(1)
    whole = extent_of(anchor.domain[tile.vector.iterator], problem.numbers)
    rounds = -(-whole // np.maximum(step, 1))
    return np.asarray(rounds * -(-step // unit.depth) / max(1, -(-whole // unit.depth)), np.float64)


def _takes_rows(tile: RegisterTile, box: Box, extents: Mapping[str, int]) -> NDArray[np.bool_]:
    """Whether a core's tile consists of whole register tiles whose lanes load rows: each begins with a row."""
    whole: NDArray[np.bool_] = np.asarray(True)
    for iterator, size in tile.sizes.items():
        width = np.maximum(box[iterator][1] - box[iterator][0], 1) if iterator in box else np.asarray(size)
        whole = whole & (width % size == 0) & ((iterator != tile.along) | (extents[iterator] % width == 0))
    return whole


def _takes_groups(
    problem: TilingProblem, number: int, tile: RegisterTile, seen: TileFootprints, loops: ReduceLoops
) -> NDArray[np.bool_]:
    """Whether a core's tile consists of whole groups of warps of a unit that reads operands in memory, in whole steps,
    and these lie there in swizzled rows, each warp's at the beginning of a panel."""
    anchor, final = problem.group.parts[number][0].expr, problem.group.parts[number][-1].expr
    unit = next(unit for unit, _ in problem.target.matrices if unit.name == tile.unit)
    box, extents = seen.boxes[final.tensor], extents_of(final, problem.numbers)
    if not all(i in box for i in tile.sides):
        return np.asarray(False)
    (rows, m), (columns, n) = (
        (box[i][1] - box[i][0], tile.sizes.get(i) or extents[i] or 1) for i in tile.sides
    )  # fmt: skip
    depth = tile.vector.iterator
    whole = extent_of(anchor.domain[depth], problem.numbers)
    step = loops.steps.get(anchor.tensor, {}).get(depth, np.asarray(whole))
    fits = (m == unit.rows) & (rows % (unit.rows * unit.warps) == 0) & (n % unit.columns == 0) & (columns % n == 0)
    fits = fits & (whole % np.maximum(step, 1) == 0) & (step % unit.depth == 0)
    layouts = row_layouts(problem, seen)
    for access in accesses(anchor):
        if access.tensor not in layouts:
            return np.asarray(False)
        swizzle = layouts[access.tensor].swizzle
        deep = depth in variables(access.index[problem.storage.banked[access.tensor][0].dim])
        fits = (
            fits
            & (swizzle > 0)
            & (deep | (n * problem.storage.held_bytes(access.tensor) % np.maximum(swizzle, 1) == 0))
        )
    return np.asarray(fits)


def _crossing(problem: TilingProblem, tile: RegisterTile, box: Box) -> Floats:
    """Relative time of register tiles that read packed constants: tasks that are neither whole panels nor parts of one
    begin inside of panels, whose ends no vector is loaded across (measured: 92 us against 34, 472 against 79). Lanes
    that may be idle load each by itself."""
    width = tile.sizes.get(tile.along)
    target = problem.target
    if not tile.panelled or width is None or not target.vectors or target.costs.masked:
        return np.ones(1)
    lo, hi = box[tile.along]
    whole = (hi - lo) % width == 0
    part = width % np.maximum(hi - lo, 1) == 0
    return np.asarray(np.where(whole | part, 1.0, 1 / target.costs.gathered))
