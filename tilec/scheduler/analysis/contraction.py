"""What kind of reduction a node is, read off its expression: which iterators reuse which operand (W01, L05)."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from tilec.ir.expr import Access, Binary, Const, Expr, TensorExpr, Var, accesses, constant_value, variables, walk

MIN_CONTRACTION_EXTENT = 8
"""A spatial iterator that an operand sees only divided by at least this much counts as not being in it."""


UNKNOWN = 1 << 16
"""What a symbolic extent counts for."""


@dataclass(frozen=True, slots=True)
class Operand:
    """One access of a reduction: the iterators that choose its elements."""

    access: Access
    iterators: frozenset[str]


def operands_of(expr: TensorExpr) -> tuple[Operand, ...]:
    """Every access of the body, with the iterators it depends on (extents of 1 do not count)."""
    moving = {i for i, e in expr.domain.items() if constant_value(e) != 1}
    return tuple(Operand(a, frozenset().union(*(variables(i) for i in a.index)) & moving) for a in accesses(expr))


def is_contraction(expr: TensorExpr) -> bool:
    """A reduction over several operands of which one, at least, is reused along a spatial iterator."""
    if not expr.reduce:
        return False
    found = operands_of(expr)
    if len({o.access.tensor for o in found}) < 2:
        return False
    reduced = [o for o in found if o.iterators & set(expr.reduce)]
    everything = {i for o in reduced for i in o.iterators if i in expr.spatial}
    return len({o.access.tensor for o in reduced}) > 1 and any(everything - o.iterators for o in reduced)


def reuse(expr: TensorExpr, operand: Operand) -> int:
    """How many points of the result read each element of an operand; large while sizes are symbols."""
    total = 1
    for iterator, extent in zip(expr.spatial, expr.shape, strict=True):
        if iterator not in operand.iterators:
            total *= constant_value(extent) or UNKNOWN
    return total


def exclusive(expr: TensorExpr, among: Set[str]) -> tuple[str, ...]:
    """Spatial iterators that only operands in `among` depend on: output channels, for constant weights."""
    found = []
    for iterator, extent in zip(expr.spatial, expr.shape, strict=True):
        if constant_value(extent) == 1:
            continue
        seen = [a for a in accesses(expr) if any(iterator in variables(i) for i in a.index)]
        others = [a for a in seen if a.tensor not in among]
        if len(others) < len(seen) and all(_coarse(a, iterator) for a in others):
            found.append(iterator)
    return tuple(found)


def _coarse(access: Access, iterator: str) -> bool:
    """Whether an access sees the iterator only through a division that holds it still for a while (grouped conv)."""
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
