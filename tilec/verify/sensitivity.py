"""How far results move when everything they are computed from moves by its rounding error, measured by disturbing.

Values on the boundary of a discontinuity (QuantizeLinear, Round, a cast to integers, a comparison, ArgMax) fall to the
other side in some of the disturbed evaluations, so that flips are counted like any other movement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilec.verify.inputs import Array

Floats = NDArray[np.float64]

AMPLITUDE = 3.0
"""Standard deviations of the rounding error by which results are disturbed; the largest of all evaluations is about
twice as far."""

EVALUATIONS = 16
"""Greatest number of disturbed evaluations. A value that its rounding error puts on the other side of a boundary stays
on its own side in all of them with a probability of 1e-3."""

FLIPPED = 0.01
"""Share of the elements of half precision that may be one unit in the last place off without a closer look."""

MARGIN = 1.5
"""Multiple of the root mean square and of the greatest distance of the disturbed evaluations that the distance of two
right results may have: each of them has flips of its own."""

MISSED = 0.02
"""Share of the moving elements that may be off by more than they moved: a flip that no evaluation happened to show."""


def disturbed(
    result: Array,
    precise: Array,
    off: float,
    sizes: Floats | float,
    generator: np.random.Generator,
    grid: np.dtype[Any] | None = None,
) -> Array:
    """A node's `precise` result with `AMPLITUDE` times its rounding error, rounded to the type of `result`; elements
    that are exact, in the type of `grid` if there is one, stay. Of f64, in which `precise` is computed, no element is
    known to be exact.

    `off` is the standard deviation of the relative error, of the result or of the `sizes` of what was rounded on the
    way to it where these are larger.
    """
    wide = precise.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        perturbed = wide + AMPLITUDE * off * np.maximum(np.abs(wide), sizes) * generator.standard_normal(result.shape)
        held = result if grid is None else result.astype(grid).astype(np.float64)
        exact = (wide == held) if result.dtype != np.float64 else np.zeros(result.shape, bool)
        changed: Array = np.where(exact, result, perturbed.astype(result.dtype))
    return changed


@dataclass(frozen=True, slots=True)
class Movement:
    """Distances of disturbed evaluations from the values of a tensor: the greatest of each element, and the greatest
    root mean square of all elements in one evaluation. `jumps` says whether something upstream is quantised, or rounded
    to half precision."""

    greatest: Floats
    rms: float = 0.0
    jumps: bool = False

    @property
    def most(self) -> float:
        """The greatest distance of all."""
        return float(self.greatest.max(initial=0.0))

    def with_another(self, distances: Floats) -> Movement:
        """The same with one more evaluation."""
        rms = max(self.rms, root_mean_square(distances))
        return Movement(np.maximum(self.greatest, distances), rms, self.jumps)

    def covers(self, actual: Array, expected: Array) -> bool:
        """Whether results behind jumps differ as a whole, though not element by element, no more than the evaluations:
        with many flips upstream, which elements move is chance, how far they move is not."""
        if not self.jumps or not comparable(actual, expected):
            return False
        off = apart(actual, expected)
        within = root_mean_square(off) <= MARGIN * self.rms
        return within and float(off.max(initial=0.0)) <= MARGIN * self.most < np.inf


def root_mean_square(distances: Floats) -> float:
    """The root mean square of distances, 0 of none."""
    return float(np.sqrt(np.mean(np.square(distances)))) if distances.size else 0.0


def deviations(
    evaluate: Callable[[np.random.Generator], Mapping[str, Array]],
    values: Mapping[str, Array],
    names: Sequence[str],
    enough: Callable[[Mapping[str, Movement]], bool],
    advance: Callable[[int, int], None] = lambda _done, _total: None,
    jumps: bool = False,
    most: int = EVALUATIONS,
) -> dict[str, Movement]:
    """Map from name to the distances from `values` in the disturbed evaluations, of which there are as many as it takes
    until the distances are `enough`, `most` at most. `jumps` says whether there are such jumps (`Movement`) in what is
    evaluated."""
    moved = {name: Movement(np.zeros(np.shape(values[name])), jumps=jumps) for name in names}
    for seed in range(most):
        results = evaluate(np.random.default_rng(seed))
        moved = {name: each.with_another(apart(results[name], values[name])) for name, each in moved.items()}
        advance(seed + 1, most)
        if enough(moved):
            break
    return moved


def comparable(actual: Array, expected: Array) -> bool:
    """Whether two results are numbers of one shape and type."""
    return actual.shape == expected.shape and actual.dtype == expected.dtype and actual.dtype.kind in "fViub"


def explained(actual: Array, expected: Array, moved: Movement, allowed: float = 0.0) -> NDArray[np.bool_]:
    """Which elements differ by no more than they `moved`, or than `allowed`; none when shapes or types differ."""
    if not comparable(actual, expected):
        return np.zeros(np.shape(expected), bool)
    off = apart(actual, expected)
    within: NDArray[np.bool_] = off <= np.maximum(moved.greatest, allowed)
    missed = int(np.count_nonzero(~within))
    if missed and missed <= MISSED * np.count_nonzero(moved.greatest) and off.max() <= moved.most:
        return np.ones_like(within)
    return within


def flipped(actual: Array, expected: Array) -> bool:
    """Whether tensors of half precision differ by one unit in the last place of few elements: values that were on the
    boundary of two roundings."""
    if actual.dtype != expected.dtype or actual.shape != expected.shape or actual.dtype.itemsize != 2:
        return False
    differs = apart(actual, expected) > 0 if actual.dtype.kind in "fV" else np.ones(actual.shape, bool)
    if np.count_nonzero(differs) > FLIPPED * actual.size:
        return False
    bits = [np.where(each < 0, np.iinfo(np.int16).min - each, each) for each in (_bits(actual), _bits(expected))]
    return bool(np.abs(bits[0] - bits[1]).max(initial=0, where=differs) <= 1)


def _bits(values: Array) -> NDArray[np.int32]:
    return np.ascontiguousarray(values).view(np.int16).astype(np.int32)


def apart(one: Array, other: Array) -> Floats:
    """Distance of each pair of elements: 0 for two NaN and equal infinities, infinite where one of them is finite."""
    a, b = np.asarray(one).astype(np.float64), np.asarray(other).astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.abs(a - b)
    off = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, off)
    result: Floats = np.where(np.isnan(off), np.inf, off)
    return result
