"""Integer expressions in the ranges of their variables: conditions that the ranges decide are folded away."""

from __future__ import annotations

from collections.abc import Mapping

from tilec.ir.algebra import bounds_of, linear_form, simplify, simplify_scalar
from tilec.ir.expr import Binary, Call, Const, Expr, walk
from tilec.ir.known_ranges import KnownRanges, Ranges, shared_ranges


def extend_ranges(ranges: Ranges, more: Mapping[str, tuple[Expr, Expr]]) -> KnownRanges:
    """Ranges of more variables."""
    return shared_ranges({**ranges, **more})


def simplify_in_ranges(expr: Expr, ranges: Ranges) -> Expr:
    """The canonical form of an integer expression; `where` whose condition is decided becomes one of its branches."""
    if any(isinstance(part, Call) and part.fn == "where" for part in walk(expr)):
        expr = simplify_scalar(expr, ranges)
    return simplify(expr, ranges)


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
