"""Planned footprint: the most bytes that one instance of each level holds at a time (W08)."""

from __future__ import annotations

from collections.abc import Mapping

from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Call, Const, Expr
from tilec.ir.lifetimes import lifetimes
from tilec.ir.program import Allocate, Loop, Program, Statement
from tilec.ir.types import tensor_bytes


def footprint(program: Program) -> dict[str, Expr]:
    """Bytes by level, parameters left out, expressions in the program's symbols.

    A buffer counts, with its pipeline copies, from the first statement that uses it to the last one.
    """
    found = footprint_of(program.body)
    return {level.name: found.get(level.name, Const(0)) for level in program.levels}


def footprint_of(body: tuple[Statement, ...]) -> dict[str, Expr]:
    """The same for some statements of a program; levels that they do not use are left out."""
    own = {s.buffer.name: s.buffer for s in body if isinstance(s, Allocate)}
    sizes = {
        name: simplify(Binary("*", tensor_bytes(held.ttype, held.shape), Const(held.copies)))
        for name, held in own.items()
    }
    life = lifetimes(body)
    live: dict[str, Expr] = {}
    most: dict[str, Expr] = {}
    for statement, born, dying in zip(body, life.born, life.dying, strict=True):
        for name in born:
            live[own[name].level] = _plus(live, own[name].level, sizes[name])
        inner = footprint_of(statement.body) if isinstance(statement, Loop) else {}
        for level in live.keys() | inner.keys():
            now = _plus(live, level, inner.get(level, Const(0)))
            most[level] = simplify(Call("maximum", (most.get(level, Const(0)), now)))
        for name in dying:
            live[own[name].level] = simplify(Binary("-", live[own[name].level], sizes[name]))
    return most


def _plus(live: Mapping[str, Expr], level: str, size: Expr) -> Expr:
    return simplify(Binary("+", live.get(level, Const(0)), size))
