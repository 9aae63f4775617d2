"""Pareto fronts of large sets of (buffer, traffic) pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def front(buffer: Ints, traffic: Ints) -> NDArray[np.intp]:
    """Positions of the Pareto-optimal pairs by rising buffer; of equal pairs the first."""
    order = np.lexsort((traffic, buffer))
    falling = traffic[order]
    best = np.minimum.accumulate(falling)
    keep = np.ones(len(order), bool)
    keep[1:] = falling[1:] < best[:-1]
    return order[keep]
