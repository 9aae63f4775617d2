"""Contractions: the iterators along which each operand of a reduction is reused (Welder, 3.1; Ladder, 3.1)."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from tilec.ir.by_identity import by_identity
from tilec.ir.expr import Access, Binary, Const, Expr, TensorExpr, Var, accesses, constant_value, variables, walk

MIN_CONTRACTION_EXTENT = 8
"""An operand whose indices hold a spatial iterator only divided by at least this much counts as independent of it."""


UNKNOWN = 1 << 16
"""Extent assumed for a symbolic iterator when reuse is estimated."""


@dataclass(frozen=True, slots=True)
class Operand:
    """One access of a reduction and the iterators that choose its elements."""

    access: Access
    iterators: frozenset[str]


@by_identity(1 << 14)
def operands_of(expr: TensorExpr) -> tuple[Operand, ...]:
    """Every access of the body with the iterators it depends on; iterators of extent 1 do not count."""
    moving = {i for i, e in expr.domain.items() if constant_value(e) != 1}
    return tuple(Operand(a, frozenset().union(*(variables(i) for i in a.index)) & moving) for a in accesses(expr))


@by_identity(1 << 14)
def is_contraction(expr: TensorExpr) -> bool:
    """Whether the node is a reduction over several tensors of which at least one is reused along a spatial iterator."""
    if not expr.reduce:
        return False
    all_operands = operands_of(expr)
    if len({o.access.tensor for o in all_operands}) < 2:
        return False
    reduced = [o for o in all_operands if o.iterators & set(expr.reduce)]
    everything = {i for o in reduced for i in o.iterators if i in expr.spatial}
    return len({o.access.tensor for o in reduced}) > 1 and any(everything - o.iterators for o in reduced)


def reuse(expr: TensorExpr, operand: Operand) -> int:
    """Number of result points that read each element of an operand; symbolic extents count as UNKNOWN."""
    total = 1
    for iterator, extent in zip(expr.spatial, expr.shape, strict=True):
        if iterator not in operand.iterators:
            total *= constant_value(extent) or UNKNOWN
    return total


def exclusive(expr: TensorExpr, among: Set[str]) -> tuple[str, ...]:
    """Spatial iterators on which only operands in `among` depend: output channels, for constant weights."""
    result = []
    for iterator, extent in zip(expr.spatial, expr.shape, strict=True):
        if constant_value(extent) == 1:
            continue
        dependent = [a for a in accesses(expr) if any(iterator in variables(i) for i in a.index)]
        others = [a for a in dependent if a.tensor not in among]
        if len(others) < len(dependent) and all(_coarse(a, iterator) for a in others):
            result.append(iterator)
    return tuple(result)


def _coarse(access: Access, iterator: str) -> bool:
    """Whether an access depends on the iterator only through a division by a large constant (grouped convolution)."""
    return all(_only_divided(index, iterator) for index in access.index)


def _only_divided(index: Expr, iterator: str) -> bool:
    if iterator not in variables(index):
        return True
    inside = [
        part
        for part in walk(index)
        if isinstance(part, Binary)
        and part.op == "//"
        and part.left == Var(iterator)
        and isinstance(part.right, Const)
        and int(part.right.value) >= MIN_CONTRACTION_EXTENT
    ]
    return bool(inside) and sum(part == Var(iterator) for part in walk(index)) == len(inside)
