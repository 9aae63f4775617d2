"""Extents: numbers where they are known, integer expressions over symbols where sizes are open."""

from __future__ import annotations

from collections.abc import Iterable

from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Call, Const, Expr, as_expr, constant_value

Extent = int | Expr
"""An int64 that is known at compile time, or computed from symbols at run time."""


def extent_of(expr: Expr) -> Extent:
    """A simplified expression, as a number where it is one."""
    number = constant_value(expr)
    return expr if number is None else number


def product(factors: Iterable[Extent]) -> Extent:
    """The product of extents; 1 for none."""
    total: Extent = 1
    for factor in factors:
        if isinstance(total, int) and isinstance(factor, int):
            total *= factor
        else:
            total = extent_of(simplify(Binary("*", as_expr(total), as_expr(factor))))
    return total


def total_of(terms: Iterable[Extent]) -> Extent:
    """The sum of extents; 0 for none."""
    total: Extent = 0
    for term in terms:
        if isinstance(total, int) and isinstance(term, int):
            total += term
        else:
            total = extent_of(simplify(Binary("+", as_expr(total), as_expr(term))))
    return total


def at_least_one(extent: Extent) -> Extent:
    """An extent that is never 0 nor less."""
    return max(1, extent) if isinstance(extent, int) else extent_of(Call("maximum", (extent, Const(1))))


def rounded_up(extent: Extent, multiple: int) -> Extent:
    """The next multiple from an extent on."""
    if isinstance(extent, int):
        return -(-extent // multiple) * multiple
    above = Binary("+", extent, Const(multiple - 1))
    return extent_of(simplify(Binary("*", Binary("//", above, Const(multiple)), Const(multiple))))


def equal_extents(a: Extent, b: Extent) -> bool:
    """Whether two extents are the same for all sizes."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    return simplify(Binary("-", as_expr(a), as_expr(b))) == Const(0)
