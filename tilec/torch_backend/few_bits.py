"""Weights of 8 bits that 4 hold: PyTorch has no type for the integers of weight-only quantisation."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

LEAST = 256
"""Elements of a tensor that is worth it."""

_TYPES = {np.dtype(np.int8): (ml_dtypes.int4, -8, 7), np.dtype(np.uint8): (ml_dtypes.uint4, 0, 15)}


def in_few_bits(array: NDArray[Any]) -> NDArray[Any] | None:
    """The same integers of 4 bits; None where they do not fit, and for other types."""
    if array.dtype not in _TYPES or array.size < LEAST:
        return None
    few, low, high = _TYPES[array.dtype]
    return array.astype(few) if array.min() >= low and array.max() <= high else None
