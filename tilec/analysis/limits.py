"""Limits on a diff (`traffic=+5%`, `time=+5%`, `traffic@all=+5%`, `groups`: none may change), and violations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from tilec.analysis.change import Metric, PlanDiff
from tilec.errors import TilecError, UsageError, did_you_mean
from tilec.ir.algebra import bounds_of, simplify
from tilec.ir.expr import Binary, Const, Expr
from tilec.ir.text import text_of

_LIMIT = re.compile(r"\s*([a-z]+)(?:@([^=\s]+))?\s*=\s*\+?(\d+(?:\.\d+)?)\s*%\s*")

PER_LEVEL = ("traffic", "transactions", "footprint")
METRICS = (
    *(*PER_LEVEL, "time", "picoseconds", "flops", "groups", "launches", "kernels"),
    *("nodes", "constants", "calls", "arena", "scratch"),
)
"""Metrics that may have a limit; those counted per level also as METRIC@LEVEL."""

ALL = "all"
"""In place of a level: all of them."""

SAME = "groups"
"""The limit without a number: no group may change."""

REGROUPED = frozenset({"added", "removed", "split", "merged", "regrouped", "reconnected"})
"""Kinds of change after which groups have other nodes or other connections."""

_CALLED = {"time": "picoseconds"}
"""Metrics that have another name in diffs."""


class LimitExceeded(TilecError):
    """A plan's cost is above a limit."""

    exit_code: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class Limit:
    """The relative growth allowed for a metric; `level` is empty for the whole plan, `all` for every level. None for
    groups that must not change."""

    metric: str
    level: str
    growth: Fraction | None

    def covers(self, metric: Metric) -> bool:
        """Whether the limit applies to a total; except for traffic, no level means every level."""
        name, _, level = metric.name.partition("@")
        if name != _CALLED.get(self.metric, self.metric):
            return False
        if self.level == ALL:
            return bool(level)
        return level == self.level if self.level or name == "traffic" else True


def parse_limits(texts: Iterable[str]) -> tuple[Limit, ...]:
    """Limits in the form of `--fail-on`. Raises UsageError for another form or metric."""
    return tuple(_limit(part) for text in texts for part in text.split(","))


def exceeded(diff: PlanDiff, limits: Iterable[Limit]) -> list[str]:
    """One sentence for every total that grew beyond its limit, or may have, depending on symbols.

    Raises UsageError for a level or a metric for which neither plan has costs.
    """
    sentences: list[str] = []
    for limit in limits:
        if limit.growth is None:
            sentences += _regrouped(diff)
            continue
        covered = [metric for metric in diff.totals if limit.covers(metric)]
        if not covered and limit.level:
            levels = [name.partition("@")[2] for name in (m.name for m in diff.totals) if f"{limit.metric}@" in name]
            raise UsageError(
                f"no {limit.metric} is counted at {limit.level!r}", "--fail-on", _near(limit.level, levels)
            )
        if not covered:
            known = [metric.name for metric in diff.totals]
            raise UsageError(f"{_THINGS[diff.what]} no {limit.metric}", "--fail-on", _near(limit.metric, known))
        sentences += [text for metric in covered for text in _exceeds(metric, limit.growth, limit.metric)]
    return sentences


_THINGS = {"plan": "these plans have", "graph": "these graphs have", "kernels": "these kernels have"}


def _regrouped(diff: PlanDiff) -> list[str]:
    """The sentence about changed groups, if there are any."""
    kinds = Counter(kind for group in diff.groups for kind in group.kinds if kind in REGROUPED)
    if not kinds:
        return []
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items(), key=lambda item: (-item[1], item[0])))
    return [f"groups are not the same ({counts}; {diff.old.groups} -> {diff.new.groups}), none may be another"]


def _limit(text: str) -> Limit:
    if text.strip() == SAME:
        return Limit(SAME, "", None)
    match = _LIMIT.fullmatch(text)
    if match is None:
        hint = "Write it like traffic=+5%, time=+5%, footprint@smem=+0% or groups."
        raise UsageError(f"{text!r} is no limit", "--fail-on", hint)
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


def _exceeds(metric: Metric, growth: Fraction, called: str) -> list[str]:
    """The sentence about one total, if it exceeds: new <= old * (1 + growth) must hold for all symbols."""
    if not metric.changed:
        return []
    old = simplify(metric.before if metric.before is not None else Const(0))
    new = simplify(metric.after if metric.after is not None else Const(0))
    allowed = 1 + growth
    rest = Binary("-", _times(new, allowed.denominator), _times(old, allowed.numerator))
    lowest, highest = bounds_of(rest)
    if highest is not None and highest <= 0:
        return []
    percent = f"{float(100 * growth):g} %"
    name = metric.name if called in metric.name else f"{called} ({metric.name})"
    if lowest is not None and lowest > 0:
        grown = metric.growth
        by = f"grew by {float(100 * grown):.1f} %" if grown is not None else "grew"
        return [f"{name} {by} ({text_of(old)} -> {text_of(new)}), {percent} is allowed"]
    return [f"{name} may grow beyond {percent}, depending on sizes ({text_of(old)} -> {text_of(new)})"]


def _times(expr: Expr, factor: int) -> Expr:
    return Binary("*", expr, Const(factor))
