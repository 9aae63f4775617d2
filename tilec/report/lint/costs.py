"""Checks of the costs that a plan says against those that its decisions come to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilec.ir.algebra import equal
from tilec.ir.expr import Expr
from tilec.ir.plan import Cost, Plan
from tilec.report.formatting import time_text, value_text
from tilec.report.lint.finding import Finding, Place, pointer

_WORDS = {
    "read": "bytes read at",
    "written": "bytes written at",
    "footprint": "bytes held at",
    "transactions": "transactions at",
}
"""Table of a cost -> its numbers in words."""


def check_costs(stored: Plan, counted: Plan, file: str) -> Iterator[Finding]:
    """The groups whose stored costs are not the counted ones, and the traffic of unfused nodes."""
    for i, (old, new) in enumerate(zip(stored.groups, counted.groups, strict=True)):
        if differing := [*_differing(old.cost, new.cost)]:
            message = f"the decisions of group {old.name} come to {'; '.join(differing)}"
            yield Finding("stale-costs", Place(file, pointer=pointer("groups", i, "cost")), message)
    if differing := [*_of_levels(stored.unfused, counted.unfused, "bytes unfused at")]:
        message = f"the decisions of the plan come to {'; '.join(differing)}"
        yield Finding("stale-costs", Place(file, pointer=pointer("unfused")), message)


def _differing(stored: Cost, counted: Cost) -> Iterator[str]:
    """The numbers of two costs that are not equal."""
    if stored.picoseconds != counted.picoseconds:
        yield f"{time_text(counted.picoseconds)} predicted, not {time_text(stored.picoseconds)}"
    for table, words in _WORDS.items():
        yield from _of_levels(getattr(stored, table), getattr(counted, table), words)
    if not equal(stored.flops, counted.flops):
        yield f"{value_text(counted.flops)} operations, not {value_text(stored.flops)}"


def _of_levels(stored: Mapping[str, Expr], counted: Mapping[str, Expr], words: str) -> Iterator[str]:
    for level in dict.fromkeys((*counted, *stored)):
        before, after = stored.get(level), counted.get(level)
        if before is None or after is None or not equal(before, after):
            yield f"{value_text(after)} {words} {level}, not {value_text(before)}"
