"""A diff as Markdown for pull requests: totals as a table, changes of each group as a list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilec.analysis.change import Change, GroupChange, Metric, PlanDiff
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

LARGEST = 65_536
"""Limit of characters of a comment on a pull request."""

_OPEN = 30
"""Number of lines of changes above which they are folded."""


def diff_markdown(diff: PlanDiff, most: int = LARGEST) -> str:
    """The diff as a comment of at most `most` characters; a single line when nothing differs. Lines end with a newline.

    Totals are a table and changes a list, which is folded where it is long and cut where it is too long.
    """
    lines = [f"**{_escaped(headline(diff))}**"]
    if diff.empty:
        return _joined(lines)
    lines += ["", "| | before | after | change |", "|---|---:|---:|---:|"]
    for metric in diff.totals:
        cells = (metric.name, value_text(metric.before), value_text(metric.after), growth_text(metric))
        lines.append(f"| {' | '.join(map(_escaped, cells))} |")
    lines += [f"| {' | '.join((bound_name(each), *bound_texts(each), ''))} |" for each in diff.bounds]
    entries = [_group(group) for group in diff.groups]
    if diff.changes:
        entries.append([f"- **{diff.what}**", *(f"  - {_change(change)}" for change in diff.changes)])
    return _joined([*lines, *_folded(entries, most - len(_joined(lines)))])


def _folded(entries: Sequence[Sequence[str]], room: int) -> list[str]:
    """The entries that fit into `room` characters, folded below a summary line where they are many."""
    many = sum(map(len, entries)) > _OPEN
    head = ["", "<details>", f"<summary>{len(entries)} changes</summary>", ""] if many else [""]
    foot = ["", "</details>"] if many else []
    room -= len(_joined([*head, *foot, _left_out(len(entries))]))
    shown: list[str] = []
    for place, entry in enumerate(entries):
        entry = entry if len(_joined(entry)) <= room else [*_shortened(entry, room)]
        room -= len(_joined(entry))
        if not entry or room < 0:
            return [*head, *shown, *foot, _left_out(len(entries) - place)]
        shown += entry
    return [*head, *shown, *foot] if entries else []


def _shortened(entry: Sequence[str], room: int) -> list[str]:
    """The lines of an entry that fit into `room` characters; empty if its first line does not."""
    more = "  - and more"
    fitting: list[str] = []
    for line in entry:
        if len(_joined([*fitting, line, more])) > room:
            return [*fitting, more] if fitting else []
        fitting.append(line)
    return fitting


def _left_out(count: int) -> str:
    return f"and {count} more: `tilec diff` without `--format md` shows them"


def _group(group: GroupChange) -> list[str]:
    head = f"- **{', '.join(group.kinds)}** {_code(groups_text(group))} ({_escaped(group.operators)})"
    both = bool(group.before and group.after)
    return [
        head,
        *(f"  - {_change(change)}" for change in group.changes),
        *(f"  - {_cost(metric, both)}" for metric in group.costs),
        *(f"  - {bound_name(each)} {' -> '.join(bound_texts(each))}" for each in group.bounds),
    ]


def _change(change: Change) -> str:
    subject = f" {_code(subject_text(change))}" if subject_text(change) else ""
    return f"{word_of(change)}{subject}: {_code(fact_text(change.before))} -> {_code(fact_text(change.after))}"


def _cost(metric: Metric, both: bool) -> str:
    if not both:
        return f"{metric.name} {value_text(metric.after if metric.after is not None else metric.before)}"
    growth = growth_text(metric)
    text = f"{metric.name} {value_text(metric.before)} -> {value_text(metric.after)}"
    return _escaped(f"{text} ({growth})" if growth else text)


def _code(text: str) -> str:
    """Text as code; names contain no backticks."""
    return f"`{text}`"


def _escaped(text: str) -> str:
    for sign in ("\\", "|", "*", "_", "<"):
        text = text.replace(sign, f"\\{sign}")
    return text


def _joined(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
