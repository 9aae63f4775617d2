"""Substitution of named positions by their definitions in the statements of a program."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tilec.ir.program import Allocate, Buffer, ComputeTile, Loop, Statement, StoreTiles
from tilec.lower.symbolic_bounds import SymbolicBounds


def inline_positions(sizes: SymbolicBounds, body: Iterable[Statement]) -> tuple[Statement, ...]:
    """The statements with every expression over loop variables and symbols only."""
    return tuple(_statement(sizes, statement) for statement in body)


def _statement(sizes: SymbolicBounds, statement: Statement) -> Statement:
    match statement:
        case Loop():
            return replace(
                statement, extent=sizes.resolve(statement.extent), body=inline_positions(sizes, statement.body)
            )
        case Allocate(buffer):
            return Allocate(_buffer(sizes, buffer))
        case ComputeTile():
            box = tuple((name, sizes.resolve(lo), sizes.resolve(hi)) for name, lo, hi in statement.box)
            return replace(statement, box=box)
        case StoreTiles(_, _, lo, hi):
            return replace(statement, lo=tuple(map(sizes.resolve, lo)), hi=tuple(map(sizes.resolve, hi)))
        case _:
            return statement


def _buffer(sizes: SymbolicBounds, buffer: Buffer) -> Buffer:
    return replace(buffer, lo=tuple(map(sizes.resolve, buffer.lo)), hi=tuple(map(sizes.resolve, buffer.hi)))
