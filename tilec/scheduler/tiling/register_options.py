"""The register tiles of a part that the search tries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tilec.ir.expr import accesses, operands
from tilec.ir.graph import Graph, Node
from tilec.ir.intervals import Candidates
from tilec.scheduler.analysis.access import is_data_dependent
from tilec.scheduler.analysis.contraction import is_contraction, operands_of
from tilec.scheduler.analysis.vector_iterator import is_panelled, vector_of
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.tiling.product_chains import chained_tiles, product_chain
from tilec.scheduler.tiling.register_tiles import RegisterTile, halves, matrix_choices, register_tile
from tilec.scheduler.tiling.streamed_tiles import streamed_tiles

SUMS = (128, 96, 64, 32, 16)
"""Sums of a lane that are tried for units that read operands in memory: these take no registers."""

SMALLER_REGISTER_COUNTS = (40, 20, 12, 8, 5)
"""Registers that are tried instead of all of them."""


def register_options(
    part: Sequence[Node],
    graph: Graph,
    constants: frozenset[str],
    target: TargetModel,
    numbers: Candidates,
    within: Mapping[str, int] | None = None,
) -> tuple[RegisterTile, ...]:
    """The register tiles of a part that the search tries, the largest first.

    Where units of the highest level run side by side, smaller tiles may keep more of them busy.
    """
    chain = product_chain(part, graph, target)
    if chain is not None:
        return chained_tiles(part, chain, graph, constants, target, numbers)
    targets = [target]
    if target.hides_latency_by_threads and part[0].expr.reduce:
        targets += [replace(target, registers=n) for n in SMALLER_REGISTER_COUNTS if n < target.registers]
    choices = matrix_choices(part[0].expr, graph, target)
    in_memory = [matrix for matrix in choices if matrix.unit.reads_memory][:1]
    tiles = [
        register_tile(part, graph, constants, replace(target, registers=n), numbers, within, matrix=matrix)
        for n in SUMS
        for matrix in in_memory
        if n <= target.registers
    ]
    tiles += [
        register_tile(part, graph, constants, each, numbers, within, matrix=matrix)
        for each in targets
        for matrix in [matrix for matrix in choices if not matrix.unit.reads_memory][:1]
    ]
    tiles += [
        register_tile(part, graph, constants, each, numbers, within, held=held)
        for each in targets
        for held in held_options(part, graph, constants, each)
    ]
    tiles += streamed_tiles(part, graph, constants, target, numbers)
    return tuple({(tuple(tile.sizes.items()), tile.held, tile.unit, tile.streamed): tile for tile in tiles}.values())


def held_options(
    part: Sequence[Node], graph: Graph, constants: frozenset[str], target: TargetModel
) -> tuple[tuple[int, ...], ...]:
    """Sets of half precision operands of a product that a core's level may hold in the type that is computed in: none,
    one, or all of them.  Weights in panels stay as they are stored."""
    expr = part[0].expr
    if not target.costs.conversion or not target.is_cached or not is_contraction(expr):
        return ((),)
    vector = vector_of(expr, graph, constants, target.costs)
    stay = {access.tensor for access in vector.packed}
    stay |= {o.access.tensor for o in operands_of(expr) if is_panelled(o, expr, vector, constants)}
    stay |= {access.tensor for access in accesses(expr) if is_data_dependent(access)}
    some = tuple(n for n in halves(expr, graph, target) if operands(expr)[n] not in stay)
    return tuple(dict.fromkeys(((), *((n,) for n in some), some)))
