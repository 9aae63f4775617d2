"""Scalar bodies without the values of literals that no cost depends on: parts that differ in these alone are alike."""

from __future__ import annotations

from functools import lru_cache
from math import isfinite

from tilec.ir.expr import COMPARISONS, Access, Binary, Call, Const, Expr, Var, children, rebuild

ARITHMETIC = frozenset({"+", "-", "*", "/"}) | COMPARISONS
CHOICES = frozenset({"where", "minimum", "maximum"})


def abstract_literals(body: Expr) -> Expr:
    """The body with a parameter in place of each literal that is computed with elements of tensors alone.

    Literals stay where their value decides what runs: in indices, beside iterators (guards), as arguments of other
    functions (exponents, shifts), and 0, 1, infinities and NaN, which algebra tells from other numbers.

    rewrite:
        where(i >= 1, f32(i32(X[i - 1]) - 119) * 0.25, 0.0)
        -> where(i >= 1, f32(i32(X[i - 1]) - int_literal) * float_literal, 0.0)
    """
    if isinstance(body, Access):
        return body
    if _holds_parameters(body):
        body = rebuild(body, _parameter)
    return rebuild(body, abstract_literals)


def _holds_parameters(body: Expr) -> bool:
    """Whether literals among the operands of an operation are parameters of it."""
    match body:
        case Binary(op, _, _):
            return op in ARITHMETIC and _reads_elements_alone(body)
        case Call(fn, _):
            return fn in CHOICES and _reads_elements_alone(body)
        case _:
            return False


def _parameter(operand: Expr) -> Expr:
    match operand:
        case Const(value) if not isinstance(value, bool) and isfinite(value) and value not in (0, 1):
            return Var(f"{type(value).__name__}_literal")
        case Binary(op, _, _) if op in ARITHMETIC and not _sources(operand):
            return rebuild(operand, _parameter)
        case _:
            return operand


def _reads_elements_alone(body: Expr) -> bool:
    """Whether a body reads tensors, and uses no iterator outside of their indices."""
    return _sources(body) == {Access}


@lru_cache(maxsize=1 << 14)
def _sources(body: Expr) -> frozenset[type[Expr]]:
    """Whether a body uses elements, iterators and sizes, or both."""
    if isinstance(body, Access | Var):
        return frozenset({type(body)})
    return frozenset[type[Expr]]().union(*map(_sources, children(body)))
