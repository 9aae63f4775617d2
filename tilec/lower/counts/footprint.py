"""Planned footprint of each level and pool (MemFootprint; Welder, 3.1).

Where buffers have places it is the end of the highest one, elsewhere the maximal number of bytes live at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from tilec.ir.address_spaces import Place, places
from tilec.ir.algebra import simplify
from tilec.ir.concurrency import iterations_per_unit
from tilec.ir.expr import Binary, Const, Expr
from tilec.ir.lifetimes import lifetimes, statements
from tilec.ir.plan import PlanLevel
from tilec.ir.program import Allocate, Buffer, Loop, Program, Statement
from tilec.ir.storage import stored_bytes
from tilec.ir.upper_envelope import largest, total

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
    """Footprint in bytes per level of the statements of a program; levels that they do not use are left out. A level
    that shares the address space of a pool counts its live bytes: they need not lie together."""
    often = iterations_per_unit(body, levels)
    placed = {name: place for name, place in _places(body, levels, often).items() if not place.space.pooled}
    ends = _ends(placed.values())
    return _most(body, lambda buffer: None if buffer.name in placed else (buffer.level, _bytes(buffer, often))) | ends


def pools_of(body: tuple[Statement, ...], levels: Sequence[PlanLevel]) -> dict[str, Expr]:
    """Footprint in bytes per pool: of all explicit levels that share it."""
    pools = {level.name: level.pool for level in levels if level.managed == "explicit"}
    if not any(pools.values()):
        return {}
    often = iterations_per_unit(body, levels)
    placed = {name: place for name, place in _places(body, levels, often).items() if place.space.pooled}

    def takes(buffer: Buffer) -> tuple[str, Expr] | None:
        pool = pools.get(buffer.level)
        if pool is None or buffer.name in placed:
            return None
        rounded = Binary("+", _bytes(buffer, often), Const(pool.instances - 1))
        return pool.name, simplify(Binary("//", rounded, Const(pool.instances)))

    return _most(body, takes) | _ends(placed.values())


def _places(body: tuple[Statement, ...], levels: Sequence[PlanLevel], often: Mapping[str, Expr]) -> dict[str, Place]:
    return places((s.buffer for s in statements(body) if isinstance(s, Allocate)), levels, often)


def _ends(placed: Iterable[Place]) -> dict[str, Expr]:
    """Level or pool -> end of the highest place."""
    ends: dict[str, list[Expr]] = {}
    for place in placed:
        ends.setdefault(place.space.name, []).append(place.end)
    return {name: largest(each) for name, each in ends.items()}


def _bytes(buffer: Buffer, often: Mapping[str, Expr]) -> Expr:
    size = Binary("*", stored_bytes(buffer), Const(buffer.copies))
    return simplify(Binary("*", size, often.get(buffer.name, Const(1))))


def _most(body: tuple[Statement, ...], takes: Takes) -> dict[str, Expr]:
    """Maximal sum over the buffers that are live at once."""
    taken = {s.buffer.name: takes(s.buffer) for s in body if isinstance(s, Allocate)}
    sizes = {name: what for name, what in taken.items() if what is not None}
    life = lifetimes(body)
    live: dict[str, Expr] = {}
    most: dict[str, dict[Expr, None]] = {}
    for statement, born, dying in zip(body, life.born, life.dying, strict=True):
        for name in filter(sizes.__contains__, born):
            live[sizes[name][0]] = _plus(live, *sizes[name])
        inner = _most(statement.body, takes) if isinstance(statement, Loop) else {}
        for key in live.keys() | inner.keys():
            now = total(live.get(key, Const(0)), inner.get(key, Const(0)))
            most.setdefault(key, {})[now] = None
        for name in filter(sizes.__contains__, dying):
            key, size = sizes[name]
            live[key] = simplify(Binary("-", live[key], size))
    return {key: largest(sums) for key, sums in most.items()}


def _plus(live: Mapping[str, Expr], key: str, size: Expr) -> Expr:
    return simplify(Binary("+", live.get(key, Const(0)), size))
