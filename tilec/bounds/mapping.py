"""One mapping of an Einsum onto a buffer, and the closed form of its footprint and its accesses (O04).

A mapping cuts every iterator into `trips` tiles of `tiles` iterations; the loops over tiles run in `order`.
A tile of a tensor is the bounding box of what its iterations touch.  Going from one tile to the next moves only
what the new box has and the old one had not, so a fetch of a tensor costs

    vol + sum over loops j of  (trips_j - 1) * prod(trips of the loops outside j) * (vol - overlap_j)

where overlap_j is the intersection of two boxes that lie delta apart: the step of loop j minus the way that the
loops inside j go back.
"""

from __future__ import annotations

from collections.abc import Mapping as Map
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tilec.bounds.einsum import Einsum, Operand


@dataclass(frozen=True)
class Mapping:
    """`tiles` and `trips` of every iterator (tile * trips = extent); `order` of the loops over tiles, outermost first.

    Loops of one trip are left out of `order`.
    """

    tiles: Map[str, int]
    trips: Map[str, int]
    order: tuple[str, ...]

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


def fetched(operand: Operand, mapping: Mapping) -> int:
    """Words that enter the buffer for `operand` while the loops run once."""
    extents = box(operand, mapping.tiles)
    volume = total = prod(extents)
    outer = 1
    for position, dim in enumerate(mapping.order):
        overlap = prod(
            max(0, extent - abs(_delta(rank, dim, mapping.order[position + 1 :], mapping)))
            for rank, extent in zip(operand.ranks, extents, strict=True)
        )
        total += (mapping.trips[dim] - 1) * outer * (volume - overlap)
        outer *= mapping.trips[dim]
    return total


def _delta(rank: Sequence[tuple[str, int]], dim: str, inside: Sequence[str], mapping: Mapping) -> int:
    """How far the box moves along one index when loop `dim` advances and the loops inside it start again."""
    ahead = sum(c * mapping.tiles[d] for d, c in rank if d == dim)
    back = sum(c * mapping.tiles[d] * (mapping.trips[d] - 1) for d, c in rank if d in inside)
    return ahead - back


def accesses(einsum: Einsum, mapping: Mapping) -> dict[str, int]:
    """Words between buffer and backing store per operand (`tensor`, or `tensor#2` for its second access).

    A partial sum that leaves is written and read again; the first read is left out: 2 * evicted - |output|.
    """
    words: dict[str, int] = {}
    for operand in einsum.inputs:
        seen = sum(name.partition("#")[0] == operand.tensor for name in words)
        words[f"{operand.tensor}#{seen + 1}" if seen else operand.tensor] = fetched(operand, mapping)
    words[einsum.output.tensor] = 2 * fetched(einsum.output, mapping) - prod(box(einsum.output, einsum.extents))
    return words
