"""Which expressions are indices and which are conditions on them, and how limits decide these."""

from __future__ import annotations

from collections.abc import Callable

from tilec.ir.expr import Binary, Call, Const, Expr, Var


def is_index(expr: Expr) -> bool:
    """Whether an expression consists of iterators, sizes and integer arithmetic only."""
    match expr:
        case Var():
            return True
        case Const(value):
            return isinstance(value, int) and not isinstance(value, bool)
        case Binary("+" | "-" | "*" | "//" | "%", left, right):
            return is_index(left) and is_index(right)
        case Call("minimum" | "maximum" | "neg", args):
            return all(is_index(a) for a in args)
        case Call("where", (condition, yes, no)):
            return is_condition(condition) and is_index(yes) and is_index(no)
        case _:
            return False


def is_condition(expr: Expr) -> bool:
    """Whether an expression compares indices, or combines such comparisons."""
    match expr:
        case Const(bool()):
            return True
        case Binary(op, left, right) if op in DECIDE:
            return is_index(left) and is_index(right)
        case Binary("and" | "or", left, right):
            return is_condition(left) and is_condition(right)
        case Call("not", (operand,)):
            return is_condition(operand)
        case _:
            return False


def fold_boolean(op: str, a: Expr, b: Expr) -> Expr:
    """`and` or `or` of two conditions, one of which may be known."""
    absorbing = Const(op == "or")
    if absorbing in (a, b):
        return absorbing
    neutral = Const(op == "and")
    if a == neutral:
        return b
    return a if b == neutral else Binary(op, a, b)


def _certain(yes: bool, no: bool) -> bool | None:
    return True if yes else False if no else None


DECIDE: dict[str, Callable[[int | None, int | None], bool | None]] = {
    "<": lambda low, high: _certain(high is not None and high < 0, low is not None and low >= 0),
    "<=": lambda low, high: _certain(high is not None and high <= 0, low is not None and low > 0),
    ">": lambda low, high: _certain(low is not None and low > 0, high is not None and high <= 0),
    ">=": lambda low, high: _certain(low is not None and low >= 0, high is not None and high < 0),
    "==": lambda low, high: _certain(low == 0 == high, (low or 0) > 0 or (high or 0) < 0),
    "!=": lambda low, high: _certain((low or 0) > 0 or (high or 0) < 0, low == 0 == high),
}
"""Comparison -> whether it holds, from the limits of the difference of its sides; None where they do not decide it."""
