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
from tilec.bounds.einsum.mapping import Mapping, Tasks
from tilec.bounds.einsum.operand_traffic import total
from tilec.bounds.einsum.task_grids import TaskOrders
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


def pareto(
    einsum: Einsum,
    candidates: Candidates,
    space: Space,
    seed: Candidates | None = None,
    capacity: int | None = None,
) -> tuple[Point, ...]:
    """The Pareto-optimal points over the product of candidate tiles.

    `seed` are tiles among the candidates, a small product to start from: the better its points, the more blocks are
    dropped. With a `capacity` in bytes only the best point within it. Raises UnsupportedError where the counts exceed
    64 bits.
    """
    np.empty(_HEAP, np.uint8)  # else arrays are unmapped and mapped again, page by page: half of the time
    words = prod(einsum.extents.values())
    if words * 2 * sum(_reach(operand) * operand.bits for operand in einsum.operands) >= 2**62:
        raise UnsupportedError(f"{words} iterations are more than can be counted", einsum.text,
                               "Bound a smaller problem; traffic scales with the batch.")  # fmt: skip
    streaming = modes(einsum, space)
    search = Search(einsum, space, streaming, capacity)
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
        words, orders, tasks = _best_orders(einsum, dict(zip(dims, sizes, strict=True)), space, mode, count)
        streamed, sliding = (einsum.labels[mode.operand], mode.sliding) if mode else (None, None)
        columns = (*(-(-of_mode[:2] // 8)).tolist(), sizes.T.tolist(), (-(-extents // sizes)).T.tolist())
        for needed, traffic, tiles, trips, accesses, order, grid in zip(*columns, words, orders, tasks, strict=True):
            mapping = Mapping(
                dict(zip(dims, tiles, strict=True)),
                dict(zip(dims, trips, strict=True)),
                order,
                streamed,
                sliding,
                space.snake,
                grid,
            )
            points.append(Point(needed, accesses, traffic, mapping))
    return tuple(sorted(points, key=lambda point: (point.buffer_bytes, -point.traffic_bytes)))


def _best_orders(
    einsum: Einsum, tiles: dict[str, Ints], space: Space, mode: Mode, count: int
) -> tuple[list[int], list[tuple[str, ...]], list[Tasks]]:
    """Words, loop order and tasks of each of `count` tilings."""
    if space.units == 1:
        orders = Orders(einsum, tiles, space)
        best = orders.best_orders(mode, count)
        words = {order: np.broadcast_to(total(orders.moved(order, mode)), count).tolist() for order in set(best)}
        return [words[order][i] for i, order in enumerate(best)], best, [() for _ in best]
    grids = TaskOrders(einsum, tiles, space)
    chosen = grids.best_grids(mode, count)
    kinds = {(each.grid, each.order) for each in chosen}
    moved = {kind: np.broadcast_to(total(grids.moved_in(*kind, mode)), count).tolist() for kind in kinds}
    in_tasks = [moved[each.grid, each.order][i] for i, each in enumerate(chosen)]
    return in_tasks, [each.order for each in chosen], [each.tasks for each in chosen]
