"""Text forms of facts and costs, the same in every form of a diff: `h=4 w=8`, `6,336`, `-45.3 %`."""

from __future__ import annotations

from collections import Counter

from tilec.analysis.change import BoundMetric, Change, Fact, GroupChange, Metric, PlanDiff, Side
from tilec.analysis.ratios import times_text
from tilec.analysis.totals import COUNTS
from tilec.errors import several
from tilec.ir.algebra import simplify
from tilec.ir.expr import Expr, constant_value
from tilec.ir.text import text_of

NOTHING = "-"
"""Text where there is no fact."""


def fact_text(fact: Fact) -> str:
    """A decision in one line."""
    if fact is None:
        return NOTHING
    if isinstance(fact, dict):
        return " ".join(f"{name}={value}" for name, value in fact.items())
    if isinstance(fact, list):
        return " ".join(str(value) for value in fact) or NOTHING
    return str(fact) or NOTHING


def subject_text(change: Change) -> str:
    """The subject of a change: level, node, tensor or edge, and the variant where there are several."""
    words = [change.level, change.subject, f"if {change.guard}" if change.guard else ""]
    return " ".join(word for word in words if word)


def word_of(change: Change) -> str:
    """The kind of a change; edges that were connected or disconnected have words of their own."""
    if change.kind == "connect" and change.before is None:
        return "joined"
    if change.kind == "connect" and change.after is None:
        return "cut"
    return change.kind


_SIZES = (("GiB", 30), ("MiB", 20), ("KiB", 10))


def bytes_text(size: int) -> str:
    """Bytes with a binary unit: `2.3 GiB`, `512 bytes`."""
    unit, shift = next(((unit, shift) for unit, shift in _SIZES if size >= 1 << shift), ("bytes", 0))
    return f"{size / (1 << shift):.1f} {unit}" if shift else f"{size} bytes"


_TIMES = (("s", 10**12), ("ms", 10**9), ("us", 10**6), ("ns", 10**3))


def time_text(picoseconds: int) -> str:
    """A predicted time with its unit, three digits: `1.2 ms`."""
    unit, size = next(((unit, size) for unit, size in _TIMES if picoseconds >= size), ("ps", 1))
    value = f"{picoseconds / size:.3g}"
    return f"{value if 'e' not in value else round(picoseconds / size)} {unit}"


_ENERGIES = (("J", 10**15), ("mJ", 10**12), ("uJ", 10**9), ("nJ", 10**6), ("pJ", 10**3))


def energy_text(femtojoules: int) -> str:
    """An energy with its unit, three digits: `4.52 mJ`."""
    unit, size = next(((unit, size) for unit, size in _ENERGIES if femtojoules >= size), ("fJ", 1))
    value = f"{femtojoules / size:.3g}"
    return f"{value if 'e' not in value else round(femtojoules / size)} {unit}"


def value_text(value: Expr | None) -> str:
    """A cost: a number with separators, or the expression."""
    if value is None:
        return NOTHING
    number = constant_value(simplify(value))
    return f"{number:,}" if number is not None else text_of(simplify(value))


def growth_text(metric: Metric) -> str:
    """The growth of a cost: counts as a difference, others in percent; empty where it is unknown."""
    growth = metric.growth
    if not metric.changed or growth is None:
        return ""
    if metric.name in COUNTS:
        before, after = (constant_value(simplify(v)) or 0 for v in (metric.before, metric.after) if v is not None)
        return f"{after - before:+d}"
    return f"{float(100 * growth):+.1f} %"


def groups_text(change: GroupChange) -> str:
    """Names before and after; once where they are equal."""
    before, after = ", ".join(change.before), ", ".join(change.after)
    if not before or not after or before == after:
        return before or after
    return f"{before} -> {after}"


def bound_name(metric: BoundMetric) -> str:
    """Label of a row of bounds: multiple of the best known traffic."""
    return f"times the least known@{metric.level}"


def bound_texts(metric: BoundMetric) -> tuple[str, str]:
    """Multiples of the best known traffic before and after: `6.48x`."""
    before, after = (NOTHING if ratio is None else times_text(ratio) for ratio in (metric.before, metric.after))
    return before, after


_COUNTED = {"plan": "group", "graph": "node", "kernels": "step"}
"""Map from kind of artifact to its countable elements."""


def _side_text(side: Side) -> str:
    """`bert on a100 at batch=1, seq=128`."""
    text = f"{side.name} on {side.device}" if side.device else side.name
    return f"{text} at {side.at}" if side.at else text


def headline(diff: PlanDiff) -> str:
    """Both plans and the number of changed groups in one line; likewise for graphs and kernels."""
    sides = (diff.old, diff.new)
    old, new = (_side_text(side) for side in sides)
    counted = several(diff.new.groups, _COUNTED[diff.what])
    if diff.empty:
        names = "" if old == new else f", as {old}"
        return f"no changes: {new}, {counted}{names}"
    kinds = Counter(", ".join(change.kinds) for change in diff.groups)
    parts = [f"{count} {kind}" for kind, count in sorted(kinds.items(), key=lambda item: (-item[1], item[0]))]
    which = new if old == new else f"{old} -> {new}"
    changed = "; ".join([*parts, f"{diff.unchanged} unchanged"])
    return f"{which}: {diff.old.groups:,} -> {counted} ({changed})"
