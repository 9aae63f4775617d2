"""Conditions on indices under which an access is in bounds."""

from __future__ import annotations

from tilec.ir.expr import Binary, Const, Expr, Var, variables

Guards = tuple[tuple[Expr, bool], ...]
"""Index conditions under which an access is in bounds, and whether they must hold or fail."""


def _affine(expr: Expr, along: str | None) -> bool:
    """Whether an expression is a sum of products of numbers and variables, or does not depend on a dimension."""
    if along is not None and along not in variables(expr):
        return True
    match expr:
        case Const() | Var():
            return True
        case Binary("+" | "-" | "*", left, right):
            return _affine(left, along) and _affine(right, along)
        case _:
            return False


def conjuncts(condition: Expr) -> tuple[Expr, ...]:
    """The conditions that all have to hold."""
    if isinstance(condition, Binary) and condition.op == "and":
        return conjuncts(condition.left) + conjuncts(condition.right)
    return (condition,)


def is_monotone(condition: Expr, holds: bool, along: str | None = None) -> bool:
    """Whether a condition that holds in the first and the last lane holds in between (affine comparisons do); lanes
    that go `along` a dimension have all else in common."""
    if not isinstance(condition, Binary):
        return False
    affine = _affine(condition.left, along) and _affine(condition.right, along)
    return affine and condition.op in {"<", "<=", ">", ">="} | ({"=="} if holds else {"!="})
