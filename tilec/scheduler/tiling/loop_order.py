"""Orders of the loops over tiles: what stays in place while inner loops run is large but fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tilec.ir.expr import Access, accesses, operands, variables
from tilec.ir.plan import Sizes
from tilec.scheduler.tiling.tile_footprints import tile_footprints
from tilec.scheduler.tiling.tiling_problem import TilingProblem


def task_order(problem: TilingProblem, sizes: Sizes) -> tuple[str, ...]:
    """Tile loops at a core's level, outermost first: the loop that leaves most bytes in place runs innermost."""
    whole = {i: sizes.get(i, problem.extent(i)) for i in problem.group.final.spatial}
    return kept_order(problem, sizes, whole, 1 << 62, problem.target.line)


def kept_order(
    problem: TilingProblem, loops: Mapping[str, int], sizes: Mapping[str, int], capacity: int, line: int = 0
) -> tuple[str, ...]:
    """Loops of the final node sorted so that what stays in place while the inner ones run is large but fits.

    What hardware fetches, in lines of `line` bytes, comes with the first pass over it.  So an operand counts as often
    as a task passes over it: the more passes, the sooner the first one waits (of two operands of 192 KiB one was read
    once and one four times a task; with the first streaming twelve products took 64 ms, with the second 77).  Where a
    loop goes on in the same rows, the line at the end of each stays; constants are packed and have no rows.
    """
    nodes = problem.group.nodes
    arrays = {i: np.asarray(n, np.int64) for i, n in sizes.items()}
    seen = tile_footprints(nodes, arrays, {}, problem.group.shapes, problem.numbers)
    base = seen.elements
    made = {node.name for node in nodes}
    in_rows = seen.windows.keys() - problem.group.constants

    def kept(iterator: str) -> int:
        shared = problem.group.rows.shared.get(iterator, {})
        total = 0
        for node in nodes:
            name = shared.get(node.name, iterator)
            for tensor in operands(node.expr):
                reads = [a for a in accesses(node.expr) if a.tensor == tensor]
                if tensor in made or tensor not in base:
                    continue
                if not any(_moves(a, name) for a in reads):
                    size = int(base[tensor]) * problem.storage.bytes_of(tensor)
                    passes = _passes(problem, node.name, reads, sizes) if line else 1
                    total += size * passes if size <= capacity else 0
                elif line and tensor in in_rows and all(_goes_on(a, name) for a in reads):
                    run = seen.run(tensor, problem.group.graph.tensors[tensor].shape, problem.numbers)
                    total += line * int(base[tensor]) // int(run)
        return total

    return tuple(sorted(loops, key=lambda i: (kept(i), problem.group.final.spatial.index(i))))


def _passes(problem: TilingProblem, node: str, reads: Sequence[Access], sizes: Mapping[str, int]) -> int:
    """How often the register tiles of a task read what a node reads."""
    part = problem.group.made[node]
    last, tile = problem.group.parts[part][-1].name, problem.tiles[part].sizes
    shared = problem.group.rows.shared
    times = 1
    for iterator, size in sizes.items():
        names = shared.get(iterator, {})
        if not any(_moves(a, names.get(node, iterator)) for a in reads):
            times *= -(-size // (tile.get(names.get(last, iterator), size) or 1))
    return times


def _moves(access: Access, iterator: str) -> bool:
    return any(iterator in variables(i) for i in access.index)


def _goes_on(access: Access, iterator: str) -> bool:
    """Whether an iterator moves along rows alone."""
    *around, last = [iterator in variables(i) for i in access.index] or [False]
    return last and not any(around)
