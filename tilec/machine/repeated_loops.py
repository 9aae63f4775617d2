"""Spread loops with identical effects in several units: one unit runs the loop, all of them are counted."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tilec.ir.expr import Expr, variables
from tilec.ir.lifetimes import reads, statements, writes
from tilec.ir.program import Allocate, ComputeTile, Loop, Statement, StoreTiles


def is_repeated(loop: Loop, private: Collection[str], shared: Collection[str]) -> bool:
    """Whether a loop has identical effects in units that differ in the variables `private` only: it uses none of these,
    no buffers from outside but the `shared` ones, and accumulates into nothing."""
    inside = tuple(statements((loop,)))
    known = {s.buffer.name for s in inside if isinstance(s, Allocate)} | set(shared)
    return not any(
        (isinstance(s, StoreTiles) and s.combine != "none")
        or not known.issuperset((*reads(s), *writes(s)))
        or any(not variables(expr).isdisjoint(private) for expr in _expressions(s))
        for s in inside
    )


def _expressions(statement: Statement) -> Iterator[Expr]:
    """All expressions of a single statement that may contain loop variables."""
    match statement:
        case Loop():
            yield statement.extent
        case Allocate(buffer):
            yield from (*buffer.lo, *buffer.hi)
        case StoreTiles(_, _, lo, hi):
            yield from (*lo, *hi)
        case ComputeTile(expr, box):
            yield expr.value
            yield from expr.extents
            yield from (end for _, *ends in box for end in ends)
