"""Accesses of an expression with the guards (conditions of `where`) around them."""

from __future__ import annotations

from collections.abc import Iterator

from tilec.ir.expr import Access, Binary, Call, Expr, children


def guarded(expr: Expr, guards: tuple[Expr, ...] = ()) -> Iterator[tuple[Access, tuple[Expr, ...]]]:
    """Every access of an expression with the conditions that all hold when it is evaluated, in reading order."""
    if isinstance(expr, Call) and expr.fn == "where":
        condition, yes, no = expr.args
        yield from guarded(condition, guards)
        yield from guarded(yes, (*guards, *_conjuncts(condition)))
        yield from guarded(no, (*guards, Call("not", (condition,))))
        return
    if isinstance(expr, Access):
        yield expr, guards
    for child in children(expr):
        yield from guarded(child, guards)


def _conjuncts(condition: Expr) -> tuple[Expr, ...]:
    if isinstance(condition, Binary) and condition.op == "and":
        return _conjuncts(condition.left) + _conjuncts(condition.right)
    return (condition,)
