"""Conversions whose result ONNX leaves undefined: floating-point values outside of the integer type's range.

tilec saturates, as ARM processors do; x86 processors wrap. Disturbed evaluations take either end of the type, so that
no output that depends on such an element is called wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilec.ir.expr import Access, Binary, Call, Const, Expr, Reduce, TensorExpr, Var, rebuild, walk
from tilec.ir.scalars import type_of
from tilec.ir.types import TTYPES

CHOICE = "%choice"
"""Boolean operand over the spatial iterators: which end of the type an undefined element takes."""


def with_undefined_elements(expr: TensorExpr, ttypes: Mapping[str, str]) -> TensorExpr:
    """The expression with an end of the integer type, as the operand `CHOICE` says, where a truncating conversion is
    undefined; `expr` itself if it has none. `ttypes` maps its operands to tTypes.

    QuantizeLinear and its kin round before they convert; ONNX says that they saturate.
    """
    choice = Access(CHOICE, tuple(Var(name) for name in expr.spatial))

    def chosen(part: Expr) -> Expr:
        if isinstance(part, Access):
            return part
        new = rebuild(part, chosen)
        match part:
            case Call(fn, (operand,)) if _truncates(part, ttypes):
                signed = TTYPES[fn].kind == "int"
                end = 1 << (TTYPES[fn].bits - signed)  # the least value above the type
                begin = -end if signed else 0
                above = Binary(">", operand, Const(begin - 1.0))
                below = Binary("<", operand, Const(float(end)))
                least, greatest = Call(fn, (Const(begin),)), Call(fn, (Const(end - 1),))
                return Call("where", (Binary("and", above, below), new, Call("where", (choice, least, greatest))))
        return new

    value = chosen(expr.value)
    if value is expr.value:
        return expr
    return replace(expr, body=replace(expr.body, body=value) if isinstance(expr.body, Reduce) else value)


def _truncates(part: Call, ttypes: Mapping[str, str]) -> bool:
    """Whether a call converts a floating-point value, which was not rounded before, to an integer type."""
    if part.fn not in TTYPES or TTYPES[part.fn].kind not in ("int", "uint"):
        return False
    (operand,) = part.args
    kind = type_of(operand, ttypes)
    real = kind in TTYPES and TTYPES[kind].kind == "float"
    return real and not any(isinstance(each, Call) and each.fn == "round" for each in walk(operand))
