"""Formulas as text: the notation in which operators write scalar bodies and indices."""

from __future__ import annotations

from functools import lru_cache

from tilec.ir.expr import Const, Expr, Scalar, substitute
from tilec.ir.text import parse_expr

_parsed = lru_cache(maxsize=1024)(parse_expr)


def formula(text: str, **operands: Scalar | Expr) -> Expr:
    """The expression of `text` with its names replaced by `operands`: `formula("x * f + 1", x=..., f=0.5)`."""
    values = {
        name: Const(value) if isinstance(value, bool | int | float) else value for name, value in operands.items()
    }
    return substitute(_parsed(text), values)
