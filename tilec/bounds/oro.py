"""`oro`: the curve of the Orojenesis paper, from all perfect tilings and all loop orders (O02, O03, O34)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import factorial, isqrt, prod

import numpy as np

from tilec.bounds.curve import Curve, Ints, Point, front
from tilec.bounds.einsum import Einsum
from tilec.bounds.mapping import Mapping, accesses, footprint
from tilec.bounds.orders import Orders
from tilec.errors import UnsupportedError

MAPSPACE = "one buffer, perfect factors, all loop orders, bounding boxes, no bypass, no recomputation"

_CHUNK = 1 << 15
"""Tilings evaluated at once: their arrays stay in cache."""


def divisors(extent: int) -> list[int]:
    """All divisors, rising."""
    low = [d for d in range(1, isqrt(extent) + 1) if extent % d == 0]
    return low + [extent // d for d in reversed(low) if d * d != extent]


def count_mappings(choices: Sequence[int]) -> int:
    """Mappings with the given number of tiles per iterator; orders of loops that run once count once."""
    by_loops = [1]
    for number in choices:
        grown = [*by_loops, 0]
        for loops, ways in enumerate(by_loops):
            grown[loops + 1] += ways * (number - 1)
        by_loops = grown
    return sum(ways * factorial(loops) for loops, ways in enumerate(by_loops))


def _chunks(candidates: list[Ints]) -> Iterator[list[Ints]]:
    """Products of candidate tiles of at most `_CHUNK` tilings that together make the whole product."""
    if prod(len(c) for c in candidates) <= _CHUNK:
        yield candidates
        return
    longest = max(range(len(candidates)), key=lambda i: len(candidates[i]))
    half = len(candidates[longest]) // 2
    for part in (candidates[longest][:half], candidates[longest][half:]):
        yield from _chunks([*candidates[:longest], part, *candidates[longest + 1 :]])


def _trips(einsum: Einsum, tiles: Sequence[Ints]) -> list[Ints]:
    return [extent // tile for extent, tile in zip(einsum.extents.values(), tiles, strict=True)]


def _chunk_front(einsum: Einsum, candidates: list[Ints]) -> Ints:
    """Rows of (buffer bits, traffic bits, tile of every iterator) that are Pareto-optimal among the candidates."""
    shape = tuple(len(c) for c in candidates)
    tiles = [c.reshape([-1 if i == axis else 1 for i in range(len(shape))]) for axis, c in enumerate(candidates)]
    orders = Orders(einsum, tiles, _trips(einsum, tiles))
    buffer = np.broadcast_to(orders.buffer(), shape).ravel()
    traffic = np.broadcast_to(orders.traffic(), shape).ravel()
    best = front(buffer, traffic)
    chosen = [c[i] for c, i in zip(candidates, np.unravel_index(best, shape), strict=True)]
    return np.stack([buffer[best], traffic[best], *chosen])


def oro(einsum: Einsum) -> Curve:
    """The least traffic over all perfect tilings, loop orders and buffer capacities.

    Not a lower bound: ragged tiles, uneven retention and snake order can move less.  Raises UnsupportedError where
    the counts leave 64 bits.
    """
    words = prod(einsum.extents.values())
    if words * 2 * sum(operand.bits for operand in einsum.operands) >= 2**62:
        raise UnsupportedError(f"{words} iterations are more than can be counted", einsum.text,
                               "Bound a smaller problem; traffic scales with the batch.")  # fmt: skip
    candidates = [np.array(divisors(extent), np.int64) for extent in einsum.extents.values()]
    rows = np.concatenate([_chunk_front(einsum, chunk) for chunk in _chunks(candidates)], axis=1)
    rows = rows[:, front(rows[0], rows[1])]
    tiles = list(rows[2:])
    orders = Orders(einsum, tiles, _trips(einsum, tiles))
    orders.traffic()
    points = tuple(_point(einsum, rows[:, i], orders.best(i)) for i in range(rows.shape[1]))
    return Curve(MAPSPACE, count_mappings([len(c) for c in candidates]), points)


def _point(einsum: Einsum, row: Ints, order: tuple[int, ...]) -> Point:
    tiles = dict(zip(einsum.dims, row[2:].tolist(), strict=True))
    trips = {dim: einsum.extents[dim] // tile for dim, tile in tiles.items()}
    mapping = Mapping(tiles, trips, tuple(einsum.dims[i] for i in order))
    return Point(footprint(einsum, tiles), sum(accesses(einsum, mapping).values()), -(-int(row[1]) // 8), mapping)
