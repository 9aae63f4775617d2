"""Places of elements in a larger tensor, inside of which indices that data decide are kept."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.ir.expr import Binary, Call, Const, Expr, accesses, substitute
from tilec.ir.program import Place


def kept_inside(index: Expr, extent: Expr) -> Expr:
    """An index, the nearest one below `extent` where data decide it."""
    if not any(accesses(index)):
        return index
    return Call("minimum", (Call("maximum", (index, Const(0))), Binary("-", extent, Const(1))))


def is_kept_inside(index: Expr, extent: Expr) -> bool:
    """Whether an index that data decide is one that `kept_inside` makes."""
    match index:
        case Call("minimum", (Call("maximum", (_, Const(0))), last)):
            return last == Binary("-", extent, Const(1))
    return not any(accesses(index))


def element_at(place: Place, index: Sequence[Expr]) -> tuple[Expr, ...]:
    """The index in the larger tensor of the element at an index."""
    here = dict(zip(place.iterators, index, strict=True))
    return tuple(substitute(each, here) for each in place.index)
