"""Results as tables: by family, by operator, by reason."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from tests.conformance.cases import FAMILIES
from tests.conformance.judge import Result

COLUMNS = ("cases", "passed", "native", "failed", "refused", "crashed", "timeout")


def by_family(results: Iterable[Result], peer: Mapping[str, Result] | None = None) -> str:
    """One row a family; node cases that stand for an operator, and those of functions' bodies, apart.

    With a peer's results, also how many cases that one passes, and how many of these are native here.
    """
    rows = list(results)

    def family(result: Result) -> str:
        return result.family + (", expanded" if result.expanded else "")

    order = [name for family in FAMILIES for name in (family, f"{family}, expanded")]
    lines = _table("family", rows, family, lambda name: (order.index(name), ""))
    lines.append(_row("all", rows))
    if peer is not None:
        known = {name for name, result in peer.items() if result.status == "passed"}
        groups = [[row for row in rows if family(row) == name] for name in order]
        passed = [[row for row in group if row.name in known] for group in groups if group]
        passed.append([row for row in rows if row.name in known])
        added = ["peer | native of these |", "---|---|", *(f"{len(p)} | {sum(r.native for r in p)} |" for p in passed)]
        lines = [f"{line} {more}".replace("| ---", "|---") for line, more in zip(lines, added, strict=True)]
    return "\n".join(lines)


def by_operator(results: Iterable[Result]) -> str:
    """One row for each operator of which a node case does not pass or is not native."""
    rows = [r for r in results if r.family == "node" and not r.expanded]
    behind = {r.operator for r in rows if not (r.status == "passed" and r.native)}
    behind_rows = [r for r in rows if r.operator in behind]
    return "\n".join(_table("operator", behind_rows, lambda r: r.operator, lambda name: (0, name)))


def by_reason(results: Iterable[Result]) -> str:
    """How many cases do not pass, or are not native, for each reason, most frequent first."""
    counts: Counter[tuple[str, str]] = Counter()
    for result in results:
        if result.status != "passed" or not result.native:
            status = result.status if result.status != "passed" else "fallback"
            counts.update({(status, _general(part)) for part in result.reason.split("; ")})
    lines = [f"| {status} | {count} | {reason} |" for (status, reason), count in counts.most_common()]
    return "\n".join(["| how | cases | reason |", "|---|---|---|", *lines])


def _general(reason: str) -> str:
    """A reason without its numbers and names."""
    for pattern, text in ((r"-?\d[\d.e+-]*", "N"), (r"'[^']*'", "'...'"), (r"\s+", " "), (r"\|", "/")):
        reason = re.sub(pattern, text, reason)
    return reason[:110]


def _table(
    head: str, rows: Sequence[Result], key: Callable[[Result], str], order: Callable[[str], tuple[int, str]]
) -> list[str]:
    names = sorted({key(row) for row in rows}, key=order)
    lines = [_row(name, [row for row in rows if key(row) == name]) for name in names]
    return [f"| {head} | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 1) + "|", *lines]


def _row(name: str, rows: Sequence[Result]) -> str:
    status = Counter(row.status for row in rows)
    counts = {**status, "cases": len(rows), "native": sum(row.native for row in rows)}
    return f"| {name} | {' | '.join(str(counts.get(column, 0)) for column in COLUMNS)} |"
