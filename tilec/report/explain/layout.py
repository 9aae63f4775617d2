"""Layout of explanations: amounts, names, tables, candidates with the terms of their cost."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.analysis.explain.figures import Candidate
from tilec.report.formatting import fact_text, time_text

_NODES = 6
"""Number of nodes that are named before "and n more"."""

ROWS = 24
"""Number of rows of long lists that are printed; `--json` has all."""


def candidate_rows(candidates: Sequence[Candidate], heads: Sequence[str]) -> list[str]:
    """Candidates in rows, terms of their predictions in columns but for those that are nothing in all of them."""
    rows = [
        [
            "",
            "tile",
            "steps",
            "tasks",
            "compute",
            "stream",
            "copy",
            "wait",
            "task",
            "span",
            "lowest",
            "all",
            "held",
            "moved",
        ]
    ]
    for head, each in zip(heads, candidates, strict=True):
        of = each.prediction
        steps = " ".join(f"{node}:{fact_text(dict(sizes))}" for node, sizes in each.steps.items())
        steps += f", {each.copies} copies" if each.copies > 1 else ""
        times = (of.compute, of.stream, of.copy, of.wait, of.task, of.span, of.drawn, of.picoseconds)
        rows.append(
            [
                head,
                fact_text(dict(each.tile)) or "whole",
                steps or "-",
                f"{of.tasks:,}",
                *map(time_text, times),
                f"{of.held_bytes:,}" + ("" if each.fits else " (too much)"),
                f"{of.moved_bytes:,}",
            ]
        )
    nothing = time_text(0)
    told = [k for k, column in enumerate(zip(*rows[1:], strict=True)) if not {*column} <= {nothing, "-"}]
    numbers = [place for place, k in enumerate(told) if k >= 3]
    return table([[row[k] for k in told] for row in rows], right=numbers)


def amount(value: int, unit: str) -> str:
    """A time with its unit, or bytes."""
    return time_text(value) if unit == "picoseconds" else f"{value:,} bytes"


def some(names: Sequence[str], most: int = _NODES) -> str:
    """The first names, and the number of the others."""
    more = len(names) - most
    return " ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def and_more(count: int) -> list[str]:
    """A line with the number of rows left out, if any."""
    return [f"  and {count - ROWS} more, see --json"] if count > ROWS else []


def table(rows: Sequence[Sequence[str]], right: Sequence[int] | range = ()) -> list[str]:
    """Aligned columns, indented by two blanks."""
    if not rows:
        return []
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    padded = [
        [cell.rjust(width) if k in right else cell.ljust(width) for k, (cell, width) in enumerate(pairs)]
        for pairs in (list(zip(row, widths, strict=True)) for row in rows)
    ]
    return [f"  {'  '.join(row)}".rstrip() for row in padded]


def text_of_lines(lines: Sequence[str]) -> str:
    """Lines, each terminated by a newline."""
    return "\n".join(lines) + "\n"
