"""Bounds for a terminal: a heading for each subject, a line for each capacity and mapspace, and their meanings."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.analysis.bounds.rows import At, Row, rows_of
from tilec.analysis.bounds.subject import Subject
from tilec.bounds.levels import NOT_JOINT
from tilec.report.bounds.forms import meanings

_NOTHING = "-"
"""Text where there is no number."""

HEADS = ("capacity", "mapspace", "traffic", "x least", "buffer", "mapping")
RIGHT = ("traffic", "x least", "buffer")
"""Columns of the table, and those that are right-aligned."""

_SIZES = (("GiB", 30), ("MiB", 20), ("KiB", 10))
_PREFIXES = (("T", 12), ("G", 9), ("M", 6), ("k", 3))


def heading(subject: Subject) -> list[str]:
    """The subject in two lines: expression and sizes, types, operations, compulsory traffic; then its notes."""
    times = f", {subject.count} times" if subject.count > 1 else ""
    sizes = " ".join(f"{name}={size}" for name, size in subject.sizes.items())
    least = f"at least {size_text(subject.compulsory)}"
    useful = f"more than {size_text(subject.largest_useful_buffer)} saves nothing"
    facts = [sizes, _types(subject), f"{_count(subject.operations)} operations", least, useful]
    named = subject.text if subject.text.startswith(f"{subject.name}[") else f"{subject.name}: {subject.text}"
    notes = [f"  {note}" for note in subject.notes]
    return [f"{named}{times}", f"  {', '.join(fact for fact in facts if fact)}", *notes]


def cells(subject: Subject, ats: Sequence[At]) -> list[list[str]]:
    """Lines of the table without its head; the first line of a capacity names it."""
    lines: list[list[str]] = []
    before: At | None = None
    for row in rows_of(subject, ats):
        lines.append([_at(row.at) if row.at is not before else "", row.mapspace, *_numbers(row)])
        before = row.at
    return lines


def footer(subjects: Sequence[Subject], ats: Sequence[At]) -> list[str]:
    """The meaning of each mapspace, and the remark that bounds of several levels do not hold jointly."""
    by_name = meanings(subjects, ats)
    width = max(map(len, by_name))
    lines = [f"{name:<{width}}  {meaning}" for name, meaning in by_name.items()]
    return [*lines, f"levels: {NOT_JOINT}"] if any(at.level for at in ats) else lines


def _at(at: At) -> str:
    return f"{at.text} {size_text(at.capacity)}" if at.level else at.text


def _numbers(row: Row) -> list[str]:
    traffic = _NOTHING if row.traffic is None else size_text(row.traffic)
    gap = _NOTHING if row.gap is None else f"{row.gap:.2f}"
    if row.point is None:
        return [traffic, gap, "", row.because]
    return [traffic, gap, size_text(row.point.buffer_bytes), str(row.point.mapping)]


def _types(subject: Subject) -> str:
    """`f32`, or the bits of each tensor where they differ."""
    if len(set(subject.bits.values())) == 1:
        return f"{next(iter(subject.bits.values()))} bits"
    return " ".join(f"{tensor}:{bits}" for tensor, bits in subject.bits.items()) + " bits" if subject.bits else ""


def _count(number: int) -> str:
    prefix, power = next(((p, n) for p, n in _PREFIXES if number >= 10**n), ("", 0))
    return f"{number / 10**power:.1f} {prefix}" if power else f"{number}"


def size_text(size: int) -> str:
    """Bytes in the largest binary unit that leaves two digits before the point: `1600.0 MiB`, `515.0 KiB`."""
    unit, shift = next(((unit, shift) for unit, shift in _SIZES if size >= 10 << shift), ("bytes", 0))
    return f"{size / (1 << shift):.1f} {unit}" if shift else f"{size} bytes"
