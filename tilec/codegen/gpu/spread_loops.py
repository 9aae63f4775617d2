"""Spread loops: nests of them, the iteration that a unit takes, and the variables that statements depend on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tilec.codegen.gpu.index_text import index_text
from tilec.codegen.gpu.kernel_state import KernelState, with_ranges
from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Call, Const, Expr, Var, variables
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.program import Allocate, ComputeTile, Loop, Statement, StoreTiles


def spread_nest(loop: Loop) -> tuple[list[Loop], tuple[Statement, ...]]:
    """Spread loops with nothing between them, and the body of the last."""
    nest = [loop]
    while len(nest[-1].body) == 1 and isinstance(nest[-1].body[0], Loop) and nest[-1].body[0].kind == "spread":
        nest.append(nest[-1].body[0])
    return nest, nest[-1].body


def spread_nests(body: Iterable[Statement]) -> Iterator[list[Loop]]:
    """The nests of spread loops in a body and in one another."""
    for statement in body:
        if isinstance(statement, Loop) and statement.kind == "spread":
            nest, inside = spread_nest(statement)
            yield nest
            yield from spread_nests(inside)
        elif isinstance(statement, Loop):
            yield from spread_nests(statement.body)


def iterations(extents: Iterable[Expr]) -> Expr:
    """The product of extents."""
    total: Expr = Const(1)
    for extent in extents:
        total = simplify(Binary("*", total, extent))
    return total


def numbered(state: KernelState, nest: Sequence[Loop], number: Expr, total: Expr, ranges: KnownRanges) -> list[str]:
    """The iterators of nested loops from the number of an iteration, the last the fastest; a stripe of the outermost
    comes before the next iteration of the others."""
    ranges = with_ranges(ranges, {v.name: total for v in (number,) if isinstance(v, Var) and v.name == "#block"})
    values: list[tuple[str, Expr]] = []
    if nest and nest[0].stripe > 1 and len(nest) > 1:
        first, rest = nest[0], nest[1:]
        inside = iterations(loop.extent for loop in rest)
        whole = Binary("*", inside, Const(first.stripe))
        begin = Binary("*", Binary("//", number, whole), Const(first.stripe))
        left = Binary("-", first.extent, begin)
        count = Call("minimum", (Const(first.stripe), left))
        within = Binary("%", number, whole)
        values.append((first.variable, Binary("+", begin, Binary("%", within, count))))
        number, nest = Binary("//", within, count), rest
    step: Expr = Const(1)
    tail: list[tuple[str, Expr]] = []
    for place, loop in enumerate(reversed(nest)):
        at = Binary("//", number, step)
        outermost = place == len(nest) - 1
        tail.append((loop.variable, at if outermost else Binary("%", at, loop.extent)))
        step = simplify(Binary("*", step, loop.extent))
    return [
        f"const int {state.names[name]} = {index_text(simplify(value, ranges), state.names, ranges)};"
        for name, value in (*values, *reversed(tail))
    ]


def free_variables(body: Iterable[Statement]) -> frozenset[str]:
    """The variables that statements and their buffers depend on, but not their own loops'."""
    found: set[str] = set()
    for statement in body:
        match statement:
            case Allocate(buffer):
                found |= _mentioned((*buffer.lo, *buffer.hi, *buffer.shape))
            case StoreTiles(_, _, lo, hi):
                found |= _mentioned((*lo, *hi))
            case ComputeTile(expr, box):
                found |= _mentioned([end for _, lo, hi in box for end in (lo, hi)])
                found |= _mentioned((expr.body,)) - set(expr.iterators)
            case Loop(variable, extent, inside):
                found |= _mentioned((extent,)) | (free_variables(inside) - {variable})
    return frozenset(found)


def _mentioned(exprs: Iterable[Expr]) -> set[str]:
    return {name for each in exprs for name in variables(each)}
