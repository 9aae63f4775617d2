"""`oro+`: the curve over mappings that the paper leaves out: ragged tiles, uneven retention, snake order.

Tiles that need not divide their extents move up to 1.5 times less at capacities between two perfect tilings, and an
operand in slices up to 1.3 times less where the buffer has only a few words.
"""

from __future__ import annotations

from math import isqrt

from tilec.bounds.einsum.blocks import Candidates
from tilec.bounds.einsum.curve import Curve
from tilec.bounds.einsum.einsum import Einsum
from tilec.bounds.einsum.loop_orders import modes
from tilec.bounds.einsum.loops import Space, without_halo
from tilec.bounds.einsum.mapspaces import MAPSPACES
from tilec.bounds.einsum.oro import divisors
from tilec.bounds.einsum.search import count_mappings, pareto

SPACE = Space(ragged=True, snake=True, streams=True)


def tile_sizes(extent: int) -> list[int]:
    """The smallest tile for every number of tiles, rising: ceil(extent / n) for n = 1, 2, ..."""
    root = isqrt(extent)
    return sorted({-(-extent // n) for n in range(1, root + 1)} | set(range(1, -(-extent // (root + 1)) + 1)))


def oro_plus(einsum: Einsum) -> Curve:
    """The least traffic over all tilings, perfect or ragged, loop orders and streamed operands, for every capacity.

    `mapping` describes streaming. Loops turn wherever they can (`loops`), which never costs anything. Never above
    `oro`, whose mappings are among these or worse. Not a lower bound: several levels of tiles, recomputation, relayed
    partial sums, and sets of elements that are no boxes can move less. Raises UnsupportedError where the counts exceed
    64 bits.
    """
    sizes = {dim: tile_sizes(extent) for dim, extent in einsum.extents.items()}
    mappings = count_mappings([len(tiles) for tiles in sizes.values()]) * len(modes(einsum, SPACE))
    seed = {dim: divisors(extent) for dim, extent in einsum.extents.items()}
    points = pareto(einsum, _undominated(einsum, sizes), SPACE, _undominated(einsum, seed))
    return Curve(MAPSPACES["oro+"], mappings, points)


def _undominated(einsum: Einsum, candidates: Candidates) -> Candidates:
    """The candidates without tiles of iterators that occur in every operand (batch), which bring no reuse.

    Where tiles of such an iterator do not overlap, tiles of 1 under an outermost loop process one batch after another.
    """
    batch = {
        dim
        for dim in einsum.dims
        if without_halo(einsum, dim) and all(dim in operand.dims for operand in einsum.operands)
    }
    return {dim: [1] if dim in batch else tiles for dim, tiles in candidates.items()}
