"""Random mistakes in tile programs: a statement lost, doubled or changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hypothesis import strategies as st

from tilec.ir.expr import Binary, Const
from tilec.ir.lifetimes import statements
from tilec.ir.program import Allocate, ComputeTile, Fill, LoadTiles, Loop, Program, Statement, StoreTiles

Change = Callable[[Statement], tuple[Statement, ...]]


def at(program: Program, position: int, change: Change) -> Program:
    """The statement at a position (loops before their bodies) replaced."""
    count = -1

    def visit(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        nonlocal count
        result: list[Statement] = []
        for statement in body:
            count += 1
            here = count
            new = replace(statement, body=visit(statement.body)) if isinstance(statement, Loop) else statement
            result += change(new) if here == position else (new,)
        return tuple(result)

    return replace(program, body=visit(program.body))


@st.composite
def mistakes(draw: Callable, program: Program) -> Program:
    """A program with one mistake somewhere (it may happen to change nothing that matters)."""
    position = draw(st.integers(0, sum(1 for _ in statements(program.body)) - 1))
    statement = list(statements(program.body))[position]

    def wider(end: tuple, by: int) -> tuple:
        dim = draw(st.integers(0, len(end) - 1))
        return (*end[:dim], Binary("+", end[dim], Const(by)), *end[dim + 1 :])

    names = [p.name for p in program.parameters]
    names += [s.buffer.name for s in statements(program.body) if isinstance(s, Allocate)]
    changes: list[Change] = [lambda _: ()]
    match statement:
        case Allocate(b):
            if b.lo:
                changes.append(lambda _: (Allocate(replace(b, hi=wider(b.hi, -1))),))
                changes.append(lambda _: (Allocate(replace(b, lo=wider(b.lo, 1))),))
                changes.append(lambda _: (Allocate(replace(b, lo=wider(b.lo, 1), hi=wider(b.hi, 1))),))
            levels = [level.name for level in program.levels]
            changes.append(lambda _: (Allocate(replace(b, level=draw(st.sampled_from(levels)))),))
            if b.offset is not None:
                changes.append(lambda _: (Allocate(replace(b, offset=Const(64 * draw(st.integers(0, 4))))),))
        case Loop():
            changes.append(lambda s: (replace(s, extent=Binary("+", statement.extent, Const(1))),))
            changes.append(lambda s: (replace(s, extent=Binary("-", statement.extent, Const(1))),))
            changes.append(lambda s: s.body)
        case LoadTiles():
            changes.append(lambda s: (replace(s, source=draw(st.sampled_from(names))),))
            changes.append(lambda s: (replace(s, fill=None),))
            changes.append(lambda s: (s, s))
        case ComputeTile():
            changes.append(lambda s: (s, s))
            changes.append(lambda s: (replace(s, accumulate=not statement.accumulate),))
            if statement.box:
                dim = draw(st.integers(0, len(statement.box) - 1))
                i, lo, hi = statement.box[dim]
                less, more = Binary("-", hi, Const(1)), Binary("+", hi, Const(1))
                for new in ((i, lo, less), (i, Binary("+", lo, Const(1)), hi), (i, lo, more)):
                    box = (*statement.box[:dim], new, *statement.box[dim + 1 :])
                    changes.append(lambda s, box=box: (replace(s, box=box),))
        case StoreTiles():
            changes.append(lambda s: (s, s))
            changes.append(lambda s: (replace(s, target=draw(st.sampled_from(names))),))
            changes.append(lambda s: (replace(s, lo=(), hi=()),))
        case Fill():
            changes.append(lambda s: (s, s))
    return at(program, position, draw(st.sampled_from(changes)))
