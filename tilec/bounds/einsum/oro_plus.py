"""`oro+`: the curve over mappings that the paper leaves out: ragged tiles, uneven retention, snake order.

Tiles that need not divide their extents move up to 1.5 times less at capacities between two perfect tilings, and an
operand in slices up to 1.3 times less where the buffer has only a few words.
"""

from __future__ import annotations

from dataclasses import replace
from math import isqrt

from tilec.bounds.einsum.blocks import Candidates
from tilec.bounds.einsum.curve import Curve
from tilec.bounds.einsum.einsum import Einsum
from tilec.bounds.einsum.loop_orders import modes
from tilec.bounds.einsum.loops import Space, without_halo
from tilec.bounds.einsum.mapspaces import MAPSPACES, PARALLEL_MEANING
from tilec.bounds.einsum.oro import divisors
from tilec.bounds.einsum.search import count_mappings, pareto
from tilec.bounds.einsum.task_limit import most_tasks

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
    return _curve(einsum, SPACE, MAPSPACES["oro+"])


def parallel(einsum: Einsum, units: int, capacity: int | None = None, whole: frozenset[str] = frozenset()) -> Curve:
    """The least traffic over the mappings of `oro_plus` in at least `units` tasks that run side by side (`task_grids`).

    The capacity is that of one unit, the traffic that of all. Never below `oro_plus`, and equal to it where its tasks
    share nothing. With a `capacity` in bytes only the best point within it. Iterators in `whole` are not cut. No points
    where there are fewer iterations than units, or none fits.
    """
    if units > most_tasks(einsum, whole):
        return Curve(PARALLEL_MEANING, 0, ())
    return _curve(einsum, replace(SPACE, units=units), PARALLEL_MEANING, capacity, whole)


def _curve(
    einsum: Einsum,
    space: Space,
    mapspace: str,
    capacity: int | None = None,
    whole: frozenset[str] = frozenset(),
) -> Curve:
    sizes, seed = (
        {dim: [extent] if dim in whole else find(extent) for dim, extent in einsum.extents.items()}
        for find in (tile_sizes, divisors)
    )
    mappings = count_mappings([len(tiles) for tiles in sizes.values()]) * len(modes(einsum, space))
    candidates, start = _undominated(einsum, sizes, whole), _undominated(einsum, seed, whole)
    return Curve(mapspace, mappings, pareto(einsum, candidates, space, start, capacity))


def _undominated(einsum: Einsum, candidates: Candidates, whole: frozenset[str]) -> Candidates:
    """The candidates without tiles of iterators that occur in every operand (batch), which bring no reuse.

    Where tiles of such an iterator do not overlap, tiles of 1 under an outermost loop process one batch after another.
    """
    batch = {
        dim
        for dim in einsum.dims
        if dim not in whole and without_halo(einsum, dim) and all(dim in operand.dims for operand in einsum.operands)
    }
    return {dim: [1] if dim in batch else tiles for dim, tiles in candidates.items()}
