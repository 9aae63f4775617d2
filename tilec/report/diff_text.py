"""A diff as aligned text: headline, totals, changes of each group, facts of the whole plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilec.analysis.change import Change, Metric, PlanDiff
from tilec.report.formatting import (
    bound_name,
    bound_texts,
    fact_text,
    groups_text,
    growth_text,
    headline,
    subject_text,
    value_text,
    word_of,
)

_LONG = 80
"""Letters of two facts up to which they share a line."""


def diff_text(diff: PlanDiff) -> str:
    """The diff for a terminal; a single line when nothing differs. Lines end with a newline."""
    lines = [headline(diff)]
    if diff.empty:
        return _joined(lines)
    rows = [["", "before", "after", "change"], *(_row(metric) for metric in diff.totals)]
    rows += [[bound_name(each), *bound_texts(each), ""] for each in diff.bounds]
    lines += ["", *_aligned(rows, right=(1, 2, 3))]
    for group in diff.groups:
        lines += ["", f"{', '.join(group.kinds)}: {groups_text(group)} ({group.operators})"]
        lines += _indented(_aligned([row for change in group.changes for row in _change(change)]))
        if group.before and group.after:
            costs = [[m.name, f"{value_text(m.before)} -> {value_text(m.after)}", growth_text(m)] for m in group.costs]
        else:
            costs = [[m.name, value_text(m.after if group.after else m.before)] for m in group.costs]
        costs += [
            [bound_name(each), " -> ".join(bound_texts(each)), ""][: len(costs[0])] for each in group.bounds if costs
        ]
        lines += _indented(_aligned(costs))
    if diff.changes:
        lines += ["", diff.what, *_indented(_aligned([row for change in diff.changes for row in _change(change)]))]
    return _joined(lines)


def _row(metric: Metric) -> list[str]:
    return [metric.name, value_text(metric.before), value_text(metric.after), growth_text(metric)]


def _change(change: Change) -> list[list[str]]:
    """One row, or two where both facts are long."""
    before, after = fact_text(change.before), fact_text(change.after)
    head = [word_of(change), subject_text(change)]
    if len(before) + len(after) <= _LONG:
        return [[*head, f"{before} -> {after}"]]
    return [[*head, before], ["", "", f"-> {after}"]]


def _aligned(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Columns two blanks apart; those in `right` are right-aligned."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))] if rows else []
    return [
        "  ".join(cell.rjust(width) if k in right else cell.ljust(width) for k, (cell, width) in enumerate(pairs))
        for pairs in (list(zip(row, widths, strict=True)) for row in rows)
    ]


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _joined(lines: Iterable[str]) -> str:
    return "".join(f"{line.rstrip()}\n" for line in lines)
