"""Integer expressions in the ranges of their variables: conditions that the ranges decide are folded away."""

from __future__ import annotations

from collections.abc import Mapping

from tilec.ir.algebra import KnownRanges, Ranges, bounds_of, simplify, simplify_scalar
from tilec.ir.expr import Binary, Call, Expr, walk


def ranges_with(ranges: Ranges, more: Mapping[str, tuple[Expr, Expr]]) -> KnownRanges:
    """Ranges of more variables."""
    return KnownRanges({**ranges, **more})


def settle(expr: Expr, ranges: Ranges) -> Expr:
    """The canonical form of an integer expression; `where` whose condition is decided becomes one of its branches."""
    if any(isinstance(part, Call) and part.fn == "where" for part in walk(expr)):
        expr = simplify_scalar(expr, ranges)
    return simplify(expr, ranges)


def at_least(a: Expr, b: Expr, ranges: Ranges) -> bool:
    """Whether a >= b for all values of the variables."""
    low = bounds_of(settle(Binary("-", a, b), ranges), ranges)[0]
    return low is not None and low >= 0
