"""`oro+`: the curve over ragged tilings, which the paper leaves out, with exact counts of what the last tiles move.

Tiles that need not divide their extents move up to 1.5 times less at capacities between two perfect tilings.
"""

from __future__ import annotations

from math import isqrt

from tilec.bounds.curve import Curve
from tilec.bounds.einsum import Einsum
from tilec.bounds.search import Candidates, count_mappings, pareto

MAPSPACE = (
    "one buffer, the smallest tile for every number of tiles, all loop orders, bounding boxes, every operand kept,"
    " loops in one direction, no recomputation"
)


def tile_sizes(extent: int) -> list[int]:
    """The smallest tile for every number of tiles, rising: ceil(extent / n) for n = 1, 2, ..."""
    root = isqrt(extent)
    return sorted({-(-extent // n) for n in range(1, root + 1)} | set(range(1, -(-extent // (root + 1)) + 1)))


def oro_plus(einsum: Einsum) -> Curve:
    """The least traffic over all tilings, perfect or ragged, loop orders and buffer capacities.

    Never above `oro`, whose tilings are among them.  Not a lower bound: uneven retention and snake order can move
    less.  Raises UnsupportedError where the counts leave 64 bits.
    """
    candidates = {dim: tile_sizes(extent) for dim, extent in einsum.extents.items()}
    mappings = count_mappings([len(sizes) for sizes in candidates.values()])
    return Curve(MAPSPACE, mappings, pareto(einsum, _undominated(einsum, candidates), ragged=True))


def _undominated(einsum: Einsum, candidates: Candidates) -> list[Candidates]:
    """Products of tiles that hold every tiling on the front.

    An iterator without halo in any operand moves the same whatever the tile of the innermost loop, or less with
    smaller ones: the operands that it moves are swept once, the others stay.  So the innermost loop has tiles of 1.
    An iterator of every operand (batch) brings no reuse at all: its loop is outermost with tiles of 1.
    """
    free = [dim for dim in einsum.dims if _without_halo(einsum, dim)]
    batch = {dim for dim in free if all(dim in operand.dims for operand in einsum.operands)}
    base = {dim: [1] if dim in batch else sizes for dim, sizes in candidates.items()}
    loops = [dim for dim in einsum.dims if dim not in batch]
    if not loops or not set(loops) <= set(free):
        return [base]
    whole: Candidates = {dim: sizes if dim in batch else sizes[-1:] for dim, sizes in base.items()}
    return [whole, *({**base, dim: [1]} for dim in loops)]


def _without_halo(einsum: Einsum, dim: str) -> bool:
    """Whether tiles of `dim` never overlap: it stands alone in one index of every operand that it moves."""
    ranks = [[rank for rank in operand.ranks if any(d == dim for d, _ in rank)] for operand in einsum.operands]
    return all(len(own) <= 1 and all(len(rank) == 1 for rank in own) for own in ranks)
