"""One mapping of an Einsum onto a buffer: its footprint and its accesses (O04).

A mapping cuts every iterator into `trips` tiles of `tiles` iterations; the loops over tiles run in `order`.
A tile of a tensor is the bounding box of what its iterations touch.  Going from one tile to the next moves only
what the new box has and the old one had not.
"""

from __future__ import annotations

from collections.abc import Mapping as Map
from dataclasses import dataclass
from math import prod

import numpy as np

from tilec.bounds.einsum import Einsum, Operand
from tilec.bounds.orders import Orders


@dataclass(frozen=True)
class Mapping:
    """`tiles` and `trips` of every iterator; `order` of the loops over tiles, outermost first.

    The last tile of an iterator is smaller where tiles do not divide the extent.  Loops of one trip are left out of
    `order`.
    """

    tiles: Map[str, int]
    trips: Map[str, int]
    order: tuple[str, ...]

    @classmethod
    def of(cls, einsum: Einsum, tiles: Map[str, int], order: tuple[str, ...]) -> Mapping:
        """The mapping with the trips that `tiles` take."""
        return cls(tiles, {dim: -(-einsum.extents[dim] // tile) for dim, tile in tiles.items()}, order)

    def __str__(self) -> str:
        loops = " ".join(f"{dim}:{self.trips[dim]}" for dim in self.order)
        tile = " ".join(f"{dim}:{size}" for dim, size in self.tiles.items() if size > 1)
        return f"loops {loops or '-'}, tile {tile or '-'}"


def box(operand: Operand, tiles: Map[str, int]) -> tuple[int, ...]:
    """Extents of the bounding box that a tile of iterations touches: 1 + sum |c| * (tile - 1) per index."""
    return tuple(1 + sum(abs(c) * (tiles[dim] - 1) for dim, c in rank) for rank in operand.ranks)


def footprint(einsum: Einsum, tiles: Map[str, int]) -> int:
    """Bytes of buffer for one tile of every operand, without double buffering."""
    bits = sum(prod(box(operand, tiles)) * operand.bits for operand in einsum.operands)
    return -(-bits // 8)


def results(einsum: Einsum) -> int:
    """Elements of the output."""
    return prod(box(einsum.output, einsum.extents))


def accesses(einsum: Einsum, mapping: Mapping) -> dict[str, int]:
    """Words between buffer and backing store per operand (`tensor`, or `tensor#2` for its second access).

    A partial sum that leaves is written and read again; the first read is left out: 2 * evicted - |output|.
    """
    orders = Orders(einsum, {dim: np.array(tile, np.int64) for dim, tile in mapping.tiles.items()}, ragged=True)
    *inputs, evicted = (int(words) for words in orders.fetched(mapping.order))
    words: dict[str, int] = {}
    for operand, count in zip(einsum.inputs, inputs, strict=True):
        seen = sum(name.partition("#")[0] == operand.tensor for name in words)
        words[f"{operand.tensor}#{seen + 1}" if seen else operand.tensor] = count
    words[einsum.output.tensor] = 2 * evicted - results(einsum)
    return words
