"""Verifier of tile programs, independent of the passes that emit them: an illegal program is refused, never run.

checks: names are bound once; statements stand on valid levels and units; types and ranks agree; every read lies in a
window that was filled; accumulators are initialised and every reduce point is added once; every output element is
stored, by one statement, after its sum is complete; buffers that live together have places apart; units that share
memory, by name or by place, synchronise; explicit levels have capacity for their places or live buffers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from tilec.ir.address_spaces import address_spaces
from tilec.ir.algebra import equal
from tilec.ir.concurrency import iterations_per_unit
from tilec.ir.evaluate import integer
from tilec.ir.expr import Const, Expr, as_expr
from tilec.ir.lifetimes import lifetimes
from tilec.ir.program import Allocate, Buffer, Loop, Program, Statement
from tilec.ir.storage import stored_bytes
from tilec.ir.verify.dataflow import Dataflow
from tilec.ir.verify.places import check_places
from tilec.ir.verify.races import Races
from tilec.ir.verify.structure import Structure

Shapes = Mapping[str, Sequence[int | Expr]]
_NO_SYMBOLS: Mapping[str, int] = MappingProxyType({})


def check_program(program: Program, shapes: Shapes, symbols: Mapping[str, int] = _NO_SYMBOLS) -> tuple[str, ...]:
    """Problems of a program, one sentence each; empty when it is legal. Never raises.

    `shapes` gives the shape of every tensor, `symbols` values of symbolic sizes: windows are followed only when every
    symbol of the program has one.
    """
    ranks = {tensor: len(shape) for tensor, shape in shapes.items()}
    problems = Structure(program, ranks).check()
    if problems:
        return tuple(problems)
    for parameter in program.parameters:
        shape = shapes.get(parameter.tensor, parameter.shape)
        if not all(equal(as_expr(a), b) for a, b in zip(shape, parameter.shape, strict=True)):
            problems.append(f"parameter {parameter.name}: its shape is not that of {parameter.tensor}")
    problems += check_places(program, symbols)
    problems += Races(program).check()
    if any(name not in symbols for name in program.symbols):
        return tuple(problems)
    with np.errstate(all="ignore"):
        problems += Dataflow(program, symbols).check()
        problems += _overflows(program, symbols)
    return tuple(problems)


def _overflows(program: Program, symbols: Mapping[str, int]) -> list[str]:
    """Explicit levels and pools whose live buffers exceed the capacity; where all buffers have places, `check_places`
    says so."""
    explicit = {level.name: level for level in program.levels if level.managed == "explicit"}
    limits = {f"level {name}": level.capacity for name, level in explicit.items() if level.capacity is not None}
    limits |= {f"pool {level.pool.name}": level.pool.capacity for level in explicit.values() if level.pool is not None}
    for space in address_spaces(program.levels).values():
        limits.pop(f"{'pool' if space.pooled else 'level'} {space.name}", None)
    often = iterations_per_unit(program.body, program.levels) if limits else {}
    live = dict.fromkeys(limits, 0)
    peak = dict(live)

    def taken(buffer: Buffer) -> list[tuple[str, int]]:
        level = explicit.get(buffer.level)
        if level is None:
            return []
        size = int(integer(stored_bytes(buffer), symbols)) * buffer.copies
        size *= int(integer(often.get(buffer.name, Const(1)), symbols))
        sizes = [(f"level {level.name}", size)]
        sizes += [] if level.pool is None else [(f"pool {level.pool.name}", level.pool.share(size))]
        return [(place, bytes_) for place, bytes_ in sizes if place in limits]

    def visit(body: tuple[Statement, ...]) -> None:
        sizes = {s.buffer.name: taken(s.buffer) for s in body if isinstance(s, Allocate)}
        life = lifetimes(body)
        for statement, born, dying in zip(body, life.born, life.dying, strict=True):
            for place, size in (each for name in born for each in sizes[name]):
                live[place] += size
                peak[place] = max(peak[place], live[place])
            if isinstance(statement, Loop):
                visit(statement.body)
            for place, size in (each for name in dying for each in sizes[name]):
                live[place] -= size

    if limits:
        visit(program.body)
    return [
        f"{place}: {peak[place]} bytes live at once, its capacity is {capacity}"
        for place, capacity in limits.items()
        if peak[place] > capacity
    ]
