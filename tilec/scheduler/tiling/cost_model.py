"""score: the predicted time of a group for many candidate tiles at once (W07, W08, W22-W24).

A task is one tile of the final node at a core's level.  It computes while its windows stream in, after it has staged
what needs a copy; tasks are dealt to cores, and a last task that the others wait for costs what it costs.  However
well tiles are chosen, what no cache keeps has to come from the level below.

Bytes of all tasks, and how often loops go round, are floats: poor candidates of large operators exceed 64 bits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass
from math import inf, prod
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tilec.ir.expr import TensorExpr, accesses, operands, variables
from tilec.ir.matrix_units import matrix_product
from tilec.ir.types import element_bytes
from tilec.scheduler.analysis.window_propagation import Box, extent_of, extents_of
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.tiling.bank_layouts import conflicting_bytes, row_layouts, row_of
from tilec.scheduler.tiling.cache_reuse import TaskWalk, drawn_bytes, task_walks
from tilec.scheduler.tiling.register_tiles import RegisterTile
from tilec.scheduler.tiling.register_use import task_registers, unit_registers, units_of
from tilec.scheduler.tiling.tile_footprints import TileFootprints, tile_footprints
from tilec.scheduler.tiling.tiling_problem import TilingProblem, ranging

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
S = TypeVar("S", bound=np.generic)
Steps = Mapping[str, Mapping[str, Ints]]
"""Node -> reduce iterator -> reduce steps."""

FEWEST_ROUNDS = 2
"""Rounds of a reduce loop that takes more than one step."""

STAGES = (2, 3, 4)
"""Copies of what a reduce loop loads that are tried where loads may be asynchronous."""

NO_CODE = 1e6
"""Times as long as tiles count that units that read operands in memory do not compute."""

TRIPS = 2
"""Times the latency of an idle memory that a load takes where many are on their way."""

WORD = 4
"""Bytes of the smallest asynchronous copy (PTX ISA, cp.async)."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """For every candidate: what the objective minimises, seconds, bytes held at a core's level, bytes that all tasks
    move to and from it, and the copies of what its reduce loops load."""

    objective: Floats
    seconds: Floats
    held: Ints
    moved: Floats
    stages: Ints

    def flat(self, shape: tuple[int, ...]) -> Estimate:
        """The same for candidates of a shape, one after the other."""

        def every(values: NDArray[S]) -> NDArray[S]:
            return np.broadcast_to(values, shape).ravel()

        return Estimate(
            every(self.objective), every(self.seconds), every(self.held), every(self.moved), every(self.stages)
        )


@dataclass(frozen=True, slots=True)
class CostTerms:
    """What the predicted time is made of, for every candidate: the number of tasks, the seconds of one (`compute` and
    `stream` overlap, `copy` and the latency of its rounds, `wait`, add to them), of all of them on all cores (`span`)
    and of what they draw from the lowest level (`drawn`), of which the longer counts beside the `launch`; bytes that a
    core's level holds, and that all tasks move."""

    tasks: Ints
    compute: Floats
    stream: Floats
    copy: Floats
    wait: Floats
    task: Floats
    span: Floats
    drawn: Floats
    launch: float
    seconds: Floats
    held: Ints
    moved: Floats


def estimate(
    problem: TilingProblem,
    sizes: Mapping[str, Ints],
    steps: Steps,
    wide: TileFootprints | None = None,
    stages: Ints | None = None,
) -> Estimate:
    """Predict the group for tiles of its final node and reduce steps of its nodes, arrays that broadcast; `wide` is
    what the tiles need without steps, if that is known, `stages` the number of copies of what reduce loops load: the
    best, if it is not known."""
    if stages is None and not steps:
        one = np.asarray(1, np.int64)
        return problem.estimated(sizes, lambda: _estimate(problem, sizes, _held(problem, sizes, {}, wide), one))
    needs = _held(problem, sizes, steps, wide)
    if stages is not None:
        return _estimate(problem, sizes, needs, stages)
    best = _estimate(problem, sizes, needs, np.asarray(1, np.int64))
    for count in STAGES if problem.target.asynchronous else ():
        other = _estimate(problem, sizes, needs, np.asarray(count, np.int64))
        better = (other.held <= problem.target.capacity) & (other.objective < best.objective)
        best = Estimate(
            *(np.where(better, theirs, ours) for theirs, ours in zip(astuple(other), astuple(best), strict=True))
        )
    return best


