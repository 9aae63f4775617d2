"""Pareto front of a mapspace: all tilings of a product of candidate tiles, each under its best loop order."""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial, prod

import numpy as np

from tilec.bounds.einsum.blocks import Candidates, Search
from tilec.bounds.einsum.curve import Point
from tilec.bounds.einsum.einsum import Einsum, Operand
from tilec.bounds.einsum.loop_orders import Mode, Orders, modes
from tilec.bounds.einsum.loops import Ints, Space
from tilec.bounds.einsum.mapping import Mapping
from tilec.bounds.einsum.operand_traffic import total
from tilec.errors import UnsupportedError

_HEAP = 31 << 20
"""Bytes of the largest array whose release raises glibc's threshold for returning memory (mallopt(3), dynamic
thresholds)."""


def count_mappings(choices: Sequence[int]) -> int:
    """Number of mappings with the given numbers of tiles per iterator; orders of loops of one trip count once."""
    by_loops = [1]
    for number in choices:
        grown = [*by_loops, 0]
        for loops, ways in enumerate(by_loops):
            grown[loops + 1] += ways * (number - 1)
        by_loops = grown
    return sum(ways * factorial(loops) for loops, ways in enumerate(by_loops))


def pareto(einsum: Einsum, candidates: Candidates, space: Space, seed: Candidates | None = None) -> tuple[Point, ...]:
    """The Pareto-optimal points over the product of candidate tiles.

    `seed` are tiles among the candidates, a small product to start from: the better its points, the more blocks are
    dropped. Raises UnsupportedError where the counts exceed 64 bits.
    """
    np.empty(_HEAP, np.uint8)  # else arrays are unmapped and mapped again, page by page: half of the time
    words = prod(einsum.extents.values())
    if words * 2 * sum(_reach(operand) * operand.bits for operand in einsum.operands) >= 2**62:
        raise UnsupportedError(f"{words} iterations are more than can be counted", einsum.text,
                               "Bound a smaller problem; traffic scales with the batch.")  # fmt: skip
    streaming = modes(einsum, space)
    search = Search(einsum, space, streaming)
    if seed is None or not candidates:
        search.try_product(candidates)
    else:
        search.try_product(seed)
        search.try_blocks(candidates)
    return _points(einsum, search.best, streaming, space)


def _reach(operand: Operand) -> int:
    """Upper limit of the ratio of a box's elements to the iterations of its tile: every index has a stride and a
    halo."""
    return prod(1 + sum(abs(c) for _, c in rank) for rank in operand.ranks if rank)


def _points(einsum: Einsum, rows: Ints, modes: Sequence[Mode], space: Space) -> tuple[Point, ...]:
    """The rows of `Search.best` as points, each under its best loop order."""
    dims = einsum.dims
    extents = np.array(list(einsum.extents.values()))[:, None]
    points: list[Point] = []
    for index, mode in enumerate(modes):
        of_mode = rows[:, rows[2] == index]
        sizes, count = of_mode[3:], of_mode.shape[1]
        orders = Orders(einsum, dict(zip(dims, sizes, strict=True)), space)
        best = orders.best_orders(mode, count)
        words = {order: np.broadcast_to(total(orders.moved(order, mode)), count).tolist() for order in set(best)}
        streamed, sliding = (einsum.labels[mode.operand], mode.sliding) if mode else (None, None)
        columns = (*(-(-of_mode[:2] // 8)).tolist(), sizes.T.tolist(), (-(-extents // sizes)).T.tolist(), best)
        for i, (needed, traffic, tiles, trips, order) in enumerate(zip(*columns, strict=True)):
            mapping = Mapping(
                dict(zip(dims, tiles, strict=True)),
                dict(zip(dims, trips, strict=True)),
                order,
                streamed,
                sliding,
                space.snake,
            )
            points.append(Point(needed, words[order][i], traffic, mapping))
    return tuple(sorted(points, key=lambda point: (point.buffer_bytes, -point.traffic_bytes)))
