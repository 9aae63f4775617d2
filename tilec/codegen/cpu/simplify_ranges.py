"""Integer expressions in the ranges of their variables: conditions that the ranges decide are folded away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilec.ir.algebra import bounds_of, linear_form, simplify, simplify_scalar
from tilec.ir.expr import Binary, Call, Const, Expr, Var, substitute, variables, walk
from tilec.ir.known_ranges import KnownRanges, Ranges, shared_ranges

MODULUS = 8
"""Largest number whose remainders are tried one by one."""


def extend_ranges(ranges: Ranges, more: Mapping[str, tuple[Expr, Expr]]) -> KnownRanges:
    """Ranges of more variables."""
    return shared_ranges({**ranges, **more})


def simplify_in_ranges(expr: Expr, ranges: Ranges) -> Expr:
    """The canonical form of an integer expression; `where` whose condition is decided becomes one of its branches."""
    if any(isinstance(part, Call) and part.fn == "where" for part in walk(expr)):
        expr = simplify_scalar(expr, ranges)
    return _by_residue(simplify(expr, ranges), ranges)


def _by_residue(expr: Expr, ranges: Ranges) -> Expr:
    """A maximum or minimum over the remainder of a variable, as of windows of half of what is read together: what every
    remainder comes to, if that is the same of all."""
    if not any(isinstance(part, Call) and part.fn in ("maximum", "minimum") for part in walk(expr)):
        return expr
    for name, modulus in dict.fromkeys(_remainders(expr)):
        low, high = ranges.get(name, (None, None))
        if low is None or high is None:
            continue
        quotient = f"{name}//"
        inside = extend_ranges(ranges, {quotient: (_divided(low, modulus), _divided(high, modulus))})
        found: Expr | None = None
        for rest in range(modulus):
            value = Binary("+", Binary("*", Var(quotient), Const(modulus)), Const(rest))
            each = simplify(substitute(expr, {name: value}), inside)
            if name in variables(each) or (found is not None and each != found):
                break
            found = each
        else:
            if found is not None:
                return simplify(substitute(found, {quotient: Binary("//", Var(name), Const(modulus))}), ranges)
    return expr


def _remainders(expr: Expr) -> Iterator[tuple[str, int]]:
    """Variables with the small numbers that they are divided by for a remainder."""
    for part in walk(expr):
        match part:
            case Binary("%", Var(name), Const(int() as modulus)) if 1 < modulus <= MODULUS:
                yield name, modulus


def _divided(end: Expr, modulus: int) -> Expr:
    return simplify(Binary("//", end, Const(modulus)))


def at_least(a: Expr, b: Expr, ranges: Ranges) -> bool:
    """Whether a >= b for all values of the variables; false when that cannot be shown."""
    return _never_negative(simplify_in_ranges(Binary("-", a, b), ranges), ranges)


def _never_negative(expr: Expr, ranges: Ranges) -> bool:
    """Of a sum with a maximum or minimum what holds with each of its arguments, or with any, in its place."""
    low = bounds_of(expr, ranges)[0]
    if low is not None and low >= 0:
        return True
    terms, _ = linear_form(expr, ranges)
    for atom, factor in terms.items():
        if isinstance(atom, Call) and atom.fn in ("maximum", "minimum"):
            rest = Binary("-", expr, Binary("*", Const(factor), atom))
            chosen = (
                simplify_in_ranges(Binary("+", rest, Binary("*", Const(factor), arg)), ranges) for arg in atom.args
            )
            holds = (_never_negative(each, ranges) for each in chosen)
            return any(holds) if (atom.fn == "maximum") == (factor > 0) else all(holds)
    return False
