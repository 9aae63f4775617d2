"""Quality of the cost model on the candidates of a tuning record: rank correlation and loss of the first choice.

The search takes the candidate that is predicted best; the record says what it would have gained by measuring.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import nan

import numpy as np

from tilec.scheduler.tuning.record import Entry, Record


@dataclass(frozen=True, slots=True)
class ModelQuality:
    """One group's candidates that were built and measured.

    correlation  Spearman's rank correlation of predicted and measured times, nan where either are all equal
    loss         relative time that the candidate predicted best takes longer than the one measured fastest
    ratio        predicted over measured time of the former
    seconds      measured time of the former
    """

    group: str
    candidates: int
    correlation: float
    loss: float
    ratio: float
    seconds: float


def model_quality(record: Record) -> tuple[ModelQuality, ...]:
    """The groups of a record with two measured candidates or more that were predicted, longest first."""
    found = (each for entry in record.entries.values() if (each := _quality(entry)) is not None)
    return tuple(sorted(found, key=lambda each: -each.seconds))


def quality_totals(groups: Iterable[ModelQuality]) -> Mapping[str, float]:
    """Mean correlation, mean and largest loss, the same loss weighted by time, and how often the first choice is within
    2 % of the best."""
    every = tuple(groups)
    defined = [each.correlation for each in every if each.correlation == each.correlation]
    losses = [each.loss for each in every]
    spent = sum(each.seconds for each in every)
    best = sum(each.seconds / (1 + each.loss) for each in every)
    return {
        "groups": len(every),
        "correlation": float(np.mean(defined)) if defined else nan,
        "mean_loss": float(np.mean(losses)) if losses else nan,
        "largest_loss": max(losses, default=nan),
        "loss_of_time": spent / best - 1 if best else nan,
        "best_taken": sum(loss <= 0.02 for loss in losses) / len(every) if every else nan,
    }


def _quality(entry: Entry) -> ModelQuality | None:
    measured = dict.fromkeys((t.predicted, t.picoseconds) for t in entry.trials if t.picoseconds and t.predicted)
    if len(measured) < 2:
        return None
    predicted, times = np.asarray(list(measured), np.float64).T
    first = int(np.argmin(predicted))
    return ModelQuality(
        group=f"{entry.group.operators} {', '.join(entry.group.makes)}",
        candidates=len(times),
        correlation=_spearman(predicted, times),
        loss=float(times[first] / times.min() - 1),
        ratio=float(predicted[first] / times[first]),
        seconds=float(times[first]) / 1e12,
    )


def _spearman(a: np.ndarray, b: np.ndarray) -> float:
    """The correlation of ranks; equal values share the mean of theirs."""
    ranks = [np.mean([np.searchsorted(np.sort(x), x, side) for side in ("left", "right")], axis=0) for x in (a, b)]
    if any(np.ptp(rank) == 0 for rank in ranks):
        return nan
    return float(np.corrcoef(*ranks)[0, 1])
