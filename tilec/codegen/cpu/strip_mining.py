"""A dimension cut into runs: loops over equal unrolled blocks, and the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from tilec.ir.algebra import polynomial, simplify
from tilec.ir.expr import Binary, Call, Const, Expr, constant_value, rebuild, walk
from tilec.ir.vector_pieces import vector_pieces

MOST_LIMITS = 6
"""Most minima and maxima of an extent each of whose operands is looked at for a common divisor."""


@dataclass(frozen=True, slots=True)
class Strip:
    """`trips` iterations from `start` that each cover `width` consecutive positions of a dimension; `usual` is about
    how many they are where only run time knows."""

    start: Expr
    trips: Expr
    width: int
    usual: int | None = None


def strip_mine(extent: Expr, width: int) -> tuple[Strip, ...]:
    """A dimension in steps of `width`, the rest in one more iteration (in single steps when it is dynamic)."""
    size = constant_value(extent)
    if size is None:
        # An empty window may have a negative extent.
        trips = simplify(Call("maximum", (Binary("//", extent, Const(width)), Const(0))))
        done = simplify(Binary("*", trips, Const(width)))
        rest = simplify(Binary("-", extent, done))
        main = Strip(Const(0), trips, width)
        return (main,) if rest == Const(0) else (main, Strip(done, rest, 1))
    width = max(1, min(width, size))
    count, left = divmod(size, width)
    whole = Strip(Const(0), Const(count), width)
    return (whole, Strip(Const(count * width), Const(1), left)) if left else (whole,)


def strip_mine_open(extent: Expr, width: int, lanes: int = 1, usual: int | None = None) -> tuple[Strip, ...]:
    """A dimension whose extent symbols or tasks decide, in steps of `width`, then of `lanes` where these divide the
    width, the rest in powers of two: each of them once, or not at all."""
    divisor = common_divisor(extent)
    # An empty window may have a negative extent.
    extent = simplify(Call("maximum", (extent, Const(0))))
    strips = [Strip(Const(0), _quotient(extent, width), width, None if usual is None else max(1, usual // width))]
    step, done = width, _times(_quotient(extent, width), width)
    if lanes < width and width % lanes == 0:
        count = _quotient(_remainder(extent, width), lanes)
        strips.append(Strip(done, count, lanes))
        step, done = lanes, _times(_quotient(extent, lanes), lanes)
    rest = _remainder(extent, step)
    part = 1 << (step - 1).bit_length()
    while part > 1:
        part //= 2
        if part < step and gcd(divisor, step) % (2 * part):
            begin = simplify(Binary("+", done, _times(_quotient(rest, 2 * part), 2 * part)))
            strips.append(Strip(begin, _remainder(_quotient(rest, part), 2), part))
    return tuple(strip for strip in strips if strip.trips != Const(0))


def _quotient(extent: Expr, divisor: int) -> Expr:
    return simplify(Binary("//", extent, Const(divisor)))


def _remainder(extent: Expr, divisor: int) -> Expr:
    return simplify(Binary("%", extent, Const(divisor)))


def _times(extent: Expr, factor: int) -> Expr:
    return simplify(Binary("*", extent, Const(factor)))


def even_width(size: int, most: int) -> int:
    """The width of equal blocks of at most `most`."""
    return -(-size // -(-size // max(1, most))) if size > 0 else 1


def known_multiple(extent: Expr, step: int, most: int) -> int:
    """The largest of `step`, 2 `step`, ... up to `most` times it that divides a dynamic extent for certain."""
    common = gcd(*polynomial(extent).values())
    return next((step * n for n in range(most, 1, -1) if common % (step * n) == 0), step)


def common_divisor(extent: Expr) -> int:
    """The largest number that divides an extent for certain, whichever of its limits hold; 0 of one that is always
    0."""
    limits = [e for e in walk(extent) if isinstance(e, Call) and e.fn in ("minimum", "maximum")]
    if len(limits) > MOST_LIMITS:
        return 1
    if not limits:
        return gcd(*polynomial(extent).values())
    return gcd(*(common_divisor(_replaced(extent, limits[0], arg)) for arg in limits[0].args))


def _replaced(expr: Expr, part: Expr, by: Expr) -> Expr:
    return by if expr == part else rebuild(expr, lambda e: _replaced(e, part, by))


def squares(extent: Expr, side: int) -> tuple[Strip, ...]:
    """A dimension in blocks of `side`, the rest in single steps."""
    first, *rest = strip_mine(extent, side)
    return (first, *(Strip(run.start, run.trips, 1) if run.trips != Const(1) else _singly(run) for run in rest))


def _singly(run: Strip) -> Strip:
    return Strip(run.start, Const(run.width), 1)


def neighbours(offsets: Sequence[int], most: int) -> tuple[tuple[int, int], ...]:
    """(first, count) of stretches of consecutive offsets, in powers of two up to `most`."""
    found: list[tuple[int, int]] = []
    first = 0
    for i in range(1, len(offsets) + 1):
        if i == len(offsets) or offsets[i] != offsets[i - 1] + 1:
            found += [(first + at, count) for at, count in vector_pieces(i - first, most)]
            first = i
    return tuple(found)
