"""Selections of dequantised numbers as selections of their codes: what quantises them again is monotone (L01)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isnan

import numpy as np

from tilec.ir.expr import Access, Call, Const, Expr, Scalar, TensorExpr, accesses
from tilec.ir.types import TTYPES
from tilec.scheduler.analysis.access import is_data_dependent

Codes = Callable[[Access], Expr | None]
"""The code of an element of a dequantised tensor."""

Literals = Callable[[Scalar], Expr | None]
"""The code that stands for a literal, if there is one."""


def is_selection(expr: TensorExpr) -> bool:
    """Whether a node chooses among elements and literals, by order or by place: maxima, minima, guards."""
    return expr.reducer in (None, "max", "min") and _selects(expr.value)


def _selects(body: Expr) -> bool:
    match body:
        case Access():
            return not is_data_dependent(body)
        case Const(value):
            return not isinstance(value, bool)
        case Call("where", (condition, *parts)):
            return not accesses(condition) and all(map(_selects, parts))
        case Call("maximum" | "minimum", parts):
            return all(map(_selects, parts))
        case _:
            return False


def selected_codes(body: Expr, codes: Codes, literals: Literals) -> Expr | None:
    """A selection of real numbers as the same one of their codes; None where an element or a literal has none."""
    match body:
        case Access():
            return codes(body)
        case Const(value):
            return literals(value)
        case Call("where", (condition, *parts)):
            return _of_all("where", [condition], parts, codes, literals)
        case Call("maximum" | "minimum" as fn, parts):
            return _of_all(fn, [], parts, codes, literals)
        case _:
            return None


def _of_all(fn: str, first: Sequence[Expr], parts: Sequence[Expr], codes: Codes, literals: Literals) -> Expr | None:
    found = [code for part in parts if (code := selected_codes(part, codes, literals)) is not None]
    return Call(fn, (*first, *found)) if len(found) == len(parts) else None


def code_of(value: Scalar, zero: int, scale: float, ttype: str) -> Const | None:
    """The code to which a literal is quantised, in the arithmetic of the quantiser; NaN has none."""
    if isnan(value):
        return None
    kind = TTYPES[ttype]
    low, high = (0, 2**kind.bits - 1) if kind.kind == "uint" else (-(2 ** (kind.bits - 1)), 2 ** (kind.bits - 1) - 1)
    with np.errstate(over="ignore"):
        steps = np.round(np.float32(value) / np.float32(scale)) + np.float32(zero)
    return Const(int(min(max(float(steps), low), high)))
