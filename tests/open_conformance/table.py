"""Results as tables in Markdown: one row an operator, and the cases that are not native or not right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.conformance.judge import Result
from tests.open_conformance.judge import LEFT_OUT

COLUMNS = ("native static", "native open", "fallback", "refused", "wrong", "crash", "CPU s")


def by_operator(results: Iterable[Result]) -> str:
    """One row an operator, and one of all."""
    rows = [each for each in results if each.status != LEFT_OUT]
    operators = sorted({each.operator for each in rows})
    lines = [_row(operator, [each for each in rows if each.operator == operator]) for operator in operators]
    return "\n".join([f"| operator | {' | '.join(COLUMNS)} |", "|---" * 8 + "|", *lines, _row("all", rows)])


def behind(results: Iterable[Result]) -> str:
    """One row for each case that falls back, with the reason, or is not right."""
    rows = [f"| {each.name} | {_how(each)} | {_cell(each.reason)} |" for each in results if _how(each) != "native"]
    return "\n".join(["| case | how | reason |", "|---|---|---|", *rows])


def is_right(result: Result) -> bool:
    """Whether a case is native and right, or none of those that should be."""
    return _how(result) == "native"


def _how(result: Result) -> str:
    """Which column counts a case."""
    match result.status:
        case "failed":
            return "wrong"
        case "crashed" | "timeout":
            return "crash"
        case "passed" | "imported":
            return "native" if result.native else "fallback"
        case "left out":
            return "native"
        case _:
            return result.status


def _row(name: str, rows: Sequence[Result]) -> str:
    how = [_how(each) for each in rows]
    counts = (len(rows), *(how.count(column) for column in ("native", "fallback", "refused", "wrong", "crash")))
    seconds = sum(each.seconds for each in rows)
    return f"| {name} | {' | '.join(map(str, counts))} | {seconds:.1f} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "/")
