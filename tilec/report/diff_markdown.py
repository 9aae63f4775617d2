"""A diff as Markdown, for pull requests: totals as a table, what became of each group as a list."""

from __future__ import annotations

from collections.abc import Iterable

from tilec.report.change import Change, GroupChange, Metric, PlanDiff
from tilec.report.wording import (
    fact_text,
    groups_text,
    growth_text,
    headline,
    subject_text,
    value_text,
    word_of,
)


def diff_markdown(diff: PlanDiff) -> str:
    """The diff as a comment; a single line when nothing differs. Lines end with a newline."""
    lines = [f"**{_escaped(headline(diff))}**"]
    if diff.empty:
        return _joined(lines)
    lines += ["", "| | before | after | change |", "|---|---:|---:|---:|"]
    for metric in diff.totals:
        cells = (metric.name, value_text(metric.before), value_text(metric.after), growth_text(metric))
        lines.append(f"| {' | '.join(map(_escaped, cells))} |")
    if diff.groups:
        lines += ["", *(line for group in diff.groups for line in _group(group))]
    if diff.changes:
        lines += ["", "- **plan**", *(f"  - {_change(change)}" for change in diff.changes)]
    return _joined(lines)


def _group(group: GroupChange) -> list[str]:
    head = f"- **{', '.join(group.kinds)}** {_code(groups_text(group))} ({_escaped(group.operators)})"
    both = bool(group.before and group.after)
    return [
        head,
        *(f"  - {_change(change)}" for change in group.changes),
        *(f"  - {_cost(metric, both)}" for metric in group.costs),
    ]


def _change(change: Change) -> str:
    subject = f" {_code(subject_text(change))}" if subject_text(change) else ""
    return f"{word_of(change)}{subject}: {_code(fact_text(change.before))} -> {_code(fact_text(change.after))}"


def _cost(metric: Metric, both: bool) -> str:
    if not both:
        return f"{metric.name} {value_text(metric.after if metric.after is not None else metric.before)}"
    growth = growth_text(metric)
    told = f"{metric.name} {value_text(metric.before)} -> {value_text(metric.after)}"
    return _escaped(f"{told} ({growth})" if growth else told)


def _code(text: str) -> str:
    """Text as it stands; names hold no backticks."""
    return f"`{text}`"


def _escaped(text: str) -> str:
    for sign in ("\\", "|", "*", "_", "<"):
        text = text.replace(sign, f"\\{sign}")
    return text


def _joined(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
