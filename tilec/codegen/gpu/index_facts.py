"""What is known of integer expressions: bounds, divisors, whether data decide them."""

from __future__ import annotations

from math import gcd

from tilec.ir.algebra import bounds_of, linear_form
from tilec.ir.expr import Access, Call, Expr, walk
from tilec.ir.known_ranges import KnownRanges


def is_multiple(expr: Expr, number: int, ranges: KnownRanges) -> bool:
    """Whether an integer expression is known to be a multiple of a number."""
    return known_divisor(expr, ranges) % number == 0


def known_divisor(expr: Expr, ranges: KnownRanges) -> int:
    """The largest number known to divide an integer expression; 0 for what is 0."""
    terms, constant = linear_form(expr, ranges)
    return gcd(constant, *(factor * _atom_divisor(atom, ranges) for atom, factor in terms.items()))


def _atom_divisor(atom: Expr, ranges: KnownRanges) -> int:
    if isinstance(atom, Call) and atom.fn in ("minimum", "maximum"):
        return gcd(*(known_divisor(each, ranges) for each in atom.args))
    return 1


def at_least(expr: Expr, low: int, ranges: KnownRanges) -> bool:
    """Whether an integer expression is known to be at least `low`."""
    found = bounds_of(expr, ranges)[0]
    return found is not None and found >= low


def is_data_dependent(expr: Expr) -> bool:
    """Whether an index reads a tensor."""
    return any(isinstance(each, Access) for each in walk(expr))
