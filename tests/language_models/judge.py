"""Whether decoded logits are right: as near to those of exact arithmetic as onnxruntime's are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FLOOR = {"float32": 2e-5, "float16": 4e-3}
"""Relative distance that arithmetic in another order makes (root mean square over root mean square)."""

ALIKE = 1.25
"""Times the distance of onnxruntime's logits from exact ones that those of another implementation may have."""


@dataclass(frozen=True, slots=True)
class Distances:
    """Relative distances of logits, the largest of all steps: ours and onnxruntime's from those of exact arithmetic,
    and from each other; `tokens` is the share of steps whose likeliest tokens are onnxruntime's."""

    ours: float
    theirs: float
    apart: float
    tokens: float
    dtype: str

    @property
    def right(self) -> bool:
        """Whether ours are no farther from exact ones than theirs, but for the order of sums."""
        return self.ours <= ALIKE * self.theirs + FLOOR[self.dtype]


def distances(
    ours: Sequence[NDArray[np.floating]],
    theirs: Sequence[NDArray[np.floating]],
    exact: Sequence[NDArray[np.floating]],
) -> Distances:
    """The distances of logits of the same steps."""
    same = [np.mean(a.argmax(-1) == b.argmax(-1)) for a, b in zip(ours, theirs, strict=True)]
    return Distances(
        _all(ours, exact), _all(theirs, exact), _all(ours, theirs), float(np.mean(same)), str(ours[0].dtype)
    )


def _all(some: Sequence[NDArray[np.floating]], others: Sequence[NDArray[np.floating]]) -> float:
    one, other = (np.concatenate([each.astype(np.float64).ravel() for each in of]) for of in (some, others))
    if one.shape != other.shape or not np.isfinite(one).all():
        return float("inf")
    return float(np.linalg.norm(one - other) / np.linalg.norm(other))
