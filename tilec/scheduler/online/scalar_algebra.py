"""Normal form of scalar expressions over the reals: sums of products of atoms, integer powers and one exponential.

Casts between floating-point types are transparent, for they only round. An atom is anything that is no sum, product,
quotient, exponential or `where`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isfinite

from tilec.ir.expr import Binary, Call, Const, Expr
from tilec.ir.types import TTYPES, is_float

MAX_TERMS = 256
"""Number of terms above which a product stays an atom instead of being expanded."""

_CLOSE = Fraction(1, 1 << 20)


@dataclass(frozen=True, slots=True)
class Term:
    """A product of atoms to `powers`, times exp of the sum `exponent`; neutral factors are left out."""

    powers: frozenset[tuple[Expr, int]] = frozenset()
    exponent: frozenset[tuple[Term, Fraction]] = frozenset()

    def times(self, other: Term, sign: int = 1) -> Term:
        """The product with another term, or the quotient for sign -1."""
        powers = dict(self.powers)
        for atom, power in other.powers:
            powers[atom] = powers.get(atom, 0) + sign * power
        exponent = added(dict(self.exponent), dict(other.exponent), Fraction(sign))
        return Term(frozenset((a, p) for a, p in powers.items() if p), frozenset(exponent.items()))


Terms = Mapping[Term, Fraction]
"""Map from product to coefficient."""

ONE = Term()


def added(a: Terms, b: Terms, scale: Fraction = Fraction(1)) -> dict[Term, Fraction]:
    """a + scale * b."""
    total = dict(a)
    for term, coefficient in b.items():
        total[term] = total.get(term, Fraction(0)) + scale * coefficient
        if not total[term]:
            del total[term]
    return total


def multiplied(a: Terms, b: Terms) -> dict[Term, Fraction]:
    """a * b."""
    total: dict[Term, Fraction] = {}
    for term, coefficient in a.items():
        total = added(total, {term.times(other): coefficient * factor for other, factor in b.items()})
    return total


def vanishes(terms: Terms, size: Terms) -> bool:
    """Whether a sum is 0 up to the rounding of the coefficients of `size`."""
    largest = max((abs(c) for c in size.values()), default=Fraction(0))
    return all(abs(c) <= largest * _CLOSE for c in terms.values())


@lru_cache(maxsize=4096)
def terms_of(expr: Expr) -> Terms:
    """The normal form of a scalar expression."""
    match expr:
        case Const(value) if not isinstance(value, bool) and isfinite(value):
            return {ONE: Fraction(value)} if value else {}
        case Binary("+" | "-" as op, left, right):
            return added(terms_of(left), terms_of(right), Fraction(1 if op == "+" else -1))
        case Call("neg", (operand,)):
            return added({}, terms_of(operand), Fraction(-1))
        case Call(fn, (operand,)) if fn in TTYPES and is_float(fn):
            return terms_of(operand)
        case Binary("*", left, right):
            return _product(expr, terms_of(left), terms_of(right))
        case Binary("/", left, right):
            return _product(expr, terms_of(left), _inverse(right))
        case Call("pow", (base, Const(2 | 2.0))):
            return _product(expr, terms_of(base), terms_of(base))
        case Call("exp", (operand,)):
            return {Term(exponent=frozenset(terms_of(operand).items())): Fraction(1)}
        case Call("where", (condition, yes, no)):
            first = _atom(Call("where", (condition, Const(1.0), Const(0.0))))
            second = _atom(Call("where", (condition, Const(0.0), Const(1.0))))
            return added(multiplied(first, terms_of(yes)), multiplied(second, terms_of(no)))
    return _atom(expr)


def _atom(expr: Expr, power: int = 1) -> Terms:
    return {Term(frozenset([(expr, power)])): Fraction(1)}


def _product(expr: Expr, a: Terms, b: Terms) -> Terms:
    return multiplied(a, b) if len(a) * len(b) <= MAX_TERMS else _atom(expr)


def _inverse(expr: Expr) -> Terms:
    terms = terms_of(expr)
    if len(terms) != 1:
        return _atom(expr, -1)
    ((term, coefficient),) = terms.items()
    return {ONE.times(term, -1): 1 / coefficient}


def replaced(terms: Terms, values: Callable[[Expr], Terms | None]) -> Terms:
    """A sum with every atom of power 1 that has a value replaced by it."""
    total: dict[Term, Fraction] = {}
    for term, coefficient in terms.items():
        product: Terms = {Term(exponent=term.exponent): coefficient}
        for atom, power in term.powers:
            value = values(atom) if power == 1 else None
            product = multiplied(product, _atom(atom, power) if value is None else value)
        total = added(total, product)
    return total


def positive(terms: Terms) -> bool:
    """Whether a sum is provably non-negative."""
    return all(c > 0 and all(p % 2 == 0 or _positive(atom) for atom, p in term.powers) for term, c in terms.items())


def _positive(atom: Expr) -> bool:
    match atom:
        case Call("abs" | "sqrt" | "sigmoid", _):
            return True
        case Call("where", (_, Const(yes), Const(no))):
            return yes >= 0 and no >= 0
    return False