def _estimate(problem: TilingProblem, sizes: Mapping[str, Ints], needs: _Needs, stages: Ints) -> Estimate:
    of = _terms(problem, sizes, needs, stages=stages)
    objective = _objective(problem, of.seconds, of.moved, of.held)
    found = np.broadcast_arrays(objective, of.seconds, of.held, of.moved, stages)
    return Estimate(*(np.atleast_1d(values) for values in found))


def estimate_without_steps(problem: TilingProblem, sizes: Mapping[str, Ints]) -> TileFootprints:
    """What tiles need without reduce steps."""
    return _held(problem, sizes, {})[2]


def lower_bounds(problem: TilingProblem, sizes: Mapping[str, Ints], wide: TileFootprints | None = None) -> Floats:
    """What no reduce steps bring the objective of tiles below: that of whole reductions, with the rounds of two steps,
    where a core's level has room for all tasks that may share a core.

    Steps load no less, and hold less, so that more tasks share a core; unless their windows leave out what those of
    whole reductions span (`TilingProblem.leaves_gaps`).
    """
    of = cost_terms(problem, sizes, {}, wide, least=True)
    return _objective(problem, of.seconds, of.moved, np.zeros_like(of.held))


def cost_terms(
    problem: TilingProblem,
    sizes: Mapping[str, Ints],
    steps: Steps,
    wide: TileFootprints | None = None,
    walk: TaskWalk | None = None,
    *,
    least: bool = False,
    stages: Ints | int = 1,
) -> CostTerms:
    """What the prediction is made of, for tasks in the order of a walk, or in the best one; the `least` of it that any
    more steps come to (`lower_bounds`)."""
    return _terms(problem, sizes, _held(problem, sizes, steps, wide), walk, least=least, stages=np.asarray(stages))


