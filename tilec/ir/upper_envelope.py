"""Upper envelopes of sizes: the largest of several integer expressions, without those that others never fall below.

Footprints and offsets of buffers are sums of sizes and maxima of such sums, one in the other. Here they are one flat
maximum of sums: `max(a, b) + c` is `max(a + c, b + c)`. Operands that another one dominates at all sizes are left out,
so that an expression is as long as the number of sizes at which another operand becomes the largest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product

import numpy as np

from tilec.ir.algebra import bounds_of, polynomial, simplify
from tilec.ir.evaluate import integer
from tilec.ir.expr import Binary, Call, Const, Expr, Var, substitute, variables
from tilec.ir.polynomials import Polynomial

EXACT = 3
"""Sizes of each symbol, from 0 on, at which two expressions are compared exactly; from there on their quotients are
compared as fractions."""

PROBES = (0, 1, 7, 1 << 20)
"""Sizes at which most comparisons that do not hold fail."""

Symbols = tuple[str, ...]
Rational = Mapping[Symbols, Fraction]
"""A polynomial in symbols: {sorted symbols of a product: coefficient}."""


def largest(sizes: Iterable[Expr]) -> Expr:
    """The largest of sizes, at least 0."""
    kept: list[Expr] = [Const(0)]
    for size in sizes:
        for operand in operands_of(simplify(size)):
            if not any(at_most(operand, other) for other in kept):
                kept = [*(other for other in kept if not at_most(other, operand)), operand]
    return _maximum(sorted(kept, key=repr))


def _maximum(operands: Sequence[Expr]) -> Expr:
    first, *rest = operands
    return Call("maximum", (first, _maximum(rest))) if rest else first


def total(a: Expr, b: Expr) -> Expr:
    """The sum of two sizes, its maxima outside."""
    return largest(Binary("+", x, y) for x, y in product(operands_of(a), operands_of(b)))


def operands_of(expr: Expr) -> Iterator[Expr]:
    """Operands of nested maxima; of another expression itself."""
    match expr:
        case Call("maximum", ends):
            for end in ends:
                yield from operands_of(end)
        case _:
            yield expr


def at_most(a: Expr, b: Expr) -> bool:
    """Whether `a <= b` certainly holds for all sizes from 0 on."""
    return a == b or all(any(_below(x, y) for y in operands_of(b)) for x in operands_of(a))


@lru_cache(maxsize=1 << 16)
def _below(a: Expr, b: Expr) -> bool:
    if any(x > y for x, y in zip(_probed(a), _probed(b), strict=True)):
        return False
    difference = simplify(Binary("-", b, a))
    low = bounds_of(difference)[0]
    return low >= 0 if low is not None else _not_negative(difference, sorted(variables(difference)))


@lru_cache(maxsize=1 << 16)
def _probed(expr: Expr) -> tuple[int | float, ...]:
    """Values where all symbols have one size of `PROBES`; a quotient by a size of 0 is 0."""
    symbols = variables(expr)
    with np.errstate(divide="ignore", invalid="ignore"):
        return tuple(integer(expr, dict.fromkeys(symbols, size)) for size in PROBES)


def _not_negative(expr: Expr, symbols: Sequence[str]) -> bool:
    """Whether an expression is certainly not negative: each symbol is looked at for small sizes and for all others."""
    if not symbols or isinstance(expr, Const):
        least = _limit(polynomial(expr), -1)
        return least is not None and all(coefficient >= 0 for coefficient in least.values())
    first, *rest = symbols
    cases: list[Expr] = [Binary("+", Var(first), Const(EXACT)), *map(Const, range(EXACT))]
    return all(_not_negative(simplify(substitute(expr, {first: case})), rest) for case in cases)


def _limit(p: Polynomial, sign: int) -> Rational | None:
    """A polynomial in symbols alone that bounds one over atoms from above (`sign` 1) or below (-1)."""
    result: dict[Symbols, Fraction] = {}
    for term, coefficient in p.items():
        bound: Rational | None = {(): Fraction(coefficient)}
        for atom in term:
            bound = None if bound is None else _times(bound, atom, sign)
        if bound is None:
            return None
        for symbols, value in bound.items():
            result[symbols] = result.get(symbols, Fraction(0)) + value
    return result


def _times(p: Rational, atom: Expr, sign: int) -> Rational | None:
    """A bound of the product of a polynomial with an atom that is not negative."""
    result: dict[Symbols, Fraction] = {}
    for symbols, coefficient in p.items():
        limit = _atom_limit(atom, sign if coefficient > 0 else -sign)
        if limit is None:
            return None
        for others, value in limit.items():
            key = tuple(sorted((*symbols, *others)))
            result[key] = result.get(key, Fraction(0)) + coefficient * value
    return result


def _atom_limit(atom: Expr, sign: int) -> Rational | None:
    """A bound of a factor: of a symbol itself, of a quotient the fraction."""
    match atom:
        case Var(name):
            return {(name,): Fraction(1)}
        case Binary("//", left, Const(int() as divisor)) if divisor > 0:
            low, inside = bounds_of(left)[0], polynomial(left)
            limit = _limit(inside, sign) if low is not None and low >= 0 else None
            if limit is None:
                return None
            rounded = {**limit, (): limit.get((), Fraction(0)) - (divisor - 1 if sign < 0 else 0)}
            return {symbols: value / divisor for symbols, value in rounded.items()}
        case Binary("%", _, Const(int() as divisor)) if divisor > 0:
            return {(): Fraction(divisor - 1 if sign > 0 else 0)}
    return None
