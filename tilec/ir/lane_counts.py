"""How the lanes of a unit lie along several iterators where none is wide enough for all of them."""

from __future__ import annotations

from collections.abc import Sequence

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
