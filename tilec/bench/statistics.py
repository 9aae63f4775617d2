"""Statistics of times per round: median, ratio per round, bootstrap interval, verdict on a ratio."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

BAR = 0.97
"""Smallest ratio that counts as "no slower"."""

SLACK = 0.02
"""Distance below the bar that the lower end of the interval may have."""

RESAMPLES = 10_000
LEVEL = 0.95

Verdict = Literal["holds", "undecided", "fails"]


@dataclass(frozen=True, slots=True)
class Ratio:
    """A peer's time over tilec's, per round: median and the ends of its 95 % interval; above 1 tilec is faster."""

    median: float
    low: float
    high: float

    def verdict(self, bar: float = BAR) -> Verdict:
        """Whether the ratio is at least `bar`: "holds" by the lower end of the interval, "fails" by the upper end, else
        "undecided"."""
        if self.low >= bar - SLACK:
            return "holds"
        return "fails" if self.high < bar - SLACK else "undecided"


def ratio(theirs: Sequence[float], ours: Sequence[float], seed: int = 0) -> Ratio:
    """The ratio of two runners' times in the same rounds, with a bootstrap interval of its median."""
    ratios = np.asarray(theirs, np.float64) / np.asarray(ours, np.float64)
    generator = np.random.default_rng(seed)
    drawn = generator.integers(0, len(ratios), (RESAMPLES, len(ratios)))
    medians = np.median(ratios[drawn], axis=1)
    low, high = np.quantile(medians, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Ratio(float(np.median(ratios)), float(low), float(high))
