"""Register tiles of reductions that stream an operand: units load it into registers, past a core's level (W24, W36).

Of an operand that has all spatial iterators of a sum every element is read for one result, so that a copy in the core's
level only costs a round through it. Lanes load 16 bytes at once along the last spatial iterator, several steps of the
reduction ahead; where a few lanes have all of a row of the tile, the others take rows along the iterator before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from tilec.ir.expr import Access, TensorExpr, Var, accesses, constant_value, operands, variables
from tilec.ir.graph import Graph, Node
from tilec.ir.intervals import Candidates
from tilec.ir.types import element_bytes
from tilec.scheduler.analysis.access import is_data_dependent, runs_along
from tilec.scheduler.analysis.contraction import operands_of
from tilec.scheduler.analysis.vector_iterator import Vector, is_panelled, vector_of
from tilec.scheduler.analysis.window_propagation import extent_of
from tilec.scheduler.graph_passes.rematerialize import operations
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.tiling.common_iterators import common_iterators
from tilec.scheduler.tiling.register_tiles import RegisterTile

WIDEST = 16
"""Bytes that a lane loads at once."""

AHEAD = 8
"""Loads of a lane that are on the way together."""

LANES = (2, 4, 8, 32)
"""Lanes along a row of a tile that are tried: rows of 32 bytes and more are whole sectors."""


def streamed_tiles(
    part: Sequence[Node], graph: Graph, constants: frozenset[str], target: TargetModel, numbers: Candidates
) -> Iterator[RegisterTile]:
    """The register tiles of a part that begins with a sum and streams an operand, if it does."""
    anchor = part[0].expr
    vector = vector_of(anchor, graph, constants, target.costs)
    streamed = _streamed(anchor, graph, vector)
    if streamed is None or target.is_cached or not target.hides_latency_by_threads or vector.kind != "spatial":
        return
    moving = [i for i, e in zip(anchor.spatial, anchor.shape, strict=True) if constant_value(e) != 1]
    names = {shared[anchor.tensor]: i for i, shared in common_iterators(part).shared.items()}
    if moving[-1:] != [vector.iterator] or not set(moving) <= names.keys():
        return
    extents = {i: extent_of(anchor.domain[i], numbers) for i in anchor.iterators}
    *before, last = moving
    panelled = any(o.access == streamed and is_panelled(o, anchor, vector, constants) for o in operands_of(anchor))
    laid_out = panelled or streamed in vector.packed
    depth = next(i for i in reversed(anchor.reduce) if any(i in variables(index) for index in streamed.index))
    step = max(n for n in range(1, AHEAD + 1) if extents[depth] % n == 0)
    for along in (count for count in LANES if count <= target.lanes(4)):
        rows, width = target.lanes(4) // along, along * WIDEST // element_bytes(graph.tensors[streamed.tensor].ttype)
        apart = before and extents[before[-1]] % rows == 0 and (laid_out or Var(before[-1]) in streamed.index)
        if extents[last] % width or not (rows == 1 or apart):
            continue
        sizes = dict.fromkeys(moving, 1) | dict.fromkeys(before[-1:], rows) | {last: width}
        points = prod(sizes.values()) * prod(extents[i] for i in anchor.reduce) / target.lanes(4)
        cycles = points * max(2, 1 + operations(anchor)) / 2
        yield RegisterTile(
            {names[i]: n for i, n in sizes.items() if n < extents[i]},
            vector,
            names[last],
            cycles + target.costs.tile_overhead,
            panelled=panelled and width < extents[last],
            streamed=(operands(anchor).index(streamed.tensor),),
            steps={depth: step},
        )


def _streamed(expr: TensorExpr, graph: Graph, vector: Vector) -> Access | None:
    """The access of a sum that has all of its spatial iterators, a row of its elements beside one another or packed so,
    and one along which it sums up."""
    moving = {i for i, e in zip(expr.spatial, expr.shape, strict=True) if constant_value(e) != 1}
    if expr.reducer != "sum":
        return None
    for access in dict.fromkeys(accesses(expr)):
        used = frozenset().union(*(variables(index) for index in access.index))
        others = [a for a in accesses(expr) if a.tensor == access.tensor and a != access]
        shape, extent = graph.tensors[access.tensor].shape, expr.domain.get(vector.iterator)
        beside = extent is not None and runs_along(access, shape, vector.iterator, extent)
        if (
            moving <= used
            and used & set(expr.reduce)
            and not others
            and not is_data_dependent(access)
            and (beside or access in vector.packed)
        ):
            return access
    return None
