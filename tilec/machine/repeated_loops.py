"""Spread loops that units around them repeat: where nothing in the body tells those units apart, one of them runs it
and all of them are counted."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tilec.ir.expr import Expr, variables
from tilec.ir.lifetimes import reads, statements, writes
from tilec.ir.program import Allocate, ComputeTile, Loop, Statement, StoreTiles


def is_repeated(loop: Loop, own: Collection[str], shared: Collection[str]) -> bool:
    """Whether a loop does the same for units that differ in the variables `own` only: it uses none of these, no buffers
    from outside but those that the units have in `shared`, and adds to nothing."""
    inside = tuple(statements((loop,)))
    known = {s.buffer.name for s in inside if isinstance(s, Allocate)} | set(shared)
    return not any(
        (isinstance(s, StoreTiles) and s.combine != "none")
        or not known.issuperset((*reads(s), *writes(s)))
        or any(not variables(expr).isdisjoint(own) for expr in _expressions(s))
        for s in inside
    )


def _expressions(statement: Statement) -> Iterator[Expr]:
    """Everything in a single statement that may name variables of loops."""
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
