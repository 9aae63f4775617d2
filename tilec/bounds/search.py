"""The Pareto front of a mapspace: all tilings of a product of candidate tiles, each under its best loop order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import factorial, prod

import numpy as np

from tilec.bounds import mapping as maps
from tilec.bounds.curve import Point, front
from tilec.bounds.einsum import Einsum, Operand
from tilec.bounds.orders import Orders
from tilec.bounds.steps import Ints
from tilec.errors import UnsupportedError

Candidates = Mapping[str, Sequence[int]]
"""Tile sizes to try per iterator, in the Einsum's order."""

_CHUNK = 1 << 15
"""Tilings evaluated at once: their arrays stay in cache."""


def count_mappings(choices: Sequence[int]) -> int:
    """Mappings with the given number of tiles per iterator; orders of loops that run once count once."""
    by_loops = [1]
    for number in choices:
        grown = [*by_loops, 0]
        for loops, ways in enumerate(by_loops):
            grown[loops + 1] += ways * (number - 1)
        by_loops = grown
    return sum(ways * factorial(loops) for loops, ways in enumerate(by_loops))


def pareto(einsum: Einsum, products: Sequence[Candidates], ragged: bool) -> tuple[Point, ...]:
    """The best points over the union of products of candidate tiles.

    Raises UnsupportedError where the counts leave 64 bits.
    """
    words = prod(einsum.extents.values())
    if words * 2 * sum(_reach(operand) * operand.bits for operand in einsum.operands) >= 2**62:
        raise UnsupportedError(f"{words} iterations are more than can be counted", einsum.text,
                               "Bound a smaller problem; traffic scales with the batch.")  # fmt: skip
    chunks = (chunk for candidates in products for chunk in _chunks(_arrays(candidates)))
    rows = np.concatenate([_chunk_front(einsum, chunk, ragged) for chunk in chunks], axis=1)
    return _points(einsum, rows[:, front(rows[0], rows[1])], ragged)


def _reach(operand: Operand) -> int:
    """No box is larger than this times the iterations of its tile: every index has a stride and a halo."""
    return prod(1 + sum(abs(c) for _, c in rank) for rank in operand.ranks if rank)


def _arrays(candidates: Candidates) -> list[Ints]:
    return [np.array(sizes, np.int64) for sizes in candidates.values()]


def _chunks(candidates: list[Ints]) -> Iterator[list[Ints]]:
    """Products of candidate tiles of at most `_CHUNK` tilings that together make the whole product."""
    if prod(len(c) for c in candidates) <= _CHUNK:
        yield candidates
        return
    longest = max(range(len(candidates)), key=lambda i: len(candidates[i]))
    half = len(candidates[longest]) // 2
    for part in (candidates[longest][:half], candidates[longest][half:]):
        yield from _chunks([*candidates[:longest], part, *candidates[longest + 1 :]])


def _chunk_front(einsum: Einsum, candidates: list[Ints], ragged: bool) -> Ints:
    """Rows of (buffer bits, traffic bits, tile of every iterator) that are Pareto-optimal among the candidates."""
    shape = tuple(len(c) for c in candidates)
    tiles = [c.reshape([-1 if i == axis else 1 for i in range(len(shape))]) for axis, c in enumerate(candidates)]
    orders = Orders(einsum, dict(zip(einsum.dims, tiles, strict=True)), ragged)
    buffer = np.broadcast_to(orders.buffer(), shape).ravel()
    traffic = np.broadcast_to(orders.traffic(), shape).ravel()
    best = front(buffer, traffic)
    chosen = [c[i] for c, i in zip(candidates, np.unravel_index(best, shape), strict=True)]
    return np.stack([buffer[best], traffic[best], *chosen])


def _points(einsum: Einsum, rows: Ints, ragged: bool) -> tuple[Point, ...]:
    orders = Orders(einsum, dict(zip(einsum.dims, rows[2:], strict=True)), ragged)
    count = rows.shape[1]
    best = orders.best_orders(count)
    words: dict[tuple[str, ...], list[int]] = {}
    for order in set(best):
        *inputs, evicted = orders.fetched(order)
        words[order] = np.broadcast_to(sum(inputs) + 2 * evicted - maps.results(einsum), count).tolist()
    points = []
    for i, ((buffer, traffic, *sizes), order) in enumerate(zip(rows.T.tolist(), best, strict=True)):
        mapping = maps.Mapping.of(einsum, dict(zip(einsum.dims, sizes, strict=True)), order)
        points.append(Point(-(-buffer // 8), words[order][i], -(-traffic // 8), mapping))
    return tuple(points)
