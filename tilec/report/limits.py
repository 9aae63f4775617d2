"""What a diff may cost: `traffic=+5%`, `footprint@smem=+0%`; which limits are exceeded and by how much."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from tilec.errors import TilecError, UsageError, did_you_mean
from tilec.ir.algebra import bounds_of, simplify
from tilec.ir.expr import Binary, Const, Expr
from tilec.ir.text import text_of
from tilec.report.change import Metric, PlanDiff

_LIMIT = re.compile(r"\s*([a-z]+)(?:@([^=\s]+))?\s*=\s*\+?(\d+(?:\.\d+)?)\s*%\s*")

PER_LEVEL = ("traffic", "transactions", "footprint")
METRICS = (*PER_LEVEL, "picoseconds", "flops", "groups", "launches", "kernels")
"""What a limit may be set on; what is counted per level also as METRIC@LEVEL."""


class LimitExceeded(TilecError):
    """A plan costs more than was allowed."""

    exit_code: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class Limit:
    """The part by which a metric may grow; `level` empty for the whole plan."""

    metric: str
    level: str
    growth: Fraction

    def covers(self, metric: Metric) -> bool:
        """Whether a total counts; but for traffic, no level means every level."""
        name, _, level = metric.name.partition("@")
        if name != self.metric:
            return False
        return level == self.level if self.level or name == "traffic" else True


def parse_limits(texts: Iterable[str]) -> tuple[Limit, ...]:
    """Limits as `--fail-on` takes them. Raises UsageError for another form or metric."""
    return tuple(_limit(part) for text in texts for part in text.split(","))


def exceeded(diff: PlanDiff, limits: Iterable[Limit]) -> list[str]:
    """One sentence for every total that grew beyond its limit, or may have, depending on symbols.

    Raises UsageError for a level that neither plan has costs for.
    """
    said: list[str] = []
    for limit in limits:
        covered = [metric for metric in diff.totals if limit.covers(metric)]
        if not covered and limit.level:
            levels = [name.partition("@")[2] for name in (m.name for m in diff.totals) if f"{limit.metric}@" in name]
            raise UsageError(
                f"no {limit.metric} is counted at {limit.level!r}", "--fail-on", _near(limit.level, levels)
            )
        said += [text for metric in covered for text in _exceeds(metric, limit)]
    return said


def _limit(text: str) -> Limit:
    match = _LIMIT.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is no limit", "--fail-on", "Write it like traffic=+5% or footprint@smem=+0%.")
    metric, level, percent = match[1], match[2] or "", match[3]
    if metric not in METRICS:
        raise UsageError(f"no metric is called {metric!r}", "--fail-on", _near(metric, METRICS))
    if level and metric not in PER_LEVEL:
        raise UsageError(f"{metric} is not counted per level", "--fail-on", f"Write {metric}=+{percent}%.")
    return Limit(metric, level, Fraction(percent) / 100)


def _near(word: str, known: Iterable[str]) -> str:
    names = list(dict.fromkeys(known))
    near = did_you_mean(word, names)
    return f"Did you mean {near!r}?" if near else f"Known: {', '.join(names)}."


def _exceeds(metric: Metric, limit: Limit) -> list[str]:
    """The sentence about one total, if there is one: new <= old * (1 + growth) must hold for all symbols."""
    if not metric.changed:
        return []
    old = simplify(metric.before if metric.before is not None else Const(0))
    new = simplify(metric.after if metric.after is not None else Const(0))
    allowed = 1 + limit.growth
    rest = Binary("-", _times(new, allowed.denominator), _times(old, allowed.numerator))
    lowest, highest = bounds_of(rest)
    if highest is not None and highest <= 0:
        return []
    percent = f"{float(100 * limit.growth):g} %"
    if lowest is not None and lowest > 0:
        growth = metric.growth
        by = f"grew by {float(100 * growth):.1f} %" if growth is not None else "grew"
        return [f"{metric.name} {by} ({text_of(old)} -> {text_of(new)}), {percent} is allowed"]
    return [f"{metric.name} may grow beyond {percent}, depending on sizes ({text_of(old)} -> {text_of(new)})"]


def _times(expr: Expr, factor: int) -> Expr:
    return Binary("*", expr, Const(factor))
