"""Half-precision tensors that a group stores in the wider type in which they are computed (Ladder, 3.1).

They are rounded where they leave the group instead of at every node.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tilec.ir.expr import Access, Call, Const, Expr, TensorExpr, operands
from tilec.ir.graph import Tensor
from tilec.ir.types import HALVES


def wide_inside(
    exprs: Sequence[TensorExpr], leaving: Collection[str], tensors: Mapping[str, Tensor], widened: Collection[str]
) -> tuple[str, ...]:
    """Tensors of the `widened` types that pass between nodes of the group and that some node would round.

    Tensors read by one node, or of which one holds elements of the other, may be compared with each other. They are
    therefore promoted together, and not at all if one of them is among those `leaving` the group, as which count those
    that a unit of matrices takes in their own type.
    """
    produced = {expr.tensor for expr in exprs if tensors[expr.tensor].ttype in widened}
    alike = {name: frozenset({name}) for name in produced}
    rounded: set[str] = set()
    for expr in exprs if produced else ():
        sources = _sources(expr)
        if expr.tensor in produced and sources is None:
            rounded.add(expr.tensor)
        for together in ({*operands(expr)} & produced, {expr.tensor, *(sources or ())} & produced):
            joined = frozenset().union(*(alike[name] for name in together))
            alike |= dict.fromkeys(joined, joined)
    wide = {name for name in produced if alike[name].isdisjoint(leaving) and not alike[name].isdisjoint(rounded)}
    return tuple(expr.tensor for expr in exprs if expr.tensor in wide)


def is_exact(expr: TensorExpr) -> bool:
    """Whether a node's elements are of half precision before they are stored: selected unchanged, or cast to it."""
    return _sources(expr) is not None


def _sources(expr: TensorExpr) -> frozenset[str] | None:
    """Tensors from which a node selects its elements unchanged (literals and casts left out); None if it computes
    any."""
    return _chosen(expr.value) if expr.reducer in (None, "max", "min") else None


def _chosen(value: Expr) -> frozenset[str] | None:
    match value:
        case Access(tensor, _):
            return frozenset({tensor})
        case Const():
            return frozenset()
        case Call("where", (_, *parts)) | Call("maximum" | "minimum", (*parts,)):
            sources = [_chosen(part) for part in parts]
            return None if None in sources else frozenset().union(*(each for each in sources if each is not None))
        case Call(fn, _) if fn in HALVES:
            return frozenset()
    return None
