"""Comparison of one output with its reference: shape, type, then the largest error relative to the largest value."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tilec.verify.inputs import Array


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result for one output: `error` is max|a - b| / max|b| over finite elements, `reason` is empty when it
    passes. `moves` is how far the output moves, in the same unit, when everything it is computed from moves by its
    rounding error; None where that was not measured, because the error is within tolerance. `against` names the
    reference if it is not the one that was asked for."""

    output: str
    error: float
    tolerance: float
    reason: str = ""
    moves: float | None = None
    against: str = ""

    @property
    def passed(self) -> bool:
        """Whether the output is within tolerance."""
        return not self.reason

    @property
    def verdict(self) -> str:
        """exact, within rounding, ill-conditioned or mismatch."""
        if self.reason:
            return "mismatch"
        if self.moves is not None:
            return "ill-conditioned"
        return "exact" if self.error == 0 else "within rounding"

    def json(self) -> dict[str, Any]:
        """The verdict, for the record of the run."""
        record: dict[str, Any] = {"verdict": self.verdict}
        if self.moves is not None:
            record["moves"] = float(f"{self.moves:.2g}") if self.moves != inf else "inf"
        return {**record, "against": self.against} if self.against else record

    def size(self) -> str:
        """` (off by E of the largest value, T is allowed)`; empty where the error is not a number."""
        if self.error == inf:
            return ""
        return f" (off by {self.error:.1e} of the largest value, {self.tolerance:.1e} is allowed)"


def compare(name: str, actual: Any, expected: Any, tolerance: float, source: float = 0.0) -> Comparison:
    """Compare an output with the reference. NaN passes only where the reference has NaN, infinity likewise.

    The error is relative to the largest value, or to `source`, the largest value from which errors propagate, if that
    is larger. Integers, booleans and texts must be equal, whatever the tolerance; sequences are compared element by
    element, complex numbers by their two parts, which are told as those of one more axis. NumPy's scalars are arrays
    without dimensions.
    """
    actual, expected = (np.asarray(each) if isinstance(each, np.generic) else each for each in (actual, expected))
    if not isinstance(actual, np.ndarray) or not isinstance(expected, np.ndarray):
        return _compare_values(name, actual, expected, tolerance)
    if actual.shape != expected.shape:
        return Comparison(name, inf, tolerance, f"shape {list(actual.shape)} instead of {list(expected.shape)}")
    if actual.dtype != expected.dtype:
        return Comparison(name, inf, tolerance, f"type {actual.dtype} instead of {expected.dtype}")
    if actual.dtype.kind == "c":
        return compare(name, _parts(actual), _parts(expected), tolerance, source)
    if actual.dtype.kind not in "fV":
        return _compare_exactly(name, actual, expected, tolerance)
    difference = _difference(actual, expected)
    largest = max(float(difference.max(initial=0.0)), -float(difference.min(initial=0.0)))
    if not isfinite(largest):
        a, b = actual.astype(np.float64), expected.astype(np.float64)
        finite = np.isfinite(b)
        # Equality covers infinities of the same sign.
        wrong = ~finite & ~((a == b) | (np.isnan(a) & np.isnan(b))) | (finite & ~np.isfinite(a))
        if wrong.any():
            where = tuple(int(i) for i in np.argwhere(wrong)[0])
            count = int(wrong.sum())
            return Comparison(name, inf, tolerance, f"{_at(actual, expected, where)}, {count} such elements")
        difference[~finite] = 0.0
        largest = float(np.abs(difference).max(initial=0.0))
    scale = max(source, largest_magnitude(expected))
    error = largest / scale if scale else (inf if largest else 0.0)
    if error <= tolerance:
        return Comparison(name, error, tolerance)
    where = tuple(int(i) for i in np.unravel_index(int(np.abs(difference).argmax()), difference.shape))
    return Comparison(name, error, tolerance, _at(actual, expected, where))


def largest_magnitude(values: Array) -> float:
    """The largest finite magnitude of numbers, 0 of none."""
    if values.dtype.kind == "c":
        values = _parts(values)
    if values.dtype.kind == "V":
        values = values.astype(np.float64)
    if not values.size:
        return 0.0
    most = max(float(values.max()), -float(values.min()))
    if isfinite(most):
        return most
    wide = np.abs(values.astype(np.float64))
    return float(wide.max(initial=0.0, where=np.isfinite(wide)))


def _parts(values: Array) -> Array:
    """Real and imaginary parts of complex numbers, along a last axis."""
    return np.stack([values.real, values.imag], axis=-1)


def _difference(actual: Array, expected: Array) -> NDArray[np.float64]:
    """The differences in f64, of types of NumPy's own without copies in it."""
    a, b = (each.astype(np.float64) if each.dtype.kind == "V" else each for each in (actual, expected))
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(np.subtract(a, b, dtype=np.float64))


def _compare_values(name: str, actual: Any, expected: Any, tolerance: float) -> Comparison:
    """Compare sequences, maps and absent values."""
    if isinstance(actual, dict) and isinstance(expected, dict) and actual.keys() == expected.keys():
        actual, expected = list(actual.values()), [expected[key] for key in actual]
    if not isinstance(actual, list) or not isinstance(expected, list):
        same = type(actual) is type(expected) and bool(actual == expected)
        return Comparison(name, 0.0 if same else inf, tolerance, "" if same else f"{actual} instead of {expected}")
    if len(actual) != len(expected):
        return Comparison(name, inf, tolerance, f"{len(actual)} elements instead of {len(expected)}")
    comparisons = [compare(name, a, b, tolerance) for a, b in zip(actual, expected, strict=True)]
    return max(comparisons, key=lambda each: (not each.passed, each.error), default=Comparison(name, 0.0, tolerance))


def _compare_exactly(name: str, actual: Array, expected: Array, tolerance: float) -> Comparison:
    wrong = actual != expected
    if not wrong.any():
        return Comparison(name, 0.0, tolerance)
    where = tuple(int(i) for i in np.argwhere(wrong)[0])
    return Comparison(name, inf, tolerance, f"{_at(actual, expected, where)}, {int(wrong.sum())} such elements")


def _at(actual: Array, expected: Array, where: tuple[int, ...]) -> str:
    return f"{actual[where]} instead of {expected[where]} at {list(where)}"
