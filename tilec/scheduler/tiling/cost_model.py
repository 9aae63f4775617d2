"""score: the predicted time of a group for many candidate tiles at once (W07, W08, W22-W24).

A task is one tile of the final node at a core's level.  It computes while its windows stream in, after it has staged
what needs a copy; tasks are dealt to cores, and a last task that the others wait for costs what it costs.  However
well tiles are chosen, what no cache keeps has to come from the level below.

Bytes of all tasks, and how often loops go round, are floats: poor candidates of large operators exceed 64 bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from math import inf, prod
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tilec.ir.expr import operands
from tilec.ir.types import element_bytes
from tilec.scheduler.analysis.window_propagation import extents_of
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.tiling.bank_layouts import conflicting_bytes
from tilec.scheduler.tiling.cache_reuse import TaskWalk, drawn_bytes, task_walks
from tilec.scheduler.tiling.part_cycles import PartWork, part_works, resident_tasks, task_cycles
from tilec.scheduler.tiling.reduce_loops import Floats, Ints, ReduceLoops, Steps
from tilec.scheduler.tiling.register_use import WORD, TaskRegisters, task_registers, units_of
from tilec.scheduler.tiling.task_needs import (
    TaskNeeds,
    loaded_bytes,
    pipelined_bytes,
    read_in_place,
    requested_bytes,
    rounded_bytes,
    task_needs,
)
from tilec.scheduler.tiling.tile_footprints import TileFootprints
from tilec.scheduler.tiling.tiling_problem import TilingProblem

S = TypeVar("S", bound=np.generic)

FEWEST_ROUNDS = 2
"""Rounds of a reduce loop that takes more than one step."""

STAGES = (2, 3, 4)
"""Copies of what a reduce loop loads that are tried where loads may be asynchronous."""

TRIPS = 4
"""Times the latency of an idle memory that a load takes where many are on their way (measured on an H100: a core with
32 KiB on their way draws 27 GB/s)."""


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


@dataclass(frozen=True, slots=True)
class TaskWork:
    """What tasks do however many copies their reduce loops have of what they load, for every candidate: the number of
    tasks, what they need, the work of their parts and their registers; bytes of another copy; cycles that the level's
    ports are busy, and of the `addresses` of what is copied in small pieces; bytes that a task reads, requests, `past`
    a core's level those of them, streams and copies, and that all draw from the lowest level; the `largest` task, where
    one stores what no tile of the final node reads."""

    needs: TaskNeeds
    works: Sequence[PartWork]
    registers: TaskRegisters
    another: Ints
    ports: tuple[Floats, ...]
    addresses: Floats
    read: Floats
    requested: Floats
    past: Floats
    stream: Floats
    copied: Floats
    drawn: Floats
    largest: TaskWork | None = None


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
    one = np.asarray(1, np.int64)

    def work() -> TaskWork:
        return _works(problem, sizes, steps, wide)

    if stages is None and not steps:
        return problem.estimated(sizes, lambda: _estimate(problem, work(), one))
    of = work()
    if stages is not None:
        return _estimate(problem, of, stages)
    best = _estimate(problem, of, one)
    for count in STAGES if problem.target.asynchronous else ():
        other = _estimate(problem, of, np.asarray(count, np.int64))
        better = (other.held <= problem.target.capacity) & (other.objective < best.objective)
        best = Estimate(
            *(np.where(better, theirs, ours) for theirs, ours in zip(astuple(other), astuple(best), strict=True))
        )
    return best


def _estimate(problem: TilingProblem, work: TaskWork, stages: Ints) -> Estimate:
    of = _terms(problem, work, stages=stages)
    objective = _objective(problem, of.seconds, of.moved, of.held)
    found = np.broadcast_arrays(objective, of.seconds, of.held, of.moved, stages)
    return Estimate(*(np.atleast_1d(values) for values in found))


def estimate_without_steps(problem: TilingProblem, sizes: Mapping[str, Ints]) -> TileFootprints:
    """What tiles need without reduce steps."""
    return task_needs(problem, sizes, {})[2]


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
    work = _works(problem, sizes, steps, wide, walk)
    return _terms(problem, work, least=least, stages=np.asarray(stages))


def _works(
    problem: TilingProblem,
    sizes: Mapping[str, Ints],
    steps: Steps,
    wide: TileFootprints | None,
    walk: TaskWalk | None = None,
) -> TaskWork:
    """What a task does, and what the largest one does if others do less."""
    usual = _work(problem, sizes, task_needs(problem, sizes, steps, wide), walk)
    if not problem.unread:
        return usual
    largest = _work(problem, sizes, task_needs(problem, sizes, steps, largest=True), walk)
    return replace(usual, largest=largest, drawn=usual.drawn + np.maximum(largest.requested - usual.requested, 0))


def _work(
    problem: TilingProblem, sizes: Mapping[str, Ints], needs: TaskNeeds, walk: TaskWalk | None = None
) -> TaskWork:
    target = problem.target
    tasks, loops, seen, _ = needs
    loaded = loaded_bytes(problem, seen, loops)
    read: Floats = np.asarray(sum(loaded.values()), np.float64)
    final = seen.elements[problem.group.final.tensor] * problem.storage.bytes_of(problem.group.final.tensor)
    requested = requested_bytes(problem, seen, loops)
    stored = sum(problem.whole(t) * rounded_bytes(problem, seen, t) for t in problem.group.outputs) / np.maximum(
        tasks, 1
    )
    copies = {
        t: loaded[t] * problem.storage.held_bytes(t) / problem.storage.bytes_of(t)
        for t in problem.storage.staged
        if t in loaded
    }
    copied = sum(copies.values(), start=np.asarray(0.0))
    for tensor in problem.storage.converted.intersection(problem.group.outputs):
        copied = copied + seen.elements[tensor] * problem.storage.held_bytes(tensor)
    for tensor, whole in read_in_place(problem, seen).items():
        copied = copied - np.where(whole, loaded[tensor], 0)
    for name, times in loops.sums.items():
        if (target.spills_sums or problem.group.chain is not None) and not problem.group.accumulates_above:
            copied = copied + 2 * seen.elements[name] * problem.storage.bytes_of(name) * times * (times > 1)
    ports: list[Floats] = []
    if target.hides_latency_by_threads:  # loads and results pass the level's ports as what registers read does
        past = sum((loaded[t] for t in problem.storage.unstaged if t in loaded), start=np.asarray(0.0))
        past = past + (final if problem.group.final.tensor in problem.storage.unstaged else 0)
        ports.append((read + final - past) / target.feed)
    if problem.storage.banked:
        ports.append(conflicting_bytes(problem, seen, loaded) / target.feed)
    return TaskWork(
        needs,
        part_works(problem, seen, loops),
        task_registers(problem, seen, loops),
        np.asarray(sum(pipelined_bytes(problem, loops, seen).values()) if target.asynchronous else 0),
        tuple(ports),
        _address_cycles(problem, seen, loops),
        read,
        np.asarray(sum(requested.values()), np.float64),
        np.asarray(sum(requested[t] for t in problem.storage.unstaged if t in requested), np.float64),
        np.asarray(sum(requested.values()) + (2 * final if target.is_cached else stored), np.float64),
        copied,
        drawn_bytes(problem, requested, seen, tasks, sizes, walk),
    )


def _terms(problem: TilingProblem, work: TaskWork, *, least: bool = False, stages: Ints) -> CostTerms:
    target, costs = problem.target, problem.target.costs
    tasks, loops, _, held = work.needs
    if np.any(stages > 1):
        held, stages = held + (stages - 1) * work.another, np.where(work.another > 0, stages, 1)
    resident = resident_tasks(problem, np.zeros_like(held) if least else held, tasks, work.registers)
    cycles = sum(work.ports, start=task_cycles(target, work.works, work.registers, resident))
    if costs.addressing and not least:
        busy = resident * work.registers.units / (costs.schedulers * costs.busy_units)
        cycles = cycles + work.addresses / np.minimum(busy, 1)
    compute = cycles / target.clock
    copy = work.copied / target.copy
    rounds: Floats = np.asarray(sum(loops.rounds.values()) + (FEWEST_ROUNDS if least else 0), np.float64)
    stream, drawn = work.stream / target.refill, _drawn(problem, work.drawn, tasks)
    if not target.is_cached:  # a copy takes as long as the narrowest link that it passes
        stream = np.maximum(stream, drawn * np.minimum(tasks, target.cores) / np.maximum(tasks, 1))
    if problem.storage.unstaged:
        flight = np.maximum(_in_flight(problem, work.needs[2], resident), 1)
        stream = np.maximum(stream, work.past * TRIPS * costs.round / flight)
    longer, shorter = np.maximum(compute, stream), np.minimum(compute, stream)
    hidden = np.asarray(costs.exposed * shorter * (1 - work.past / np.maximum(work.requested, 1)))
    wait: Floats = np.asarray(costs.round * (1 + rounds))
    if target.asynchronous and (least or np.any(stages > 1)):
        turns = np.maximum(rounds, 1)
        late = np.zeros(1) if least else _late(problem.target, longer / turns, stream / turns, stages)
        hidden = np.where(least | (stages > 1), 0 if least else shorter / turns, hidden)
        wait = np.where(least | (stages > 1), costs.round + rounds * late, wait)
    wait = costs.task + (wait + costs.phase * max(0, problem.storage.phases - 1)) / resident
    task = longer + hidden + copy + wait
    last = task
    if work.largest is not None:
        last = np.maximum(task, _terms(problem, work.largest, least=least, stages=stages).task)
    waves = np.maximum((tasks - 1) // target.cores * task + last, tasks * task / target.cores + costs.imbalance * task)
    span = np.where(tasks == 1, last, waves + (costs.join if target.launch == 0 else 0))
    seconds = target.launch + np.maximum(span, drawn)
    moved = tasks * work.read + sum(problem.whole(t) for t in problem.group.outputs)
    if work.largest is not None:
        moved = moved + np.maximum(work.largest.read - work.read, 0)
    return CostTerms(tasks, compute, stream, copy, wait, task, span, drawn, target.launch, seconds, held, moved)


def _address_cycles(problem: TilingProblem, seen: TileFootprints, loops: ReduceLoops) -> Floats:
    """Cycles in which all of a core compute where the operands lie that a task copies in pieces of less than the widest
    ones, since their runs (`TileFootprints.run`) have other lengths; where runs begin is not looked at."""
    target, costs = problem.target, problem.target.costs
    pieces: Floats = np.asarray(0.0)
    for tensor in problem.group.operands if costs.addressing else ():
        if tensor in problem.group.constants | problem.storage.unstaged or tensor not in seen.windows:
            continue
        size, shape = problem.storage.bytes_of(tensor), problem.group.graph.tensors[tensor].shape
        wide = np.gcd(seen.run(tensor, shape, problem.numbers) * size, costs.widest)
        whole = seen.elements[tensor] * size * loops.times(tensor)
        pieces = pieces + np.where(wide < costs.widest, whole / np.maximum(wide, size), 0)
    lanes = target.lanes_bytes // WORD
    return np.asarray(pieces * costs.addressing / (costs.schedulers * lanes))


def _in_flight(problem: TilingProblem, seen: TileFootprints, resident: Ints) -> Floats:
    """Bytes that the tasks on a core have on their way into registers at a time, of the part that has fewest."""
    least: Floats = np.asarray(inf)
    for number, (part, tile) in enumerate(zip(problem.group.parts, problem.tiles, strict=True)):
        read = {tensor for node in part for tensor in operands(node.expr)} & problem.storage.unstaged
        if not read:
            continue
        extents = extents_of(part[0].expr, problem.numbers)
        points = prod(tile.sizes.get(i) or extents_of(part[-1].expr, problem.numbers)[i] for i in part[-1].expr.spatial)
        steps = prod(tile.steps.get(i, extents[i]) for i in part[0].expr.reduce)
        units = np.minimum(resident * units_of(problem, number, tile, seen), problem.target.threads)
        each = points * steps * sum(element_bytes(problem.group.graph.tensors[t].ttype) for t in read)
        least = np.minimum(least, units * each)
    return least


def _late(target: TargetModel, longer: Floats, stream: Floats, stages: Ints) -> Floats:
    """Seconds that a round waits for loads that began `stages` - 1 rounds ago, which take a latency and what they
    stream (measured on an H100: 1.46 us a round of 48 KiB with two copies, 1.02 with three, products 0.58)."""
    ahead = (target.costs.round + stream) / np.maximum(stages - 1, 1)
    return np.maximum(ahead - longer, target.costs.arrival)


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
    tasks, loops, seen, _ = task_needs(problem, sizes, steps)
    return drawn_bytes(problem, requested_bytes(problem, seen, loops), seen, tasks, sizes, walk)


def _objective(problem: TilingProblem, seconds: Floats, moved: Floats, held: Ints) -> Floats:
    if problem.objective == "traffic":
        return moved + seconds * 1e-3
    if problem.objective == "footprint":
        return held + seconds * 1e-3
    return seconds


def _drawn(problem: TilingProblem, size: Floats, tasks: Ints) -> Floats:
    """Seconds that the lowest level takes for so many bytes of a group: cores share its bandwidth unevenly, and the one
    that is left with a last task cannot draw all of it."""
    target = problem.target
    readers, link = np.clip(tasks, 1, target.cores), target.links[target.core]
    alone = size / np.minimum(link, target.draw * readers)
    idle = target.costs.imbalance * max(0.0, 1 - target.draw / link)
    return np.asarray(alone * (1 + np.where(tasks > 1, idle * readers / np.maximum(tasks, 1), 0)))
