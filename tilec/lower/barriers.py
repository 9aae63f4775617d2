"""Barrier insertion between units that share memory: a pass over a program with places (memory fences; Welder, 4.2).

A buffer is shared by the units of the first level above it that has several. They synchronise where one reads what
another wrote, writes what another still reads, or writes what another has initialised (read-after-write,
write-after-read, write-after-write), be it in the same buffer or in one whose place overlaps; memory private to a unit
needs no barrier.

An asynchronous load writes where its wait stands. What it overwrites was read in front of the barrier behind an earlier
wait, or in front of the loop, where the first ones begin.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tilec.ir.lifetimes import is_asynchronous, reads, statements, writes
from tilec.ir.plan import PlanLevel
from tilec.ir.program import Barrier, Buffer, Loop, Statement, Wait
from tilec.ir.scopes import scope_of
from tilec.ir.sharing import Sharing, sharing


def with_barriers(
    body: tuple[Statement, ...], parameters: Iterable[Buffer], levels: tuple[PlanLevel, ...]
) -> tuple[Statement, ...]:
    """The statements with a barrier in front of each one that conflicts with pending accesses of other units."""
    shared = sharing(body, parameters, levels)
    scopes = [scope_of(level) for level in levels]
    return _body(body, _Pending({}), shared, scopes)[0] if shared.partners else body


@dataclass(frozen=True, slots=True)
class _Pending:
    """Accesses since the last barrier, by scope: buffers read, and buffers written with the writing statements."""

    read: Mapping[str, frozenset[str]]
    written: Mapping[str, Mapping[str, frozenset[int]]] = field(default_factory=dict)

    def conflicts(self, statement: Statement, shared: Sharing) -> list[str]:
        """Scopes that have to synchronise before the statement."""
        waiting: dict[str, None] = {}
        for inner in _leaves(statement):
            for name in reads(inner):
                for scope in shared.scopes(name):
                    if not shared.partners[scope][name].isdisjoint(self.written.get(scope, ())):
                        waiting[scope] = None
            for name in writes(inner) if _begins(inner, statement) else ():
                for scope in shared.scopes(name):
                    partners, written = shared.partners[scope][name], self.written.get(scope, {})
                    others = any(written[b] - {id(inner)} for b in partners.intersection(written))
                    if others or not partners.isdisjoint(self.read.get(scope, ())):
                        waiting[scope] = None
        return list(waiting)

    def after(self, statement: Statement, shared: Sharing) -> _Pending:
        """The accesses including those of one more statement."""
        read, written = dict(self.read), dict(self.written)
        for name in reads(statement):
            for scope in shared.scopes(name):
                read[scope] = read.get(scope, frozenset()) | {name}
        for name in () if is_asynchronous(statement) else writes(statement):
            for scope in shared.scopes(name):
                before = written.get(scope, {})
                written[scope] = {**before, name: before.get(name, frozenset()) | {id(statement)}}
        return _Pending(read, written)

    def without(self, scopes: Iterable[str]) -> _Pending:
        """The accesses that remain after a barrier over `scopes`."""
        gone = set(scopes)
        read = {scope: names for scope, names in self.read.items() if scope not in gone}
        return _Pending(read, {scope: names for scope, names in self.written.items() if scope not in gone})

    def union(self, other: _Pending) -> _Pending:
        """The accesses of either."""
        read = {s: self.read.get(s, frozenset()) | other.read.get(s, frozenset()) for s in {**self.read, **other.read}}
        written = {s: dict(names) for s, names in self.written.items()}
        for scope, names in other.written.items():
            into = written.setdefault(scope, {})
            into |= {name: into.get(name, frozenset()) | by for name, by in names.items()}
        return _Pending(read, written)


def _begins(inner: Statement, statement: Statement) -> bool:
    """Whether writes of a statement inside of another one, or of itself, begin where that one stands."""
    return not isinstance(inner, Wait) and (inner is not statement or not is_asynchronous(inner))


def _leaves(statement: Statement) -> Iterable[Statement]:
    return statements(statement.body) if isinstance(statement, Loop) else (statement,)


def _body(
    body: Iterable[Statement], pending: _Pending, shared: Sharing, scopes: list[str]
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


def _loop(loop: Loop, shared: Sharing, scopes: list[str]) -> tuple[Loop, _Pending]:
    """A loop with barriers between its iterations where needed, and the accesses pending after it."""
    body, after = _body(loop.body, _Pending({}), shared, scopes)
    if loop.kind == "serial":
        body, after = _body(loop.body, after, shared, scopes)
    return replace(loop, body=body), after