def _terms(
    problem: TilingProblem,
    sizes: Mapping[str, Ints],
    needs: _Needs,
    walk: TaskWalk | None = None,
    *,
    least: bool = False,
    stages: Ints,
) -> CostTerms:
    target, costs = problem.target, problem.target.costs
    tasks, loops, seen, held = needs
    if np.any(stages > 1):
        another = np.asarray(sum(_pipelined(problem, loops, seen).values()))
        held, stages = held + (stages - 1) * another, np.where(another > 0, stages, 1)
    implicit = target.is_cached
    loaded = _loaded(problem, seen, loops)
    read: Floats = np.asarray(sum(loaded.values()), np.float64)
    out = sum(problem.whole(t) for t in problem.outputs)
    final = seen.elements[problem.final.tensor] * problem.bytes_of(problem.final.tensor)
    requested = _requested(problem, seen, loops)
    stored = sum(problem.whole(t) * _rounded(problem, seen, t) for t in problem.outputs) / np.maximum(tasks, 1)
    stream = (sum(requested.values()) + (2 * final if implicit else stored)) / target.refill
    copies = {t: loaded[t] * problem.held_bytes(t) / problem.bytes_of(t) for t in problem.staged if t in loaded}
    copied = sum(copies.values(), start=np.asarray(0.0))
    for tensor in problem.converted.intersection(problem.outputs):
        copied = copied + seen.elements[tensor] * problem.held_bytes(tensor)
    for tensor, whole in _direct(problem, seen).items():
        copied = copied - np.where(whole, loaded[tensor], 0)
    for name, times in loops.sums.items():
        if (target.spills_sums or problem.chain is not None) and not problem.accumulates_above:
            copied = copied + 2 * seen.elements[name] * problem.bytes_of(name) * times * (times > 1)
    resident = _resident(problem, np.zeros_like(held) if least else held, tasks, seen)
    cycles = _cycles(problem, seen, loops, resident)
    if target.hides_latency_by_threads:  # loads and results pass the level's ports as what registers read does
        past = sum((loaded[t] for t in problem.unstaged if t in loaded), start=np.asarray(0.0))
        past = past + (final if problem.final.tensor in problem.unstaged else 0)
        cycles = cycles + (read + final - past) / target.feed
    if problem.banked:
        cycles = cycles + conflicting_bytes(problem, seen, loaded) / target.feed
    work = cycles / target.clock
    copy = copied / target.copy
    rounds: Floats = np.asarray(sum(loops.rounds.values()) + (FEWEST_ROUNDS if least else 0), np.float64)
    drawn = _drawn(problem, drawn_bytes(problem, requested, seen, tasks, sizes, walk), tasks)
    if not implicit:  # a copy takes as long as the narrowest link that it passes
        stream = np.maximum(stream, drawn * np.minimum(tasks, target.cores) / np.maximum(tasks, 1))
    past = sum((requested[t] for t in problem.unstaged if t in requested), start=np.asarray(0.0))
    stream = np.maximum(stream, past * TRIPS * costs.round / np.maximum(_in_flight(problem, seen, resident), 1))
    longer, shorter = np.maximum(work, stream), np.minimum(work, stream)
    staged = 1 - past / np.maximum(sum(requested.values(), start=np.asarray(0.0)), 1)
    hidden = np.asarray(costs.exposed * shorter * staged)
    wait: Floats = np.asarray(costs.round * (1 + rounds))
    if target.asynchronous and (least or np.any(stages > 1)):
        turns = np.maximum(rounds, 1)
        late = np.zeros(1) if least else _late(problem.target, longer / turns, stream / turns, stages)
        hidden = np.where(least | (stages > 1), 0 if least else shorter / turns, hidden)
        wait = np.where(least | (stages > 1), costs.round + rounds * late, wait)
    wait = costs.task + wait / resident
    task = longer + hidden + copy + wait
    span = np.where(
        tasks == 1,
        task,
        np.maximum(-(-tasks // target.cores) * task, tasks * task / target.cores + costs.imbalance * task)
        + (costs.join if target.launch == 0 else 0),
    )
    seconds = target.launch + np.maximum(span, drawn)
    moved = tasks * read + out
    return CostTerms(tasks, work, stream, copy, wait, task, span, drawn, target.launch, seconds, held, moved)


def _in_flight(problem: TilingProblem, seen: TileFootprints, resident: Ints) -> Floats:
    """Bytes that the tasks on a core have on their way into registers at a time, of the part that has fewest."""
    least: Floats = np.asarray(inf)
    for number, (part, tile) in enumerate(zip(problem.parts, problem.tiles, strict=True)):
        read = {tensor for node in part for tensor in operands(node.expr)} & problem.unstaged
        if not read:
            continue
        extents = extents_of(part[0].expr, problem.numbers)
        points = prod(tile.sizes.get(i) or extents_of(part[-1].expr, problem.numbers)[i] for i in part[-1].expr.spatial)
        steps = prod(tile.steps.get(i, extents[i]) for i in part[0].expr.reduce)
        units = np.minimum(resident * units_of(problem, number, tile, seen), problem.target.threads)
        each = points * steps * sum(element_bytes(problem.graph.tensors[t].ttype) for t in read)
        least = np.minimum(least, units * each)
    return least


def _late(target: TargetModel, longer: Floats, stream: Floats, stages: Ints) -> Floats:
    """Seconds that a round waits for loads that began `stages` - 1 rounds ago, which take a latency and what they
    stream (measured on an H100: 1.46 us a round of 48 KiB with two copies, 1.02 with three, products 0.58)."""
    ahead = (target.costs.round + stream) / np.maximum(stages - 1, 1)
    return np.maximum(ahead - longer, target.costs.arrival)


def _rounded(problem: TilingProblem, seen: TileFootprints, tensor: str) -> Floats | float:
    """Bytes in whole transactions over bytes, of a tensor whose windows are copied (W22).

    A window moves run by run. A run that transactions do not divide begins anywhere that its length allows. Constants
    are laid out for their tiles, and hardware that fetches lines is charged for them where they come from
    (`drawn_bytes`).
    """
    target = problem.target
    if target.is_cached or tensor in problem.constants or tensor not in seen.windows:
        return 1.0
    run = seen.run(tensor, problem.graph.tensors[tensor].shape, problem.numbers) * problem.bytes_of(tensor)
    return np.asarray(1 + (target.transaction - np.gcd(run, target.transaction)) / run, np.float64)


def task_walk(problem: TilingProblem, sizes: Mapping[str, Ints], steps: Steps, order: tuple[str, ...]) -> TaskWalk:
    """The walk through the tasks of one tile that draws the fewest bytes from below the caches; `order` where no other
    draws fewer, and where hardware fills a core's level, which reads ahead along that order."""
    usual = TaskWalk(order)
    if problem.target.is_cached or not problem.target.cache or len(order) < 2:
        return usual
    drawn = drawn_by_walk(problem, sizes, steps, usual)
    return min(drawn, key=lambda walk: drawn[walk])


def drawn_by_walk(
    problem: TilingProblem, sizes: Mapping[str, Ints], steps: Steps, usual: TaskWalk
) -> dict[TaskWalk, float]:
    """Bytes from and to the lowest level in the order of every walk that there is to choose, the `usual` one first."""
    walks = dict.fromkeys((usual, *task_walks(problem, sizes)))
    return {walk: float(np.max(drawn_from_below(problem, sizes, steps, walk))) for walk in walks}


def drawn_from_below(
    problem: TilingProblem, sizes: Mapping[str, Ints], steps: Steps, walk: TaskWalk | None = None
) -> Floats:
    """Bytes from and to the lowest level, past the caches, of tasks in the order of a walk, or in the best one."""
    tasks, loops, seen, _ = _held(problem, sizes, steps)
    return drawn_bytes(problem, _requested(problem, seen, loops), seen, tasks, sizes, walk)


def _requested(problem: TilingProblem, seen: TileFootprints, loops: _Loops) -> dict[str, Floats]:
    """Bytes of every operand that a task loads, in whole transactions where programs copy."""
    return {t: n * _rounded(problem, seen, t) for t, n in _loaded(problem, seen, loops).items()}


def _loaded(problem: TilingProblem, seen: TileFootprints, loops: _Loops) -> dict[str, Floats]:
    """Bytes of every operand that a task loads."""
    filled = not problem.target.is_cached
    size = {t: seen.elements[t] * problem.bytes_of(t) for t in problem.operands if t in seen.elements}
    return {t: n * loops.times(t) * seen.share(t, filled=filled) for t, n in size.items()}


def direct(problem: TilingProblem, sizes: Mapping[str, Ints], steps: Steps) -> frozenset[str]:
    """Operands with a halo that one tile reads in place."""
    if not problem.thin:
        return frozenset()
    seen = tile_footprints(problem.nodes, sizes, problem.spread(steps), problem.shapes, problem.numbers)
    return frozenset(tensor for tensor, whole in _direct(problem, seen).items() if bool(np.all(whole)))


def _direct(problem: TilingProblem, seen: TileFootprints) -> dict[str, NDArray[np.bool_]]:
    """Whether thin halos are read in place: where their readers take whole rows, so that guards hold or fail for a row
    at a time (measured: 56 us against 79 for a depthwise convolution; cut rows 113)."""
    found: dict[str, NDArray[np.bool_]] = {}
    exprs = {node.name: node.expr for node in problem.nodes}
    for tensor, readers in problem.thin.items():
        whole: NDArray[np.bool_] = np.asarray(True)
        for name in readers:
            expr = exprs[name]
            rows = [i for i in expr.spatial if i in ranging(expr)][1:]
            for iterator in rows if name in seen.boxes else ():
                lo, hi = seen.boxes[name][iterator]
                whole = whole & np.asarray(hi - lo == extent_of(expr.domain[iterator], problem.numbers))
        found[tensor] = whole
    return found


def _objective(problem: TilingProblem, seconds: Floats, moved: Floats, held: Ints) -> Floats:
    if problem.objective == "traffic":
        return moved + seconds * 1e-3
    if problem.objective == "footprint":
        return held + seconds * 1e-3
    return seconds


class _Loops:
    """Reduce loops at a core's level: how often they go round, what lives in them, how often sums are added to."""

    def __init__(self, problem: TilingProblem, steps: Steps) -> None:
        self.problem = problem
        self.steps = problem.spread(steps)
        self.rounds: dict[str, Floats] = {}
        self.inside: dict[str, dict[str, frozenset[str]]] = {}
        self.sums: dict[str, Floats] = {}
        self.sharing: dict[str, frozenset[str]] = {}
        for node in problem.nodes:
            if node.name in steps:
                extents = {i: extent_of(node.expr.domain[i], problem.numbers) for i in steps[node.name]}
                self.rounds[node.name] = np.asarray(
                    prod(-(-extents[i] // np.maximum(n, 1)) for i, n in steps[node.name].items()), np.float64
                )
                self.inside[node.name] = problem.inside(node.name, tuple(steps[node.name]))
                self.sharing[node.name] = frozenset(problem.sharing(node.name))
                self.sums |= dict.fromkeys(self.sharing[node.name], self.rounds[node.name])

    def times(self, tensor: str) -> Floats:
        """How often a task loads a window of a tensor from outside: loads that a loop does not move stand before it."""
        most: Floats = np.asarray(1.0)
        for _, seat, node in self.problem.readers[tensor] if self.inside else ():
            times: Floats = np.asarray(1.0)
            for stepped, moving in self.inside.items():
                if seat.moves(moving.get(node, frozenset())):
                    times = times * self.rounds[stepped]
            most = np.maximum(most, times)
        return most

    def around(self, part: int) -> Floats:
        """How often a part runs in a task; a reduction that a loop cuts runs once."""
        names = [node.name for node in self.problem.parts[part]]
        return prod(
            (
                self.rounds[s]
                for s, moving in self.inside.items()
                if names[-1] in moving and self.sharing[s].isdisjoint(names)
            ),
            start=np.asarray(1.0),
        )

    def span(self, tensor: str, first: int, last: int) -> tuple[int, int]:
        """The parts during which a window is held: all of a loop that does not move it."""
        problem = self.problem
        for stepped, moving in self.inside.items():
            members = [problem.made[name] for name in moving]
            low, high = min(members), max(members)
            summed = tensor in self.sharing[stepped]
            if tensor in moving and not summed:
                continue
            if last < low or first > high:
                continue
            reads = [(seat, n) for _, seat, n in problem.readers.get(tensor, []) if n in moving]
            if summed or not any(seat.moves(moving[n]) for seat, n in reads):
                first, last = min(first, low), max(last, high)
        return first, last


_Needs = tuple[Ints, _Loops, TileFootprints, Ints]
"""Tasks, their loops, what they need, and the bytes that a core's level holds of it."""


def _pipelined(problem: TilingProblem, loops: _Loops, seen: TileFootprints) -> dict[str, Ints]:
    """Operands that a reduce loop loads anew in every round -> bytes of one more copy: from the lowest level, as they
    are, in whole words."""
    found: dict[str, Ints] = {}
    for tensor in problem.operands if problem.target.asynchronous and loops.rounds else ():
        words = problem.bytes_of(tensor) >= WORD or tensor not in problem.halos
        if tensor in problem.held and tensor in seen.elements and words and tensor not in problem.converted:
            size = seen.elements[tensor] * problem.held_bytes(tensor)
            found[tensor] = np.where(loops.times(tensor) > 1, size, 0)
    return found


def pipelined(problem: TilingProblem, sizes: Mapping[str, Ints], steps: Steps) -> tuple[str, ...]:
    """The operands whose copies the reduce loops of a tile may begin to load ahead."""
    _, loops, seen, _ = _held(problem, sizes, steps)
    return tuple(tensor for tensor, size in _pipelined(problem, loops, seen).items() if np.any(size > 0))


def pads_and_swizzles(problem: TilingProblem, sizes: Mapping[str, Ints], steps: Steps) -> dict[str, tuple[int, int]]:
    """Tensor whose rows are laid out in a core's level -> elements behind a row, bytes of a panel, for one tile."""
    if not problem.banked:
        return {}
    seen = _held(problem, sizes, steps)[2]
    return {t: (int(np.max(of.pad)), int(np.max(of.swizzle))) for t, of in row_layouts(problem, seen).items()}


def _held(
    problem: TilingProblem, sizes: Mapping[str, Ints], steps: Steps, wide: TileFootprints | None = None
) -> _Needs:
    """The number of tasks, their loops, what they need, and the most bytes that a core's level holds at a time (W08):
    windows count from first to last use."""
    tasks: Ints = np.asarray(prod(-(-problem.extent(i) // np.maximum(n, 1)) for i, n in sizes.items()), np.int64)
    stored = {t: -(-problem.whole(t) // problem.bytes_of(t) // np.maximum(tasks, 1)) for t in problem.kept}
    loops = _Loops(problem, steps)
    seen = wide = wide or problem.footprints(sizes, stored)
    if steps:
        inside = frozenset(name for moving in loops.inside.values() for name in moving)
        moving = problem.movers if stored else None
        seen = tile_footprints(
            problem.nodes, sizes, problem.spread(steps), problem.shapes, problem.numbers, stored, inside, wide, moving
        )
    layouts = row_layouts(problem, seen) if problem.banked else {}
    total: list[Ints] = [np.asarray(0, np.int64) for _ in problem.parts]
    for tensor, (first, last) in problem.held.items():
        if tensor not in seen.elements:
            continue
        size = seen.elements[tensor] * problem.held_bytes(tensor)
        if tensor in layouts:
            row = np.maximum(row_of(problem, seen, tensor, problem.banked[tensor][0]), 1)
            size = size + seen.elements[tensor] // row * layouts[tensor].pad * problem.held_bytes(tensor)
        first, last = loops.span(tensor, first, last) if loops.rounds else (first, last)
        if tensor in problem.formers:
            size = 2 * size
        for number in range(first, last + 1):
            total[number] = total[number] + size
    most = total[0]
    for other in total[1:]:
        most = np.maximum(most, other)
    return tasks, loops, seen, most


def _resident(problem: TilingProblem, held: Ints, tasks: Ints, seen: TileFootprints) -> Ints:
    """Tasks that share a core: its level has room for them, and so have its registers."""
    target = problem.target
    share = np.clip(-(-tasks // target.cores), 1, target.costs.resident_tasks)
    most = target.capacity // np.maximum(held, 1)
    if target.hides_latency_by_threads and target.register_bytes < inf:
        most = np.minimum(most, target.register_bytes // task_registers(problem, seen))
    return np.asarray(np.clip(most, 1, share), np.int64)


def register_tiles(
    problem: TilingProblem, sizes: Mapping[str, Ints], steps: Steps, options: Sequence[Sequence[RegisterTile]]
) -> list[RegisterTile]:
    """For every part the one of its register tiles that takes the fewest cycles in a core's tile."""
    tasks, loops, seen, held = _held(problem, sizes, steps)
    resident = _resident(problem, held, tasks, seen)

    found: list[RegisterTile] = []
    for number, tiles in enumerate(options):
        cycles = [float(np.max(_part_cycles(problem, number, tile, seen, loops, resident))) for tile in tiles]
        found.append(tiles[cycles.index(min(cycles))])
    return found


def _cycles(problem: TilingProblem, seen: TileFootprints, loops: _Loops, resident: Ints) -> Floats:
    """Cycles of one task: the register tiles of all parts, as many at a time as there are units to hold them."""
    total: Floats = np.zeros(1)
    for number, tile in enumerate(problem.tiles):
        total = total + _part_cycles(problem, number, tile, seen, loops, resident)
    if problem.target.hides_latency_by_threads:
        spills = task_registers(problem, seen, least=True) > problem.target.register_bytes
        spills = spills | (unit_registers(problem, seen) > (problem.target.levels[-1].capacity or inf))
        total = total * np.where(spills, problem.target.costs.spilled, 1.0)
    return total


def _part_cycles(
    problem: TilingProblem, number: int, tile: RegisterTile, seen: TileFootprints, loops: _Loops, resident: Ints
) -> Floats:
    """Cycles of one part in a task; `resident` tasks share a core."""
    target, expr = problem.target, problem.parts[number][-1].expr
    box = seen.boxes.get(expr.tensor)
    if box is None:
        return np.zeros(1)
    tiles: dict[str, Ints | Floats | float] = {}
    extents = extents_of(expr, problem.numbers)
    lanes, widths = target.lanes(problem.bytes_of(expr.tensor)), list[Ints]()
    for iterator in expr.spatial:
        lo, hi = box[iterator]
        size = tile.sizes.get(iterator) or extents[iterator] or 1
        narrow = tile.clipped and iterator != tile.along
        tiles[iterator] = (hi - lo) / size if narrow else -(-(hi - lo) // size)
        widths.insert(0, np.asarray(size, np.int64))
    count: Floats = np.asarray(prod(tiles.values()) * _crossing(problem, tile, box), np.float64)
    cycles: Floats = np.asarray(count * tile.cycles * loops.around(number) * seen.share(expr.tensor), np.float64)
    anchor = problem.parts[number][tile.further[-1][0] if tile.further else 0].expr
    cycles = cycles * _ragged_depth(problem, anchor, tile, loops)
    if tile.streamed:
        held = {i: (box[i][1] - box[i][0], n) for i, n in tile.sizes.items() if i in box}
        whole = [
            (width % n == 0) & ((i != tile.along) | (extents[i] % np.maximum(width, 1) == 0))
            for i, (width, n) in held.items()
        ]
        cycles = cycles * np.where(np.all(np.broadcast_arrays(True, *whole), axis=0), 1.0, NO_CODE)
    if tile.warps > 1:
        cycles = cycles * np.where(_takes_groups(problem, number, tile, seen, loops), 1.0, NO_CODE)
    if expr.tensor in loops.sums:
        for moved, rescaled in problem.rescaling.get(expr.tensor, {}).items():
            times = prod((hi - lo if i in moved else tiles[i] for i, (lo, hi) in box.items() if i in tiles), start=1)
            width = _sum_lanes(problem, anchor, tile, moved) if tile.unit else lanes if tile.along in moved else 1
            cycles = cycles + loops.sums[expr.tensor] * times * rescaled / width / 2
    if target.hides_latency_by_threads:
        most = target.costs.latency_chains
        along = np.asarray(target.vector_count(int(widths[0]) if widths else 1, lanes))
        vectors = most if tile.vector.kind == "reduce" else int(target.vectors_together(widths, along, lanes))
        chains = min(vectors, most)
        cycles = cycles / np.clip(resident * count * chains / target.threads, 1e-9, 1)
    return cycles


def _sum_lanes(problem: TilingProblem, anchor: TensorExpr, tile: RegisterTile, moved: Collection[str]) -> int:
    """Lanes that hold different sums of a unit of matrices along some iterators."""
    unit = next(unit for unit, _ in problem.target.matrices if unit.name == tile.unit)
    product = matrix_product(anchor, problem.graph.ttypes, unit)
    axes = () if product is None else zip((product.rows, product.columns), unit.sums, strict=True)
    return prod(span.lanes for name, span in axes if name in moved)


def _ragged_depth(problem: TilingProblem, anchor: TensorExpr, tile: RegisterTile, loops: _Loops) -> Floats:
    """Relative time of reduce steps that the depth of a unit of matrices does not divide: zeros fill the rest."""
    step = loops.steps.get(anchor.tensor, {}).get(tile.vector.iterator)
    unit = next((unit for unit, _ in problem.target.matrices if unit.name == tile.unit), None)
    if step is None or unit is None:
        return np.ones(1)
    whole = extent_of(anchor.domain[tile.vector.iterator], problem.numbers)
    rounds = -(-whole // np.maximum(step, 1))
    return np.asarray(rounds * -(-step // unit.depth) / max(1, -(-whole // unit.depth)), np.float64)


def _takes_groups(
    problem: TilingProblem, number: int, tile: RegisterTile, seen: TileFootprints, loops: _Loops
) -> NDArray[np.bool_]:
    """Whether a core's tile consists of whole groups of warps of a unit that reads operands in memory, in whole steps,
    and these lie there in swizzled rows, each warp's at the beginning of a panel."""
    anchor, final = problem.parts[number][0].expr, problem.parts[number][-1].expr
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
        deep = depth in variables(access.index[problem.banked[access.tensor][0]])
        fits = fits & (swizzle > 0) & (deep | (n * problem.held_bytes(access.tensor) % np.maximum(swizzle, 1) == 0))
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


def _drawn(problem: TilingProblem, size: Floats, tasks: Ints) -> Floats:
    """Seconds that the lowest level takes for so many bytes of a group: cores share its bandwidth unevenly, and the one
    that is left with a last task cannot draw all of it."""
    target = problem.target
    readers, link = np.clip(tasks, 1, target.cores), target.links[target.core]
    alone = size / np.minimum(link, target.draw * readers)
    idle = target.costs.imbalance * max(0.0, 1 - target.draw / link)
    return np.asarray(alone * (1 + np.where(tasks > 1, idle * readers / np.maximum(tasks, 1), 0)))
