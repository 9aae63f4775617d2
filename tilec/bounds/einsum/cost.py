"""Footprint and accesses of one mapping (Orojenesis, figure 6)."""

from __future__ import annotations

from collections.abc import Mapping as Map
from math import prod

import numpy as np

from tilec.bounds.einsum.einsum import Einsum
from tilec.bounds.einsum.loop_orders import Mode, Orders, Stream, buffers
from tilec.bounds.einsum.loops import Ints, Space
from tilec.bounds.einsum.mapping import Mapping
from tilec.bounds.einsum.task_grids import Grid, TaskOrders


def footprint(einsum: Einsum, tiles: Map[str, int], streamed: str | None = None, sliding: str | None = None) -> int:
    """Bytes of buffer for one tile of every operand, one slice of the streamed one, without double buffering."""
    (bits,) = buffers(einsum, _arrays(tiles), [_mode(einsum, streamed, sliding)])
    return -(-int(bits) // 8)


def accesses(einsum: Einsum, mapping: Mapping) -> dict[str, int]:
    """Words between buffer and backing store per operand (`tensor`, or `tensor#2` for its second access).

    A partial sum that is evicted is written and read again; the first read is left out: 2 * evicted - |output|.
    """
    mode, tasks = _mode(einsum, mapping.streamed, mapping.sliding), dict(mapping.tasks)
    space = Space(ragged=True, snake=mapping.snake, units=prod(tasks.values()))
    if tasks:
        cut = [dim for dim, count in mapping.tasks if count < mapping.trips[dim]]
        grid = Grid(frozenset(tasks) - frozenset(cut), *cut)
        words = TaskOrders(einsum, _arrays(mapping.tiles), space).moved_in(grid, mapping.order, mode)
    else:
        words = Orders(einsum, _arrays(mapping.tiles), space).moved(mapping.order, mode)
    return {label: int(moved) for label, moved in zip(einsum.labels, words, strict=True)}


def _arrays(tiles: Map[str, int]) -> dict[str, Ints]:
    return {dim: np.array(tile, np.int64) for dim, tile in tiles.items()}


def _mode(einsum: Einsum, streamed: str | None, sliding: str | None) -> Mode:
    return None if streamed is None else Stream(einsum.labels.index(streamed), sliding)
