"""Loops over tiles, for many tilings at once: tile sizes, trip counts, and the position at which a loop restarts.

Every pass of a loop takes full tiles first and the last tile, which may be ragged, at its end. A loop in one direction
then restarts at its beginning. A loop in snake order turns: the next pass begins where this one ended and runs in the
other direction, full tiles first, so that the contents of the last tile stay in the buffer (non-raster traversal,
future work in Orojenesis).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilec.bounds.einsum.einsum import Einsum

Ints = NDArray[np.int64]
ZERO = np.zeros((), np.int64)
ONE = np.ones((), np.int64)
NEVER = np.iinfo(np.int64).max
"""Traffic of what cannot be."""


@dataclass(frozen=True)
class Space:
    """Freedoms of mappings beyond perfect tiles, loops in one direction, and operands kept for a whole tile.

    `ragged` tiles need not divide their extent. `snake` lets loops turn. `streams` lets one operand pass through the
    buffer in slices while the others keep their tiles. At least `units` tasks share the work, each with a buffer of its
    own (`task_grids`); a single one otherwise.
    """

    ragged: bool = False
    snake: bool = False
    streams: bool = False
    units: int = 1


@dataclass(frozen=True)
class Dim:
    """One iterator of all tilings: its extent, sizes of full and last tiles, number of tiles.

    `back` is the distance by which the loop goes back when it restarts, `standing` and `advancing` the (tile size,
    count) over all positions and over all advances. `turns`: the iterator is plain and its loop turns.
    """

    extent: int
    tile: Ints
    last: Ints
    trips: Ints
    back: Ints
    standing: tuple[tuple[Ints, Ints], ...]
    advancing: tuple[tuple[Ints, Ints], ...]
    turns: bool


def without_halo(einsum: Einsum, dim: str) -> bool:
    """Whether tiles of `dim` never overlap: it stands alone in one index of every operand in which it occurs."""
    ranks = [[rank for rank in operand.ranks if any(d == dim for d, _ in rank)] for operand in einsum.operands]
    return all(len(moved) <= 1 and all(len(rank) == 1 for rank in moved) for moved in ranks)


def results(einsum: Einsum) -> int:
    """Number of elements of the output."""
    return prod(einsum.extents[dim] for dim in einsum.output.dims)


def cut(einsum: Einsum, tiles: Mapping[str, Ints], space: Space, *, relaxed: bool = False) -> dict[str, Dim]:
    """The loops over `tiles`, one array per iterator, all broadcastable to one shape.

    A loop turns, in `snake` order, where no other iterator of any index in which it occurs has more than one tile:
    windows that slide along two loops at once depend on the directions of both. `relaxed` overstates the part that
    plain iterators keep at a turn, a full tile where it is a ragged one: the traffic is then no higher and never rises
    as tiles of plain iterators grow.
    """
    plain = einsum.plain
    trips = {dim: -(-einsum.extents[dim] // tile) for dim, tile in tiles.items()}
    dims = {}
    for dim, tile in tiles.items():
        extent, number = einsum.extents[dim], trips[dim]
        last = extent - (number - 1) * tile if space.ragged and not (relaxed and dim in plain) else tile
        back = tile * (number - 1)
        if space.snake:
            back = ZERO if dim in plain else np.where(_alone(einsum, dim, trips), 0, back)
        if dim in plain:
            standing: tuple[tuple[Ints, Ints], ...] = ((np.array(extent), ONE),)
            advancing: tuple[tuple[Ints, Ints], ...] = ((extent - tile, ONE),)
        elif space.ragged:
            standing = ((tile, number - 1), (last, ONE))
            advancing = ((tile, np.maximum(number - 2, 0)), (last, np.minimum(number - 1, 1)))
        else:
            standing, advancing = ((tile, number),), ((tile, number - 1),)
        dims[dim] = Dim(extent, tile, last, number, back, standing, advancing, space.snake and dim in plain)
    return dims


def _alone(einsum: Einsum, dim: str, trips: Mapping[str, Ints]) -> NDArray[np.bool_]:
    """Mask of tilings in which no index with `dim` has another iterator of more than one tile."""
    sharing = {
        other
        for operand in einsum.operands
        for rank in operand.ranks
        if any(d == dim for d, _ in rank)
        for other, _ in rank
    }
    alone = np.ones((), bool)
    for other in sharing - {dim}:
        alone = alone & (trips[other] == 1)
    return alone
