"""Accumulation types of update rules: at least f32, f64 next to f64 operands, cast back to the partial result's
type."""

from __future__ import annotations

from collections.abc import Mapping

from tilec.ir.expr import COMPARISONS, Access, Binary, Call, Const, Expr, Var
from tilec.ir.graph import Tensor
from tilec.ir.scalars import fits
from tilec.ir.types import TTYPES, is_float


def typed(rescale: Expr, name: str, tensors: Mapping[str, Tensor]) -> Expr:
    """The update of the partial results `name`, with casts to the types of the tensors that it reads."""
    if isinstance(rescale, Access):
        return rescale
    ttype = tensors[name].ttype
    body, kind = _typed(rescale, tensors)
    return body if kind == "" or fits(kind, ttype) else Call(ttype, (body,))


def _typed(expr: Expr, tensors: Mapping[str, Tensor]) -> tuple[Expr, str]:
    """An expression with casts, and its type; literals have none."""
    match expr:
        case Const():
            return expr, ""
        case Var():
            return expr, "i64"
        case Access(tensor, _) | Call("before", (Access(tensor, _),)):
            return _at_least_f32(expr, tensors[tensor].ttype)
        case Binary(op, left, right):
            (a, b), ttype = _alike([_typed(left, tensors), _typed(right, tensors)])
            return Binary(op, a, b), "bool" if op in COMPARISONS else ttype
        case Call("where", (condition, yes, no)):
            (a, b), ttype = _alike([_typed(yes, tensors), _typed(no, tensors)])
            return Call("where", (_typed(condition, tensors)[0], a, b)), ttype
        case Call(fn, (operand,)) if fn in TTYPES:
            return Call(fn, (_typed(operand, tensors)[0],)), fn
        case Call(fn, args):
            parts, ttype = _alike([_typed(arg, tensors) for arg in args])
            return Call(fn, tuple(parts)), ttype
    raise AssertionError(expr)


def _at_least_f32(value: Expr, ttype: str) -> tuple[Expr, str]:
    return (value, ttype) if ttype in ("f32", "f64") else (Call("f32", (value,)), "f32")


def _alike(parts: list[tuple[Expr, str]]) -> tuple[list[Expr], str]:
    types = {ttype for _, ttype in parts if ttype}
    if len(types) < 2 or not all(is_float(ttype) for ttype in types):
        return [part for part, _ in parts], next(iter(types), "")
    wide = "f64" if "f64" in types else "f32"
    return [part if ttype in ("", wide) else Call(wide, (part,)) for part, ttype in parts], wide
