"""How the lanes of a unit lie along several iterators where none is wide enough for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def lane_counts(widths: Sequence[int], lanes: int) -> list[int]:
    """Lanes along each of some widths, the fastest first: the powers of two that cover them, as long as lanes are
    left."""
    found: list[int] = []
    for width in widths:
        found.append(min(lanes, int(covering_lanes(np.asarray(width)))))
        lanes //= found[-1]
    return found


def covering_lanes(widths: Ints) -> Ints:
    """The least powers of two that are no less than some widths."""
    return np.asarray(2 ** np.frexp(np.maximum(widths, 1) - 1)[1].astype(np.int64), np.int64)


def covering_vectors(widths: Sequence[Ints], lanes: int) -> Ints:
    """Vectors that cover a box of some widths, the fastest first: lanes lie along the first that is wide enough for all
    of them, else along all together."""
    alone: Ints = np.asarray(1, np.int64)
    together, left, full = alone, np.asarray(lanes, np.int64), np.asarray(False)
    for width in widths:
        takes_all = ~full & (width >= lanes)
        alone = alone * np.where(takes_all, -(-width // lanes), width)
        full = full | takes_all
        count = np.minimum(left, covering_lanes(width))
        together, left = together * -(-width // count), left // count
    return np.where(full, alone, together)


@lru_cache(maxsize=1 << 12)
def vectors_of_box(widths: tuple[int, ...], lanes: int) -> int:
    """The same of one box."""
    return int(covering_vectors([np.asarray(width, np.int64) for width in widths], lanes))
