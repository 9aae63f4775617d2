"""Fusion-friendly mapping templates (FFMT) of a product: loops over tiles, and words moved (Orojenesis, figure 16).

The backing store sees loops over tiles of m, k and n in a fixed order; dimensions without a loop are whole. Tiles of I
and O stay in the buffer. W passes through it an element (of every head) at a time, or is kept: then the tile of W stays
for as long as the loops inside leave it in place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilec.bounds.chain.chain import Product
from tilec.bounds.einsum.front import Ints
from tilec.bounds.einsum.operand_traffic import times

ONE = np.ones((), np.int64)

Trips = Mapping[str, Ints]
"""Number of tiles of m, k and n, for many mappings at once."""


@dataclass(frozen=True)
class Template:
    """A set of mappings: `loops` over tiles, outermost first."""

    name: str
    loops: tuple[str, ...]


FULL = Template("Full", ("m",))
TILED_K = Template("TiledK", ("m", "k"))
TILED_N = Template("TiledN", ("m", "n"))
TILED_KN = Template("TiledKN", ("m", "n", "k"))
TILED_NK = Template("TiledNK", ("m", "k", "n"))
FLASH_FIRST = Template("flash, first", ("n", "m"))
FLASH_SECOND = Template("flash, second", ("k", "m"))


def _fetches(template: Template, trips: Trips, dims: str) -> Ints:
    """Number of times that a tensor with indices `dims` is fetched as a whole: the product of trip counts of the loops
    that leave it in place while loops inside move it."""
    repeats: list[Ints] = []
    for depth, loop in enumerate(template.loops):
        if loop not in dims:
            inside = times([ONE, *(trips[other] for other in template.loops[depth + 1 :] if other in dims)])
            repeats.append(np.where(inside > 1, trips[loop], 1))
    return times([ONE, *repeats])


def input_words(template: Template, product: Product, trips: Trips) -> Ints:
    """Words of I that are read."""
    return product.input_words * _fetches(template, trips, "mk")


def output_words(template: Template, product: Product, trips: Trips) -> Ints:
    """Words of O that are written, and read again where sums are partial; the first read is left out."""
    return product.output_words * (2 * _fetches(template, trips, "mn") - 1)


def weight_words(
    template: Template, product: Product, trips: Trips, tile: Ints, resident: NDArray[np.bool_], units: int = 1
) -> Ints:
    """Words of W that are read with tiles of `tile` rows: where W is kept once per batch, and by each of `units` that
    share the rows; else for every tile.

    A tile of rows that reaches into several batches reads the W of each.
    """
    inner = template.loops[template.loops.index("m") + 1 :]
    stays = resident & (times([ONE, *(trips[loop] for loop in inner)]) == 1)
    return product.weight_words * np.where(stays, max(product.batches, units), visits(product, trips["m"], tile))


def visits(product: Product, trips: Ints, tile: Ints) -> Ints:
    """Number of pairs of a batch and a tile of rows that reaches into it."""
    shared_ends = (product.m - 1) // np.lcm(tile, product.m // product.batches)
    count: Ints = trips + product.batches - 1 - shared_ends
    return count
