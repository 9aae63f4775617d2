"""Polynomials over atoms with integer coefficients: sums, products, parts, and the one expression of each."""

from __future__ import annotations

from functools import lru_cache
from math import gcd

from tilec.ir.expr import Binary, Const, Expr, Var

Monomial = tuple[Expr, ...]
Polynomial = dict[Monomial, int]


@lru_cache(maxsize=1 << 18)
def key_of(expr: Expr) -> tuple[int, str]:
    """The place of an atom among others: variables first."""
    return (0 if isinstance(expr, Var) else 1, repr(expr))


def add(a: Polynomial, b: Polynomial, scale: int = 1) -> Polynomial:
    """`a + scale * b`."""
    result = dict(a)
    for term, coefficient in b.items():
        total = result.get(term, 0) + scale * coefficient
        if total:
            result[term] = total
        else:
            result.pop(term, None)
    return result


def multiply(a: Polynomial, b: Polynomial) -> Polynomial:
    """Product."""
    result: Polynomial = {}
    for term_a, ca in a.items():
        for term_b, cb in b.items():
            term = tuple(sorted(term_a + term_b, key=key_of))
            result = add(result, {term: ca * cb})
    return result


def common_factors(p: Polynomial, scale: int) -> list[int]:
    """Divisors of `scale` that are common to it and to some coefficient, largest first."""
    return sorted({gcd(scale, coefficient) for coefficient in p.values()} - {1}, reverse=True)


def split(p: Polynomial, factor: int) -> tuple[Polynomial, Polynomial]:
    """(x, y) with p = factor*x + y, where y takes the terms that the factor does not divide."""
    coarse = {term: c // factor for term, c in p.items() if c % factor == 0}
    fine = {term: c for term, c in p.items() if c % factor}
    quotient, constant = divmod(fine.pop((), 0), factor)
    return add(coarse, {(): quotient} if quotient else {}), add(fine, {(): constant} if constant else {})


def quotient_term(term: Monomial, divisor: Monomial) -> Monomial | None:
    """A monomial without the atoms of another one; None where it lacks one."""
    remaining = list(term)
    for atom in divisor:
        if atom not in remaining:
            return None
        remaining.remove(atom)
    return tuple(remaining)


def expression_of(p: Polynomial) -> Expr:
    """The canonical expression of a polynomial: terms in a fixed order, positive first, constant last."""
    terms = sorted((t for t in p if t), key=lambda t: (p[t] < 0, tuple(key_of(a) for a in t)))
    result: Expr | None = None
    for term in terms:
        product = product_of(term)
        size = abs(p[term])
        if size != 1:
            product = Binary("*", product, Const(size))
        if result is None:
            result = product if p[term] > 0 else Binary("*", product_of(term), Const(p[term]))
        else:
            result = Binary("+" if p[term] > 0 else "-", result, product)
    constant = p.get((), 0)
    if result is None:
        return Const(constant)
    if constant:
        return Binary("+" if constant > 0 else "-", result, Const(abs(constant)))
    return result


def product_of(term: Monomial) -> Expr:
    """The product of a monomial's atoms."""
    product: Expr = term[0]
    for atom in term[1:]:
        product = Binary("*", product, atom)
    return product
