"""Loop-invariant code motion of loads: out of serial loops, never out of spread ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from tilec.ir.expr import Const, Expr, variables
from tilec.ir.lifetimes import statements, writes
from tilec.ir.plan import PlanLevel
from tilec.ir.program import Allocate, LoadTiles, Loop, Statement
from tilec.lower.counts.footprint import footprint_of, pools_of
from tilec.lower.places import with_places


def hoisted(body: tuple[Statement, ...], levels: Iterable[PlanLevel]) -> tuple[Statement, ...]:
    """The statements with invariant loads in front of serial loops, at every level that has capacity for it.

    A buffer in front of a loop lives longer: where an explicit level, or its pool, would exceed its capacity, its loads
    stay in place.
    """
    levels = tuple(levels)
    allowed = {level.name for level in levels}
    while True:
        result = _body(body, allowed)
        before, placed = footprint_of(with_places(body, levels), levels), with_places(result, levels)
        after, pools = footprint_of(placed, levels), pools_of(placed, levels)
        full = {
            level.name
            for level in levels
            if level.name in allowed and level.managed == "explicit"
            if before.get(level.name) != after.get(level.name)
            if not _fits(after.get(level.name, Const(0)), level.capacity)
            or (level.pool is not None and not _fits(pools[level.pool.name], level.pool.capacity))
        }
        if not full:
            return result
        allowed -= full


def _fits(size: Expr, capacity: int | None) -> bool:
    return capacity is None or (isinstance(size, Const) and size.value <= capacity)


def _body(body: Iterable[Statement], allowed: Collection[str]) -> tuple[Statement, ...]:
    result: list[Statement] = []
    for statement in body:
        if not isinstance(statement, Loop):
            result.append(statement)
            continue
        inner = _body(statement.body, allowed)
        moved = _invariant(statement, inner, allowed) if statement.kind == "serial" else set()
        front = [s for s in inner if _names(s) & moved]
        result += front
        result.append(replace(statement, body=tuple(s for s in inner if not _names(s) & moved)))
    return tuple(result)


def _names(statement: Statement) -> set[str]:
    match statement:
        case Allocate(buffer):
            return {buffer.name}
        case LoadTiles(target, _):
            return {target}
        case _:
            return set()


def _invariant(loop: Loop, body: tuple[Statement, ...], allowed: Collection[str]) -> set[str]:
    """Buffers of a loop's body with the same contents in every iteration: loaded once, from outside, never changed."""
    allocated = {s.buffer.name: s.buffer for s in body if isinstance(s, Allocate)}
    written: dict[str, int] = {}
    for statement in statements(body):
        for name in writes(statement):
            written[name] = written.get(name, 0) + 1
    invariant: set[str] = set()
    for statement in body:
        if not isinstance(statement, LoadTiles) or statement.target not in allocated:
            continue
        buffer = allocated[statement.target]
        moves = any(loop.variable in variables(end) for end in (*buffer.lo, *buffer.hi))
        inside = statement.source not in invariant and (statement.source in written or statement.source in allocated)
        if not moves and not inside and written[buffer.name] == 1 and buffer.level in allowed:
            invariant.add(buffer.name)
    return invariant
