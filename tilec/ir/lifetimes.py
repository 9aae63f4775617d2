"""Uses and lifetimes of buffers in a tile program.

A buffer lives from the first statement of its body that uses it to the last one: although `Allocate` reserves it for
the whole body, other buffers may occupy its space before and after (memory management; Welder, 4.2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilec.ir.program import Allocate, ComputeTile, Fill, LoadTiles, Loop, Statement, StoreTiles, Wait


def statements(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """Every statement, loops before their bodies."""
    for statement in body:
        yield statement
        if isinstance(statement, Loop):
            yield from statements(statement.body)


def reads(statement: Statement) -> tuple[str, ...]:
    """Names of the buffers whose contents a single statement reads."""
    match statement:
        case LoadTiles(_, source):
            return (source,)
        case StoreTiles(target, source, _, _, combine):
            return (source,) if combine == "none" else (source, target)
        case ComputeTile():
            accumulator = (statement.target,) if statement.accumulate else ()
            return tuple(dict.fromkeys((*(name for _, name in statement.operands), *accumulator)))
        case _:
            return ()


def writes(statement: Statement) -> tuple[str, ...]:
    """Names of the buffers that a single statement writes."""
    match statement:
        case Fill(name, _):
            return (name,)
        case LoadTiles() | StoreTiles() | ComputeTile():
            return (statement.target,)
        case Wait(buffers):
            return buffers
        case _:
            return ()


def is_asynchronous(statement: Statement) -> bool:
    """Whether a single statement is a load whose target is undefined until a wait."""
    return isinstance(statement, LoadTiles) and statement.stages > 1


def uses(statement: Statement) -> frozenset[str]:
    """Names of the buffers read or written by a statement and by the statements inside it."""
    body = statement.body if isinstance(statement, Loop) else ()
    return frozenset(name for s in (statement, *statements(body)) for name in (*reads(s), *writes(s)))


def carried(body: tuple[Statement, ...]) -> frozenset[str]:
    """Names of loop-carried buffers: the body of a loop reads them (possibly through a copy at a higher level) before
    it writes them by anything but a fill, and writes them afterwards."""
    return frozenset(name for s in statements(body) if isinstance(s, Loop) for name in _carried(s.body))


def _carried(body: tuple[Statement, ...]) -> set[str]:
    written: set[str] = set()
    early: set[str] = set()
    names: set[str] = set()
    copied: dict[str, str] = {}
    for statement in statements(body):
        if isinstance(statement, ComputeTile):
            for name in (name for _, name in statement.operands if name not in written):
                early.update((name, copied.get(name, name)))
        if isinstance(statement, LoadTiles) and statement.source not in written:
            copied[statement.target] = copied.get(statement.source, statement.source)
        elif not isinstance(statement, Fill):
            names.update(early.intersection(writes(statement)))
            written.update(writes(statement))
    return names


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """For every statement of a body, by position: the buffers of this body whose lifetime begins there (`born`) and
    ends there (`dying`)."""

    born: tuple[tuple[str, ...], ...]
    dying: tuple[tuple[str, ...], ...]


def lifetimes(body: tuple[Statement, ...]) -> Lifetimes:
    """Lifetimes of the buffers that `body` allocates; a buffer without a use has none. One with pipeline copies lives
    all the time: loads for later iterations are under way."""
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
                always = statement.buffer.copies > 1
                born[0 if always else first[name]].append(name)
                dying[-1 if always else last[name]].append(name)
    return Lifetimes(tuple(map(tuple, born)), tuple(map(tuple, dying)))


def spans(body: tuple[Statement, ...]) -> dict[str, tuple[int, int]]:
    """Buffer -> first and last position of its lifetime in the text of the program; a loop covers the positions of the
    statements inside. Buffers without a use are left out."""
    found: dict[str, tuple[int, int]] = {}
    _span(body, 0, found)
    return found


def _span(body: tuple[Statement, ...], start: int, found: dict[str, tuple[int, int]]) -> int:
    """Record the spans of the buffers of a body that begins at a position; returns the position behind it."""
    life, births = lifetimes(body), dict[str, int]()
    for statement, born, dying in zip(body, life.born, life.dying, strict=True):
        births |= dict.fromkeys(born, start)
        inside = _span(statement.body, start, found) if isinstance(statement, Loop) else start
        start = max(inside, start + 1)
        found |= {name: (births[name], start - 1) for name in dying}
    return start
