"""The largest value that a size takes over all positions of the loops around it."""

from __future__ import annotations

from collections.abc import Mapping

from tilec.ir.algebra import bounds_of, linear_form, simplify
from tilec.ir.expr import Binary, Call, Const, Expr, Var, substitute, variables

Ranges = Mapping[str, tuple[Expr, Expr]]


def largest(expr: Expr, ranges: Ranges) -> Expr:
    """An upper bound of an integer expression over its ranged variables: an integer, or an expression in symbols.

    Sharp for affine expressions, for ends cut by `minimum` and `maximum`, and for differences of two quotients by
    the same divisor.
    """
    expr = simplify(expr, ranges)
    if isinstance(expr, Const):
        return expr
    terms, _ = linear_form(expr)
    for atom, scale in terms.items():
        match atom:
            case Call("minimum" | "maximum" as fn, (left, right)):
                a, b = (largest(_exchange(expr, atom, scale, x), ranges) for x in (left, right))
                smaller = (fn == "minimum") == (scale > 0)
                return simplify(Call("minimum" if smaller else "maximum", (a, b)), ranges)
            case Call("where", (_, yes, no)):
                a, b = (largest(_exchange(expr, atom, scale, x), ranges) for x in (yes, no))
                return simplify(Call("maximum", (a, b)), ranges)
    for atom, scale in terms.items():
        match atom, _partner(atom, scale, terms):
            case Binary(_, left, divisor), Binary(_, right, _) as other:
                # left // d - right // d <= (left - right + d - 1) // d
                most = Binary("//", _plus(_minus(left, right), _minus(divisor, Const(1))), divisor)
                return largest(_plus(expr, Binary("*", Const(scale), _minus(most, _minus(atom, other)))), ranges)
    high = bounds_of(expr, ranges)[1]
    return Const(high) if high is not None else _pushed(expr, ranges)


def _exchange(expr: Expr, atom: Expr, scale: int, value: Expr) -> Expr:
    return _plus(expr, Binary("*", Const(scale), _minus(value, atom)))


def _plus(a: Expr, b: Expr) -> Expr:
    return Binary("+", a, b)


def _minus(a: Expr, b: Expr) -> Expr:
    return Binary("-", a, b)


def _partner(atom: Expr, scale: int, terms: Mapping[Expr, int]) -> Binary | None:
    if not (isinstance(atom, Binary) and atom.op == "//" and scale > 0):
        return None
    for other, factor in terms.items():
        if isinstance(other, Binary) and other.op == "//" and other.right == atom.right and factor == -scale:
            return other
    return None


def _pushed(expr: Expr, ranges: Ranges) -> Expr:
    """Every loop variable at the end of its range that makes the expression largest; symbols stay."""
    for name in sorted(variables(expr) & ranges.keys()):
        low, high = ranges[name]
        if Var(name) in (low, high):
            continue
        ends = [simplify(substitute(expr, {name: end}), ranges) for end in (low, high)]
        expr = ends[0] if ends[0] == ends[1] else simplify(Call("maximum", (ends[0], ends[1])), ranges)
    return expr
