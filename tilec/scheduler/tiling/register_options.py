"""The register tiles of a part that the search tries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod

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
    further: Sequence[Candidates] = (),
) -> tuple[RegisterTile, ...]:
    """The register tiles of a part that the search tries, the largest first.

    Where units of the highest level run side by side, smaller tiles may keep more of them busy. Weights that are packed
    in panels are so for all sizes: a tile is as wide along them as is good at the `further` ones, too.
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
        _of_shared_width(
            partial(register_tile, part, graph, constants, each, within=within, held=held), numbers, further
        )
        for each in targets
        for held in held_options(part, graph, constants, each)
    ]
    tiles += streamed_tiles(part, graph, constants, target, numbers)
    return tuple({(tuple(tile.sizes.items()), tile.held, tile.unit, tile.streamed): tile for tile in tiles}.values())


def _of_shared_width(
    tile_at: Callable[..., RegisterTile], numbers: Candidates, further: Sequence[Candidates]
) -> RegisterTile:
    """The tile at some sizes, as wide along panels as is best for these and the further ones together: each counts by
    how many times the cycles of its own best tile it takes."""
    own = tile_at(numbers)
    if not own.panelled or not further:
        return own
    best = [own, *(tile_at(each) for each in further)]
    widths = dict.fromkeys(each.sizes[each.along] for each in best if each.panelled and each.along == own.along)
    if len(widths) == 1:
        return own
    made = {
        width: [tile_at(each, decided={own.vector.iterator: width}) for each in (numbers, *further)] for width in widths
    }

    def lost(width: int) -> float:
        return sum(_cycles(tile) / _cycles(least) for tile, least in zip(made[width], best, strict=True))

    return made[min(widths, key=lost)][0]


def _cycles(tile: RegisterTile) -> float:
    """Cycles of a point of a tile."""
    return tile.cycles / prod(tile.sizes.values())


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
