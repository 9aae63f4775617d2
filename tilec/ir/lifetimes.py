"""Who touches a buffer, and from which statement to which it is alive.

A buffer lives from the first statement of its body that uses it to the last one: what `Allocate` reserves for the
whole body may share its place with others (W08).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilec.ir.program import Allocate, ComputeTile, Fill, LoadTiles, Loop, Statement, StoreTiles


def statements(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """Every statement, loops before their bodies."""
    for statement in body:
        yield statement
        if isinstance(statement, Loop):
            yield from statements(statement.body)


def reads(statement: Statement) -> tuple[str, ...]:
    """Names of the buffers whose contents a single statement needs."""
    match statement:
        case LoadTiles(_, source):
            return (source,)
        case StoreTiles(target, source, _, _, combine):
            return (source,) if combine == "none" else (source, target)
        case ComputeTile():
            own = (statement.target,) if statement.accumulate else ()
            return tuple(dict.fromkeys((*(name for _, name in statement.operands), *own)))
        case _:
            return ()


def writes(statement: Statement) -> tuple[str, ...]:
    """Names of the buffers that a single statement changes."""
    match statement:
        case Fill(name, _):
            return (name,)
        case LoadTiles() | StoreTiles() | ComputeTile():
            return (statement.target,)
        case _:
            return ()


def uses(statement: Statement) -> frozenset[str]:
    """Names of the buffers read or written by a statement and everything inside it."""
    body = statement.body if isinstance(statement, Loop) else ()
    return frozenset(name for s in (statement, *statements(body)) for name in (*reads(s), *writes(s)))


def carried(body: tuple[Statement, ...]) -> frozenset[str]:
    """Names of the buffers whose values a loop carries on: in its body they are read, from a copy at a higher level
    maybe, before anything but a fill writes them, and written behind that."""
    return frozenset(name for s in statements(body) if isinstance(s, Loop) for name in _carried(s.body))


def _carried(body: tuple[Statement, ...]) -> set[str]:
    written: set[str] = set()
    early: set[str] = set()
    found: set[str] = set()
    copied: dict[str, str] = {}
    for statement in statements(body):
        if isinstance(statement, ComputeTile):
            for name in (name for _, name in statement.operands if name not in written):
                early.update((name, copied.get(name, name)))
        if isinstance(statement, LoadTiles) and statement.source not in written:
            copied[statement.target] = copied.get(statement.source, statement.source)
        elif not isinstance(statement, Fill):
            found.update(early.intersection(writes(statement)))
            written.update(writes(statement))
    return found


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """For every statement of a body, by position: the buffers of this body that are born before it and die after."""

    born: tuple[tuple[str, ...], ...]
    dying: tuple[tuple[str, ...], ...]


def lifetimes(body: tuple[Statement, ...]) -> Lifetimes:
    """When the buffers that `body` allocates are alive. One that nothing uses never is."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for position, statement in enumerate(body):
        for name in uses(statement):
            first.setdefault(name, position)
            last[name] = position
    born: list[list[str]] = [[] for _ in body]
    dying: list[list[str]] = [[] for _ in body]
    for statement in body:
        if isinstance(statement, Allocate):
            name = statement.buffer.name
            if name in first:
                born[first[name]].append(name)
                dying[last[name]].append(name)
    return Lifetimes(tuple(map(tuple, born)), tuple(map(tuple, dying)))
