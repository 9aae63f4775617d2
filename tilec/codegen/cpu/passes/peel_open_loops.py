"""Loops of open extents cut like `peel_loops` cuts them: full tiles first, what symbols leave over at the end.

The number of full iterations of `(n + 15) // 16` tiles is `n // 16`: all of them have constant sizes, and the rest,
one iteration or none, has a size that is less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tilec.codegen.cpu.simplify_ranges import at_least, extend_ranges, simplify_in_ranges
from tilec.ir.algebra import linear_form
from tilec.ir.expr import Binary, Call, Const, Expr, substitute, variables
from tilec.ir.known_ranges import Ranges
from tilec.ir.program import Allocate, ComputeTile, Loop, Statement

ZERO, ONE = Const(0), Const(1)


@dataclass(frozen=True, slots=True)
class OpenInterval:
    """Values `[first, end)` of a loop variable, none where `end` comes first; `value` is the only one there may be."""

    first: Expr
    end: Expr
    value: Expr | None = None

    @property
    def last(self) -> Expr:
        """The last value."""
        return Binary("-", self.end, ONE)


def peel_open_loop(loop: Loop, extent: Expr, ranges: Ranges, values: Mapping[str, Expr]) -> tuple[OpenInterval, ...]:
    """The intervals of a loop variable, in order, for each of which the body is printed once.

    One interval when the widths inside do not depend on the variable, or depend on it in every iteration.
    """
    everything = OpenInterval(ZERO, extent)
    if not _moves(loop, everything, ranges, values):
        return (everything,)
    for first, full in _middles(extent, ranges):
        middle = OpenInterval(first, full)
        if _moves(loop, middle, ranges, values):
            continue
        parts = [middle]
        if first == ONE:
            parts.insert(0, OpenInterval(ZERO, _in(Call("minimum", (ONE, extent)), ranges), ZERO))
        if full != extent:
            begin = full if at_least(full, first, ranges) else _in(Call("maximum", (full, first)), ranges)
            single = at_least(Binary("+", begin, ONE), extent, ranges)
            parts.append(OpenInterval(begin, extent, begin if single else None))
        return tuple(parts)
    return (everything,)


def _in(expr: Expr, ranges: Ranges) -> Expr:
    return simplify_in_ranges(expr, ranges)


def _middles(extent: Expr, ranges: Ranges) -> Iterator[tuple[Expr, Expr]]:
    """Ends of the iterations that may be full: without the last one where it is a rest, or in any case; without the
    first one."""
    ends = [*_whole_tiles(extent, ranges), _in(Binary("-", extent, ONE), ranges)]
    for first in (ZERO, ONE):
        if first == ONE:
            yield first, extent
        for end in ends:
            yield first, _in(Call("maximum", (end, ZERO)), ranges)


def _whole_tiles(extent: Expr, ranges: Ranges) -> Iterator[Expr]:
    """The extent with a quotient that is rounded up rounded down."""
    terms, _ = linear_form(extent, ranges)
    for atom, factor in terms.items():
        match atom:
            case Binary("//", left, Const(int() as size)) if factor == 1 and size > 1:
                whole = Binary("//", Binary("-", left, Const(size - 1)), atom.right)
                yield _in(Binary("+", Binary("-", extent, atom), whole), ranges)


def _moves(loop: Loop, interval: OpenInterval, ranges: Ranges, values: Mapping[str, Expr]) -> bool:
    """Whether a size inside of a loop depends on its variable within an interval."""
    ends = (interval.first, _in(interval.last, ranges))
    sizes = _sizes(loop.body, extend_ranges(ranges, {loop.variable: ends}), values)
    return any(loop.variable in variables(size) for size in sizes)


def _sizes(body: Sequence[Statement], ranges: Ranges, values: Mapping[str, Expr]) -> Iterator[Expr]:
    """Widths of windows and boxes and trip counts, each in the ranges of the loops around it."""

    def size(e: Expr) -> Expr:
        return _in(substitute(e, values) if values else e, ranges)

    for statement in body:
        match statement:
            case Allocate(buffer):
                yield from (size(Binary("-", hi, lo)) for lo, hi in zip(buffer.lo, buffer.hi, strict=True))
            case ComputeTile():
                yield from (size(Binary("-", hi, lo)) for _, lo, hi in statement.box)
            case Loop(variable, extent, inner):
                yield size(extent)
                last = size(Binary("-", extent, ONE))
                yield from _sizes(inner, extend_ranges(ranges, {variable: (ZERO, last)}), values)
            case _:
                pass
