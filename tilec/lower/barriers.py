"""Barrier insertion between units that share memory: a pass over a finished program (memory fences; Welder, 4.2).

A buffer is shared by the units of the first level above it that has several. They synchronise where one reads what
another wrote, writes what another still reads, or writes what another has initialised (read-after-write,
write-after-read, write-after-write); memory private to a unit needs no barrier.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tilec.ir.lifetimes import reads, statements, writes
from tilec.ir.plan import PlanLevel
from tilec.ir.program import Allocate, Barrier, Buffer, Loop, Statement
from tilec.ir.scopes import scope_of


def with_barriers(
    body: tuple[Statement, ...], parameters: Iterable[Buffer], levels: tuple[PlanLevel, ...]
) -> tuple[Statement, ...]:
    """The statements with a barrier in front of each one that conflicts with pending accesses of other units."""
    inner = (s.buffer for s in statements(body) if isinstance(s, Allocate))
    shared = {b.name: scope for b in (*parameters, *inner) if (scope := _sharing(b.level, levels)) is not None}
    scopes = [scope_of(level) for level in levels]
    return _body(body, _Pending({}), shared, scopes)[0] if shared else body


def _sharing(level: str, levels: tuple[PlanLevel, ...]) -> str | None:
    """The scope of the units that share an instance of a level; None if one unit uses it."""
    names = [described.name for described in levels]
    above = (described for described in levels[names.index(level) + 1 :] if described.units > 1)
    first = next(above, None)
    return None if first is None else scope_of(first)


@dataclass(frozen=True, slots=True)
class _Pending:
    """Accesses since the last barrier, by scope: buffers read, and buffers written with the writing statement."""

    read: Mapping[str, frozenset[str]]
    written: Mapping[str, frozenset[tuple[str, int]]] = field(default_factory=dict)

    def conflicts(self, statement: Statement, shared: Mapping[str, str]) -> list[str]:
        """Scopes that have to synchronise before the statement."""
        waiting: dict[str, None] = {}
        for inner in _leaves(statement):
            for name in reads(inner):
                if name in shared and any(name == b for b, _ in self.written.get(shared[name], ())):
                    waiting[shared[name]] = None
            for name in writes(inner):
                scope = shared.get(name)
                if scope is None:
                    continue
                others = any(name == b and writer != id(inner) for b, writer in self.written.get(scope, ()))
                if others or name in self.read.get(scope, ()):
                    waiting[scope] = None
        return list(waiting)

    def after(self, statement: Statement, shared: Mapping[str, str]) -> _Pending:
        """The accesses including those of one more statement."""
        read, written = dict(self.read), dict(self.written)
        for name in reads(statement):
            if name in shared:
                read[shared[name]] = read.get(shared[name], frozenset()) | {name}
        for name in writes(statement):
            if name in shared:
                written[shared[name]] = written.get(shared[name], frozenset()) | {(name, id(statement))}
        return _Pending(read, written)

    def without(self, scopes: Iterable[str]) -> _Pending:
        """The accesses that remain after a barrier over `scopes`."""
        gone = set(scopes)
        read = {scope: names for scope, names in self.read.items() if scope not in gone}
        return _Pending(read, {scope: names for scope, names in self.written.items() if scope not in gone})

    def union(self, other: _Pending) -> _Pending:
        """The accesses of either."""
        read = {s: self.read.get(s, frozenset()) | other.read.get(s, frozenset()) for s in {**self.read, **other.read}}
        scopes = {**self.written, **other.written}
        written = {s: self.written.get(s, frozenset()) | other.written.get(s, frozenset()) for s in scopes}
        return _Pending(read, written)


def _leaves(statement: Statement) -> Iterable[Statement]:
    return statements(statement.body) if isinstance(statement, Loop) else (statement,)


def _body(
    body: Iterable[Statement], pending: _Pending, shared: Mapping[str, str], scopes: list[str]
) -> tuple[tuple[Statement, ...], _Pending]:
    result: list[Statement] = []
    for statement in body:
        if isinstance(statement, Barrier):
            pending = pending.without(scopes[scopes.index(statement.scope) :])
        conflicts = pending.conflicts(statement, shared)
        if conflicts:
            # A barrier of a scope includes all units inside it, so the widest scope is enough.
            widest = min(conflicts, key=scopes.index)
            result.append(Barrier(widest))
            pending = pending.without(scopes[scopes.index(widest) :])
        if isinstance(statement, Loop):
            inner, after = _loop(statement, shared, scopes)
            result.append(inner)
            pending = pending.union(after)
        else:
            result.append(statement)
            pending = pending.after(statement, shared)
    return tuple(result), pending


def _loop(loop: Loop, shared: Mapping[str, str], scopes: list[str]) -> tuple[Loop, _Pending]:
    """A loop with barriers between its iterations where needed, and the accesses pending after it."""
    body, after = _body(loop.body, _Pending({}), shared, scopes)
    if loop.kind == "serial":
        body, after = _body(loop.body, after, shared, scopes)
    return replace(loop, body=body), after
