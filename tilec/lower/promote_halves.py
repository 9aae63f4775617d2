"""Promotion of half precision tensors inside a group to f32: nodes write and read them unrounded; casts still round."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from tilec.ir.dots import WORD
from tilec.ir.expr import Access, Binary, Call, Expr, Reduce, TensorExpr, accesses, operands, rebuild
from tilec.ir.plan import Group, Variant
from tilec.ir.scalars import BITCASTS, type_of
from tilec.ir.types import HALVES, TTYPES

PROMOTED_TTYPE = "f32"
"""The type in which half precision is computed, and stored where it stays inside a group."""


def read_wide(group: Group, variant: Variant) -> frozenset[str]:
    """Tensors of a group that all its nodes read as f32: those held so from the lowest level on at which they wait for
    a reader, and that do not leave the group beside it.  Others are f32 only above: what goes down is rounded there,
    and who reads them above rounds them as well (`reads_rounded`)."""
    rank = {level: number for number, level in enumerate(variant.levels)}
    begins: dict[str, int] = {}
    for level, tensors in variant.held.items():
        for tensor in tensors:
            begins[tensor] = min(begins.get(tensor, rank[level]), rank[level])
    waits: dict[str, int] = {}
    for edge, level in group.connect.items():
        tensor, number = edge.split("->")[0], rank.get(level, 0)
        waits[tensor] = min(waits.get(tensor, number), number)
    both = waits.keys() & set(group.outputs)
    return frozenset(t for t, first in begins.items() if first <= waits.get(t, first) and t not in both)


def reads_rounded(expr: TensorExpr, tensors: Collection[str], ttypes: Mapping[str, str]) -> TensorExpr:
    """A node that rounds some tensors, which are held as f32 where it reads them, to their own types."""

    def visit(part: Expr) -> Expr:
        if isinstance(part, Access):
            return Call(ttypes[part.tensor], (part,)) if part.tensor in tensors else part
        return rebuild(part, visit)

    value = visit(expr.value)
    return replace(expr, body=replace(expr.body, body=value) if isinstance(expr.body, Reduce) else value)


def promote_halves(expr: TensorExpr, wide: Collection[str], ttypes: Mapping[str, str]) -> TensorExpr:
    """A node that writes or reads `wide` tensors, computed in f32; any other unchanged. `ttypes` are those of the plan.

    rewrite, for P wide:
        P[s, t] = X[s, t] / D[s];  O[s, d] = sum(t, P[s, t] * V[t, d])
        P[s, t] = f32(X[s, t]) / f32(D[s]);  O[s, d] = sum(t, P[s, t] * f32(V[t, d]))
    """
    if expr.tensor not in wide and all(tensor not in wide for tensor in operands(expr)):
        return expr
    value = _widened(expr.value, wide, ttypes)
    return replace(expr, body=replace(expr.body, body=value) if isinstance(expr.body, Reduce) else value)


def rounded(expr: TensorExpr, ttype: str) -> TensorExpr:
    """An elementwise node whose value is rounded to a type, whatever type it is stored in."""
    return replace(expr, body=Call(ttype, (expr.body,)))


def _widened(expr: Expr, wide: Collection[str], ttypes: Mapping[str, str]) -> Expr:
    """A body whose parts of half precision are f32.

    A part that reads nothing wide is converted as a whole, since a guard around an access may be one that a filled
    buffer makes redundant; factors are converted one by one.
    """
    half = type_of(expr, ttypes) in HALVES
    if not isinstance(expr, Binary) and all(access.tensor not in wide for access in accesses(expr)):
        return Call(PROMOTED_TTYPE, (expr,)) if half else expr
    new = rebuild(expr, lambda part: _widened(part, wide, ttypes))
    match expr, new:
        case Access(tensor, _), _:
            return Call(PROMOTED_TTYPE, (new,)) if half and tensor not in wide else new
        case Call(fn, parts), Call(_, inners) if fn == WORD:
            kinds = (type_of(part, ttypes) for part in parts)
            return Call(WORD, tuple(Call(kind, (inner,)) for kind, inner in zip(kinds, inners, strict=True)))
        case Call(fn, (part,)), Call(_, (inner,)) if fn in TTYPES or fn in BITCASTS:
            kind = type_of(part, ttypes)
            if kind in HALVES and fn == PROMOTED_TTYPE:
                return inner
            if kind in HALVES and fn in BITCASTS:
                new = Call(fn, (Call(kind, (inner,)),))
            return Call(PROMOTED_TTYPE, (new,)) if half else new
    return new
