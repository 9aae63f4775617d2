"""Conditions on indices under which an access is in bounds."""

from __future__ import annotations

from tilec.ir.expr import Binary, Const, Expr, Var, walk

Guards = tuple[tuple[Expr, bool], ...]
"""Index conditions under which an access is in bounds, and whether they must hold or fail."""


def conjuncts(condition: Expr) -> tuple[Expr, ...]:
    """The conditions that all have to hold."""
    if isinstance(condition, Binary) and condition.op == "and":
        return conjuncts(condition.left) + conjuncts(condition.right)
    return (condition,)


def is_monotone(condition: Expr, holds: bool) -> bool:
    """Whether a condition that holds in the first and the last lane holds in between (affine comparisons do)."""
    if not isinstance(condition, Binary):
        return False
    affine = all(isinstance(e, Const | Var) or (isinstance(e, Binary) and e.op in "+-*") for e in walk(condition.left))
    affine &= all(
        isinstance(e, Const | Var) or (isinstance(e, Binary) and e.op in "+-*") for e in walk(condition.right)
    )
    return affine and condition.op in {"<", "<=", ">", ">="} | ({"=="} if holds else {"!="})
