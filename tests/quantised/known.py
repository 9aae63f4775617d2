"""Tensors whose integers are exact and whose floats are known within an error."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]

BITS = {f"{sign}{bits}": bits for bits in (2, 4, 8, 16, 32, 64) for sign in "iu"}
"""Types of integers."""

_NUMPY = {
    **{f"i{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"u{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
    **{f"i{bits}": np.dtype(getattr(ml_dtypes, f"int{bits}")) for bits in (2, 4)},
    **{f"u{bits}": np.dtype(getattr(ml_dtypes, f"uint{bits}")) for bits in (2, 4)},
    "f32": np.dtype(np.float32),
}

ULP = 2.0**-24
"""Half a unit in the last place of 1."""


def dtype_of(kind: str) -> np.dtype[Any]:
    return _NUMPY[kind]


def kind_of(dtype: np.dtype[Any]) -> str:
    return next(kind for kind, each in _NUMPY.items() if each == dtype)


def limits(kind: str) -> tuple[int, int]:
    """The least and the largest integer of a type."""
    bits = BITS[kind]
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind[0] == "i" else (0, (1 << bits) - 1)


@dataclass(frozen=True)
class Known:
    """A tensor: its type, its numbers (int64 or float32) and how far a right result may be from each."""

    kind: str
    numbers: Array
    error: Array
    rounding: Array | float = 0.0
    """How far each is from the product that it was rounded from."""

    @staticmethod
    def of(kind: str, numbers: Array, error: Array | float = 0.0) -> Known:
        wide = np.asarray(numbers, np.float32 if kind == "f32" else np.int64)
        return Known(kind, wide, np.broadcast_to(np.asarray(error, np.float64), wide.shape))

    @staticmethod
    def product(a: Array, b: Array, error: Array | float = 0.0) -> Known:
        """A product of floats, rounded."""
        made = a * b
        off = np.abs(made.astype(np.float64) - a.astype(np.float64) * b.astype(np.float64))
        error = np.where(error > np.zeros(made.shape), error + 2 * ULP * np.abs(made), 0.0)
        return replace(Known.of("f32", made, error), rounding=off)

    @staticmethod
    def read(array: Array) -> Known:
        """A tensor as a model or a session has it."""
        kind = kind_of(array.dtype)
        return Known.of(kind, array.astype(np.float32 if kind == "f32" else np.int64))

    @property
    def array(self) -> Array:
        """The numbers in the tensor's own type."""
        return self.numbers.astype(dtype_of(self.kind))

    @property
    def exact(self) -> bool:
        return not self.error.any()
