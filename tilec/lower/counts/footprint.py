"""Planned footprint: maximal bytes live at once in an instance of each level, or in a pool (MemFootprint; Welder,
3.1)."""

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
"""Buffer -> (level or pool, bytes of it that the buffer occupies), None if it occupies none."""


def footprint(program: Program) -> dict[str, Expr]:
    """Footprint in bytes per level without parameters, expressions in the program's symbols.

    A buffer counts, with its pipeline copies, from the first statement that uses it to the last one, once for each
    concurrent iteration of a unit.
    """
    sizes = footprint_of(program.body, program.levels)
    return {level.name: sizes.get(level.name, Const(0)) for level in program.levels}


def footprint_of(body: tuple[Statement, ...], levels: Sequence[PlanLevel]) -> dict[str, Expr]:
    """Footprint in bytes per level of the statements of a program; levels that they do not use are left out."""
    often = iterations_per_unit(body, levels)
    return _most(body, lambda buffer: (buffer.level, _bytes(buffer, often)))


def pools_of(body: tuple[Statement, ...], levels: Sequence[PlanLevel]) -> dict[str, Expr]:
    """Footprint in bytes per pool: the sum over the explicit levels that share it."""
    pools = {level.name: level.pool for level in levels if level.managed == "explicit"}
    often = iterations_per_unit(body, levels) if any(pools.values()) else {}

    def takes(buffer: Buffer) -> tuple[str, Expr] | None:
        pool = pools.get(buffer.level)
        if pool is None:
            return None
        rounded = Binary("+", _bytes(buffer, often), Const(pool.instances - 1))
        return pool.name, simplify(Binary("//", rounded, Const(pool.instances)))

    return _most(body, takes) if any(pools.values()) else {}


def _bytes(buffer: Buffer, often: Mapping[str, Expr]) -> Expr:
    size = Binary("*", tensor_bytes(buffer.ttype, buffer.shape), Const(buffer.copies))
    return simplify(Binary("*", size, often.get(buffer.name, Const(1))))


def _most(body: tuple[Statement, ...], takes: Takes) -> dict[str, Expr]:
    """Maximal sum over the buffers that are live at once."""
    taken = {s.buffer.name: takes(s.buffer) for s in body if isinstance(s, Allocate)}
    sizes = {name: what for name, what in taken.items() if what is not None}
    life = lifetimes(body)
    live: dict[str, Expr] = {}
    most: dict[str, Expr] = {}
    for statement, born, dying in zip(body, life.born, life.dying, strict=True):
        for name in filter(sizes.__contains__, born):
            live[sizes[name][0]] = _plus(live, *sizes[name])
        inner = _most(statement.body, takes) if isinstance(statement, Loop) else {}
        for key in live.keys() | inner.keys():
            now = _plus(live, key, inner.get(key, Const(0)))
            most[key] = simplify(Call("maximum", (most.get(key, Const(0)), now)))
        for name in filter(sizes.__contains__, dying):
            key, size = sizes[name]
            live[key] = simplify(Binary("-", live[key], size))
    return most


def _plus(live: Mapping[str, Expr], key: str, size: Expr) -> Expr:
    return simplify(Binary("+", live.get(key, Const(0)), size))
