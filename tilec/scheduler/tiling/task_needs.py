"""The windows of a task, the bytes that a core's level holds of them, and the bytes that it loads (W07, W08)."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilec.scheduler.analysis.window_propagation import extent_of
from tilec.scheduler.tiling.access_order import ranging
from tilec.scheduler.tiling.bank_layouts import row_layouts, row_of
from tilec.scheduler.tiling.reduce_loops import Floats, Ints, ReduceLoops, Steps
from tilec.scheduler.tiling.tile_footprints import NO_UNREAD, TileFootprints, tile_footprints
from tilec.scheduler.tiling.tiling_problem import TilingProblem

TaskNeeds = tuple[Ints, ReduceLoops, TileFootprints, Ints]
"""Tasks, their loops, what they need, and the bytes that a core's level holds of it."""

WORD = 4
"""Bytes of the smallest asynchronous copy (PTX ISA, cp.async)."""


def task_needs(
    problem: TilingProblem,
    sizes: Mapping[str, Ints],
    steps: Steps,
    wide: TileFootprints | None = None,
    *,
    largest: bool = False,
) -> TaskNeeds:
    """The number of tasks, their loops, what they need, and the most bytes that a core's level holds at a time (W08):
    windows count from first to last use. The `largest` task stores what no tile reads of tensors that leave, too."""
    tasks: Ints = np.asarray(prod(-(-problem.extent(i) // np.maximum(n, 1)) for i, n in sizes.items()), np.int64)
    stored = {t: -(-problem.read_elements(t) // np.maximum(tasks, 1)) for t in problem.group.kept}
    unread = problem.unread if largest else NO_UNREAD
    loops = ReduceLoops(problem, steps)
    seen = wide = wide or problem.footprints(sizes, stored, unread)
    if steps:
        inside = frozenset(name for moving in loops.inside.values() for name in moving)
        moving = problem.group.movers if stored else None
        seen = tile_footprints(
            problem.group.nodes,
            sizes,
            problem.group.spread(steps),
            problem.group.shapes,
            problem.numbers,
            stored,
            inside,
            wide,
            moving,
            unread,
        )
    layouts = row_layouts(problem, seen) if problem.storage.banked else {}
    more: list[Ints] = [np.asarray(0, np.int64) for _ in range(len(problem.group.parts) + 1)]
    for tensor, (first, last) in problem.storage.held.items():
        if tensor not in seen.elements:
            continue
        size = seen.elements[tensor] * problem.storage.held_bytes(tensor)
        if tensor in layouts:
            row = np.maximum(row_of(problem, seen, problem.storage.banked[tensor][0]), 1)
            size = size + seen.elements[tensor] // row * layouts[tensor].pad * problem.storage.held_bytes(tensor)
        first, last = loops.span(tensor, first, last) if loops.rounds else (first, last)
        if tensor in problem.group.formers:
            size = 2 * size
        more[first] = more[first] + size
        more[last + 1] = more[last + 1] - size
    total = most = more[0]
    for change in more[1:-1]:
        total = total + change
        most = np.maximum(most, total)
    return tasks, loops, seen, most


def pads_and_swizzles(problem: TilingProblem, sizes: Mapping[str, Ints], steps: Steps) -> dict[str, tuple[int, int]]:
    """Tensor whose rows are laid out in a core's level -> elements behind a row, bytes of a panel, for one tile."""
    if not problem.storage.banked:
        return {}
    seen = task_needs(problem, sizes, steps)[2]
    return {t: (int(np.max(of.pad)), int(np.max(of.swizzle))) for t, of in row_layouts(problem, seen).items()}


def pipelined_bytes(problem: TilingProblem, loops: ReduceLoops, seen: TileFootprints) -> dict[str, Ints]:
    """Operands that a reduce loop loads anew in every round -> bytes of one more copy: from the lowest level, as they
    are, in whole words."""
    found: dict[str, Ints] = {}
    for tensor in problem.group.operands if problem.target.asynchronous and loops.rounds else ():
        words = problem.storage.bytes_of(tensor) >= WORD or tensor not in problem.ragged
        if (
            tensor in problem.storage.held
            and tensor in seen.elements
            and words
            and tensor not in problem.storage.converted
        ):
            size = seen.elements[tensor] * problem.storage.held_bytes(tensor)
            found[tensor] = np.where(loops.times(tensor) > 1, size, 0)
    return found


def pipelined(problem: TilingProblem, sizes: Mapping[str, Ints], steps: Steps) -> tuple[str, ...]:
    """The operands whose copies the reduce loops of a tile may begin to load ahead."""
    _, loops, seen, _ = task_needs(problem, sizes, steps)
    return tuple(tensor for tensor, size in pipelined_bytes(problem, loops, seen).items() if np.any(size > 0))


def loaded_bytes(problem: TilingProblem, seen: TileFootprints, loops: ReduceLoops) -> dict[str, Floats]:
    """Bytes of every operand that a task loads."""
    filled = not problem.target.is_cached
    size = {t: seen.elements[t] * problem.storage.bytes_of(t) for t in problem.group.operands if t in seen.elements}
    return {t: n * loops.times(t) * seen.share(t, filled=filled) for t, n in size.items()}


def requested_bytes(problem: TilingProblem, seen: TileFootprints, loops: ReduceLoops) -> dict[str, Floats]:
    """Bytes of every operand that a task loads, in whole transactions where programs copy."""
    return {t: n * rounded_bytes(problem, seen, t) for t, n in loaded_bytes(problem, seen, loops).items()}


def rounded_bytes(problem: TilingProblem, seen: TileFootprints, tensor: str) -> Floats | float:
    """Bytes in whole transactions over bytes, of a tensor whose windows are copied (W22).

    A window moves run by run. A run that transactions do not divide begins anywhere that its length allows. Constants
    are laid out for their tiles, and hardware that fetches lines is charged for them where they come from
    (`drawn_bytes`).
    """
    target = problem.target
    if target.is_cached or tensor in problem.group.constants or tensor not in seen.windows:
        return 1.0
    run = seen.run(tensor, problem.group.graph.tensors[tensor].shape, problem.numbers) * problem.storage.bytes_of(
        tensor
    )
    return np.asarray(1 + (target.transaction - np.gcd(run, target.transaction)) / run, np.float64)


def read_in_place(problem: TilingProblem, seen: TileFootprints) -> dict[str, NDArray[np.bool_]]:
    """Whether thin halos are read in place: where their readers take whole rows, so that guards hold or fail for a row
    at a time (measured: 56 us against 79 for a depthwise convolution; cut rows 113)."""
    found: dict[str, NDArray[np.bool_]] = {}
    exprs = {node.name: node.expr for node in problem.group.nodes}
    for tensor, readers in problem.storage.thin.items():
        whole: NDArray[np.bool_] = np.asarray(True)
        for name in readers:
            expr = exprs[name]
            rows = [i for i in expr.spatial if i in ranging(expr)][1:]
            for iterator in rows if name in seen.boxes else ():
                lo, hi = seen.boxes[name][iterator]
                whole = whole & np.asarray(hi - lo == extent_of(expr.domain[iterator], problem.numbers))
        found[tensor] = whole
    return found


def direct(problem: TilingProblem, sizes: Mapping[str, Ints], steps: Steps) -> frozenset[str]:
    """Operands with a halo that one tile reads in place."""
    if not problem.storage.thin:
        return frozenset()
    seen = tile_footprints(
        problem.group.nodes, sizes, problem.group.spread(steps), problem.group.shapes, problem.numbers
    )
    return frozenset(tensor for tensor, whole in read_in_place(problem, seen).items() if bool(np.all(whole)))
