"""Loops cut so that windows and loops inside have constant sizes: clipped tiles become code of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tilec.codegen.cpu.simplify_ranges import extend_ranges, simplify_in_ranges
from tilec.ir.expr import Binary, Const, Expr, substitute, variables
from tilec.ir.known_ranges import Ranges
from tilec.ir.program import Allocate, ComputeTile, Loop, Statement


@dataclass(frozen=True, slots=True)
class Interval:
    """Values of a loop variable, both ends inclusive."""

    first: int
    last: int


def widths(body: Sequence[Statement], ranges: Ranges) -> Iterator[tuple[Expr, Ranges]]:
    """Sizes in a loop body: widths of windows and boxes and trip counts, with the ranges of the loops around them."""
    for statement in body:
        match statement:
            case Allocate(buffer):
                for lo, hi in zip(buffer.lo, buffer.hi, strict=True):
                    yield Binary("-", hi, lo), ranges
            case ComputeTile():
                for _, lo, hi in statement.box:
                    yield Binary("-", hi, lo), ranges
            case Loop(variable, extent, inner):
                yield extent, ranges
                last = simplify_in_ranges(Binary("-", extent, Const(1)), ranges)
                yield from widths(inner, extend_ranges(ranges, {variable: (Const(0), last)}))
            case _:
                pass


def _moves(width: Expr, ranges: Ranges, variable: str, interval: Interval) -> bool:
    """Whether a size depends on a variable within an interval."""
    ends = (Const(interval.first), Const(interval.last))
    return variable in variables(simplify_in_ranges(width, extend_ranges(ranges, {variable: ends})))


def peel_loops(loop: Loop, extent: int, ranges: Ranges, values: Mapping[str, Expr]) -> tuple[Interval, ...]:
    """The intervals of a loop variable, in order, for each of which the body is printed once.

    One interval when the widths inside do not depend on the variable, or depend on it in every iteration.
    """
    everything = Interval(0, extent - 1)
    if extent < 2:
        return (everything,) if extent else ()
    moving = []
    for width, inside in widths(loop.body, ranges):
        e = simplify_in_ranges(substitute(width, values) if values else width, inside)
        if _moves(e, inside, loop.variable, everything):
            moving.append((e, inside))
    if not moving:
        return (everything,)
    for first, last in ((0, 1), (1, 0), (1, 1)):
        middle = Interval(first, extent - 1 - last)
        if middle.first > middle.last:
            continue
        # A variable that takes one value only is replaced by it.
        if middle.first == middle.last or not any(_moves(e, r, loop.variable, middle) for e, r in moving):
            ends = [Interval(i, i) for i in range(first)]
            rest = [Interval(extent - last + i, extent - last + i) for i in range(last)]
            return (*ends, middle, *rest)
    return (everything,)
