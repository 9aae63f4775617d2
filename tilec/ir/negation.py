"""Opposites of conditions."""

from __future__ import annotations

from tilec.ir.expr import Binary, Const, Expr
from tilec.ir.expr import Call as Function


def negation(condition: Expr) -> Expr:
    """The opposite of a condition."""
    match condition:
        case Const(bool() as value):
            return Const(not value)
        case Binary(op, left, right) if op in _OPPOSITE:
            return Binary(_OPPOSITE[op], left, right)
        case Binary("and" | "or" as op, left, right):
            return Binary("or" if op == "and" else "and", negation(left), negation(right))
        case Function("not", (inner,)):
            return inner
    return Function("not", (condition,))


_OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
