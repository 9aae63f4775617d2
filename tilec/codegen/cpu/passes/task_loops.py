"""Which loops of a program become tasks: nests of spread loops that do not depend on each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilec.ir.expr import variables
from tilec.ir.lifetimes import reads, statements, writes
from tilec.ir.program import Allocate, Barrier, LoadTiles, Loop, Program, Statement, StoreTiles


@dataclass(frozen=True, slots=True)
class TaskLoops:
    """Spread loops, outermost first, whose iterations are the tasks, and the body of one."""

    loops: tuple[Loop, ...]
    body: tuple[Statement, ...]


def _nest(loop: Loop) -> TaskLoops:
    """The perfect nest of spread loops that starts with `loop`, whose extents do not depend on each other."""
    loops: list[Loop] = []
    body: tuple[Statement, ...] = (loop,)
    while len(body) == 1 and isinstance(body[0], Loop) and body[0].kind == "spread":
        if variables(body[0].extent) & {each.variable for each in loops}:
            break
        loops.append(body[0])
        body = body[0].body
    return TaskLoops(tuple(loops), body)


def _touched(statement: Statement, parameters: frozenset[str]) -> tuple[set[str], set[str]]:
    """Parameters that a statement and all inside it read and write."""
    inside = (statement, *statements(statement.body)) if isinstance(statement, Loop) else (statement,)
    read = {name for s in inside for name in reads(s)} & parameters
    written = {name for s in inside for name in writes(s)} & parameters
    return read, written


def _relays(nest: TaskLoops, parameter: str) -> bool:
    """Whether all that is loaded from a stored parameter is a partial result that goes back to the same window."""
    inside = tuple(statements(nest.body))
    windows = {s.buffer.name: (s.buffer.lo, s.buffer.hi) for s in inside if isinstance(s, Allocate)}
    loaded = {windows.get(s.target) for s in inside if isinstance(s, LoadTiles) and s.source == parameter}
    stored = {windows.get(s.source) for s in inside if isinstance(s, StoreTiles) and s.target == parameter}
    return len(loaded | stored) == 1 and None not in loaded


def _nests(program: Program) -> Iterator[TaskLoops | None]:
    """The nests that make up the program; None when something else stands between or a nest depends on another."""
    parameters = frozenset(p.name for p in program.parameters)
    earlier: list[tuple[set[str], set[str]]] = []
    for statement in program.body:
        if isinstance(statement, Barrier):
            continue
        if not isinstance(statement, Loop) or statement.kind != "spread":
            yield None
            return
        nest = _nest(statement)
        read, written = _touched(statement, parameters)
        if any(read & other[1] or written & (other[0] | other[1]) for other in earlier):
            yield None
        if any(not _relays(nest, name) for name in read & written):
            yield None
        earlier.append((read, written))
        yield nest


def task_loops(program: Program) -> tuple[TaskLoops, ...]:
    """The nests of a program; a single task without loops when they cannot run side by side."""
    nests = tuple(_nests(program))
    whole = TaskLoops((), program.body)
    return tuple(nest or whole for nest in nests) if None not in nests else (whole,)
