"""Vectorised lookup of a front's traffic at very many buffer sizes.

Bisection costs some 50 ns a lookup where the arithmetic around it takes 10. A table over the leading bits of the
buffer, as of a floating-point number, leaves a step or two.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_BITS = 43
"""Low bits of a double that the table ignores: 512 entries per power of two."""

_STEPS = 2


class Reached:
    """Traffic of the best point within a buffer, of a front with rising `buffers` and falling `traffic`."""

    def __init__(self, buffers: Ints, traffic: Ints, otherwise: int) -> None:
        largest = int(buffers[-1]) if len(buffers) else 1
        self._first = _entry(np.ones(1, np.int64))[0]
        entries = np.arange(self._first, _entry(np.array([2 * largest]))[0] + 1)
        self._fitting = np.searchsorted(buffers, (entries << _BITS).view(np.float64).astype(np.int64), "right")
        self._buffers = np.append(buffers, np.iinfo(np.int64).max)
        self._traffic = np.append(otherwise, traffic)

    def within(self, needed: Ints) -> Ints:
        """Traffic of a point that needs at most `needed`, usually the best one; `otherwise` where none fits."""
        entries = np.minimum(_entry(needed) - self._first, len(self._fitting) - 1)
        fitting = self._fitting[entries]
        for _ in range(_STEPS):
            fitting = fitting + (self._buffers[fitting] <= needed)
        traffic: Ints = self._traffic[fitting]
        return traffic


class Within:
    """Traffic of the best point so far within one capacity: nothing that needs more is of use."""

    def __init__(self, capacity: int, traffic: Ints, otherwise: int) -> None:
        self._capacity = capacity
        self._least = int(traffic.min(initial=otherwise))

    def within(self, needed: Ints) -> Ints:
        """That traffic for whatever fits, nothing for the rest."""
        return np.where(needed <= self._capacity, self._least, -1)


def _entry(needed: Ints) -> Ints:
    """The table entry with the largest buffer below `needed`, whichever way the conversion rounds."""
    return (needed.astype(np.float64).view(np.int64) - 1) >> _BITS
