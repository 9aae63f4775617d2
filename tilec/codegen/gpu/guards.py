"""Conditions of guards, in terms of as few loop variables as they can be said in.

Whether `8 * q + v` lies below `8 * n` does not depend on a `v` from 0 to 7.  A guard that does not name the variable
that counts neighbours holds for all of them or for none, so that they are moved at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tilec.codegen.gpu.index_facts import at_least, known_divisor
from tilec.ir.algebra import bounds_of, linear_form, simplify
from tilec.ir.expr import Binary, Const, Expr, variables
from tilec.ir.known_ranges import KnownRanges


def between(at: Expr, lo: Expr, hi: Expr, ranges: KnownRanges) -> list[Expr]:
    """The conditions for `lo <= at < hi`, without those that always hold."""
    return [*_unless_certain(lo, "<=", at, ranges), *_unless_certain(at, "<", hi, ranges)]


def below(at: Expr, hi: Expr, ranges: KnownRanges) -> Expr:
    """The condition for `at < hi`."""
    return _compared(simplify(Binary("-", hi, at), ranges), "<", ranges)


def depend(conditions: Iterable[Expr], variable: str) -> bool:
    """Whether any of the conditions names a variable."""
    return any(variable in variables(each) for each in conditions)


def _unless_certain(left: Expr, op: str, right: Expr, ranges: KnownRanges) -> list[Expr]:
    distance = simplify(Binary("-", right, left), ranges)
    return [] if at_least(distance, 1 if op == "<" else 0, ranges) else [_compared(distance, op, ranges)]


def _compared(distance: Expr, op: str, ranges: KnownRanges) -> Expr:
    """Whether a distance is above 0 ("<"), or at least 0 ("<="): what it takes away beside what it adds up."""
    terms, constant = linear_form(_coarse(distance, op, ranges), ranges)
    sides = [
        simplify(_sum({a: s * n for a, n in terms.items() if s * n > 0}, max(0, s * constant)), ranges) for s in (-1, 1)
    ]
    return Binary(op, *sides)


def _coarse(expr: Expr, op: str, ranges: KnownRanges) -> Expr:
    """An expression that is above 0 ("<"), or at least 0 ("<="), where another one is, without terms that only move it
    between two multiples of a common divisor of all other terms."""
    terms, constant = linear_form(expr, ranges)
    factors = {atom: abs(factor) * known_divisor(atom, ranges) for atom, factor in terms.items()}
    for divisor in sorted(set(factors.values()), reverse=True):
        large = {atom: factor for atom, factor in terms.items() if factors[atom] % divisor == 0}
        small = {atom: factor for atom, factor in terms.items() if atom not in large}
        if divisor == 1 or not small:
            continue
        low, high = bounds_of(_sum(small, constant), ranges)
        if low is None or high is None:
            continue
        least, most = (1 - divisor, 0) if op == "<" else (0, divisor - 1)
        shift = -((most - high) // divisor) * divisor
        if low - shift >= least:
            return simplify(_sum(large, shift), ranges)
    return expr


def _sum(terms: Mapping[Expr, int], constant: int) -> Expr:
    total: Expr = Const(constant)
    for atom, factor in terms.items():
        total = Binary("+", total, Binary("*", atom, Const(factor)))
    return total
