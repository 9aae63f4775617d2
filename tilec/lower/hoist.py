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
        after = _held(result, levels)
        full = [
            level
            for level in levels
            if level.name in allowed and level.managed == "explicit"
            if any(not _fits(after.get(name, Const(0)), capacity) for name, capacity in _limits(level).items())
        ]
        before = _held(body, levels) if full else {}
        grown = {level.name for level in full if any(before.get(name) != after.get(name) for name in _limits(level))}
        if not grown:
            return result
        allowed -= grown


def _held(body: tuple[Statement, ...], levels: tuple[PlanLevel, ...]) -> dict[str, Expr]:
    """Footprint of levels and of pools when the buffers of a body have places."""
    placed = with_places(body, levels)
    pools = {f"pool {name}": size for name, size in pools_of(placed, levels).items()}
    return footprint_of(placed, levels) | pools


def _limits(level: PlanLevel) -> dict[str, int | None]:
    """Capacities of a level and of its pool, by name as in `_held`."""
    pool = {} if level.pool is None else {f"pool {level.pool.name}": level.pool.capacity}
    return {level.name: level.capacity, **pool}


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
