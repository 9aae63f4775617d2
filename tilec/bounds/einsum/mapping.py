"""One mapping of an Einsum onto a buffer (Orojenesis, figure 6).

A mapping cuts every iterator into `trips` tiles of `tiles` iterations; the loops over tiles run in `order`. A tile of a
tensor is the bounding box of the elements that its iterations access. Going from one tile to the next moves only the
elements of the new box that are not in the old one.

Two freedoms lie beyond the paper's mapspace. In snake order loops turn at the ends of their passes (see `loops`). And
retention may be uneven: the iterations of a tile may run in slices along all iterators that one operand, the streamed
one, has to itself in an index, and along one iterator of those that share an index with others, so that windows slide.
The buffer then contains one slice of it beside the whole tiles of the others, which are kept across the loops over
slices. Every tile reads its slices anew, a sliding window only the elements that the one before it had not. Two by two
results of a product take 4 + 2 + 1 words, not 4 + 2 + 2.
"""

from __future__ import annotations

from collections.abc import Mapping as Map
from math import prod
from typing import NamedTuple

from tilec.bounds.einsum.einsum import Einsum

Tasks = tuple[tuple[str, int], ...]
"""Number of tasks along iterators; empty where one task does everything."""


class Mapping(NamedTuple):
    """`tiles` and `trips` of every iterator; `order` of the loops over tiles, outermost first, in one of the `tasks`.

    The last tile of an iterator is smaller where tiles do not divide the extent. Loops of one trip are left out of
    `order`. `streamed` is the label of the operand that passes in slices, `sliding` the iterator along which they are
    sliding windows. `snake`: loops turn.
    """

    tiles: Map[str, int]
    trips: Map[str, int]
    order: tuple[str, ...]
    streamed: str | None = None
    sliding: str | None = None
    snake: bool = False
    tasks: Tasks = ()

    @classmethod
    def of(
        cls,
        einsum: Einsum,
        tiles: Map[str, int],
        order: tuple[str, ...],
        streamed: str | None = None,
        sliding: str | None = None,
        *,
        snake: bool = False,
        tasks: Tasks = (),
    ) -> Mapping:
        """The mapping with the trips that `tiles` take."""
        trips = {dim: -(-einsum.extents[dim] // tile) for dim, tile in tiles.items()}
        return cls(tiles, trips, order, streamed, sliding, snake, tasks)

    def __str__(self) -> str:
        number = dict(self.tasks)
        loops = " ".join(f"{dim}:{-(-self.trips[dim] // number.get(dim, 1))}" for dim in self.order)
        tile = " ".join(f"{dim}:{size}" for dim, size in self.tiles.items() if size > 1)
        turns = " to and fro" if self.snake and len(self.order) > 1 else ""
        windows = f" that slide along {self.sliding}" if self.sliding else ""
        streamed = f", {self.streamed} in slices{windows}" if self.streamed else ""
        along = " ".join(f"{dim}:{count}" for dim, count in self.tasks)
        tasks = f"{prod(number.values())} tasks {along}, " if self.tasks else ""
        return f"{tasks}loops {loops or '-'}{turns}, tile {tile or '-'}{streamed}"
