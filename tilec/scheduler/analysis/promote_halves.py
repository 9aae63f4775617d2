"""Which half precision tensors a group holds in the type in which they are computed, so that they round where they
leave it (L01)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tilec.ir.expr import Access, Call, Const, Expr, TensorExpr, operands
from tilec.ir.graph import Tensor
from tilec.ir.types import HALVES


def wide_inside(
    exprs: Sequence[TensorExpr], leaving: Collection[str], tensors: Mapping[str, Tensor], widened: Collection[str]
) -> tuple[str, ...]:
    """Tensors of the `widened` types that nodes make for each other, where one of them would be rounded.

    Tensors that one node reads, or of which one holds elements of the other, may be compared and so are held alike:
    none of them as f32 if one is among those `leaving`.
    """
    made = {expr.tensor for expr in exprs if tensors[expr.tensor].ttype in widened}
    alike = {name: frozenset({name}) for name in made}
    rounded: set[str] = set()
    for expr in exprs if made else ():
        sources = _sources(expr)
        if expr.tensor in made and sources is None:
            rounded.add(expr.tensor)
        for together in ({*operands(expr)} & made, {expr.tensor, *(sources or ())} & made):
            joined = frozenset().union(*(alike[name] for name in together))
            alike |= dict.fromkeys(joined, joined)
    wide = {name for name in made if alike[name].isdisjoint(leaving) and not alike[name].isdisjoint(rounded)}
    return tuple(expr.tensor for expr in exprs if expr.tensor in wide)


def _sources(expr: TensorExpr) -> frozenset[str] | None:
    """The tensors of which a node chooses every element, literals and casts left out; None where it computes some."""
    return _chosen(expr.value) if expr.reducer in (None, "max", "min") else None


def _chosen(value: Expr) -> frozenset[str] | None:
    match value:
        case Access(tensor, _):
            return frozenset({tensor})
        case Const():
            return frozenset()
        case Call("where", (_, *parts)) | Call("maximum" | "minimum", (*parts,)):
            found = [_chosen(part) for part in parts]
            return None if None in found else frozenset().union(*(each for each in found if each is not None))
        case Call(fn, _) if fn in HALVES:
            return frozenset()
    return None
