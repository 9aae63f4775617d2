"""Planned footprint: the most bytes that one instance of each level, or a pool, holds at a time (W08)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tilec.ir.algebra import simplify
from tilec.ir.concurrency import iterations_per_unit
from tilec.ir.expr import Binary, Call, Const, Expr
from tilec.ir.lifetimes import lifetimes
from tilec.ir.plan import PlanLevel
from tilec.ir.program import Allocate, Buffer, Loop, Program, Statement
from tilec.ir.types import tensor_bytes

Takes = Callable[[Buffer], tuple[str, Expr] | None]
"""What a buffer takes bytes of, and how many."""


def footprint(program: Program) -> dict[str, Expr]:
    """Bytes by level, parameters left out, expressions in the program's symbols.

    A buffer counts, with its pipeline copies, from the first statement that uses it to the last one, and as often as
    iterations that wait for each other share a unit.
    """
    found = footprint_of(program.body, program.levels)
    return {level.name: found.get(level.name, Const(0)) for level in program.levels}


def footprint_of(body: tuple[Statement, ...], levels: Sequence[PlanLevel]) -> dict[str, Expr]:
    """The same for the statements of a program; levels that they do not use are left out."""
    often = iterations_per_unit(body, levels)
    return _most(body, lambda held: (held.level, _bytes(held, often)))


def pools_of(body: tuple[Statement, ...], levels: Sequence[PlanLevel]) -> dict[str, Expr]:
    """Bytes that explicit levels with a common pool take of it together, by pool."""
    pools = {level.name: level.pool for level in levels if level.managed == "explicit"}
    often = iterations_per_unit(body, levels) if any(pools.values()) else {}

    def takes(held: Buffer) -> tuple[str, Expr] | None:
        pool = pools.get(held.level)
        if pool is None:
            return None
        rounded = Binary("+", _bytes(held, often), Const(pool.instances - 1))
        return pool.name, simplify(Binary("//", rounded, Const(pool.instances)))

    return _most(body, takes) if any(pools.values()) else {}


def _bytes(held: Buffer, often: Mapping[str, Expr]) -> Expr:
    size = Binary("*", tensor_bytes(held.ttype, held.shape), Const(held.copies))
    return simplify(Binary("*", size, often.get(held.name, Const(1))))


def _most(body: tuple[Statement, ...], takes: Takes) -> dict[str, Expr]:
    """The largest sums of what buffers take that are alive at a time."""
    taken = {s.buffer.name: takes(s.buffer) for s in body if isinstance(s, Allocate)}
    own = {name: what for name, what in taken.items() if what is not None}
    life = lifetimes(body)
    live: dict[str, Expr] = {}
    most: dict[str, Expr] = {}
    for statement, born, dying in zip(body, life.born, life.dying, strict=True):
        for name in filter(own.__contains__, born):
            live[own[name][0]] = _plus(live, *own[name])
        inner = _most(statement.body, takes) if isinstance(statement, Loop) else {}
        for key in live.keys() | inner.keys():
            now = _plus(live, key, inner.get(key, Const(0)))
            most[key] = simplify(Call("maximum", (most.get(key, Const(0)), now)))
        for name in filter(own.__contains__, dying):
            key, size = own[name]
            live[key] = simplify(Binary("-", live[key], size))
    return most


def _plus(live: Mapping[str, Expr], key: str, size: Expr) -> Expr:
    return simplify(Binary("+", live.get(key, Const(0)), size))
