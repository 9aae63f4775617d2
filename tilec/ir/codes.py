"""Codes and numbers of coded tTypes as expressions and arrays, and which conversions lose nothing."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilec.ir.evaluate import evaluate
from tilec.ir.expr import Access, Call, Const, Expr, TensorExpr, Var, substitute, variables
from tilec.ir.scalars import fits, type_of
from tilec.ir.text import parse_expr
from tilec.ir.types import TTYPES, is_float, numpy_dtype

_parsed = cache(parse_expr)


def decoded(ttype: str, code: Expr) -> Expr:
    """The number of a code (u32) as an i32 or f32."""
    return substitute(_parsed(TTYPES[ttype].decode), {"code": code})


def encoded(ttype: str, number: Expr) -> Expr:
    """The code (u32) of an i32 or f32. Raises KeyError for a type of constants only."""
    if not TTYPES[ttype].encode:
        raise KeyError(f"numbers are not rounded to {ttype}")
    return substitute(_parsed(TTYPES[ttype].encode), {"x": number})


def number_type(ttype: str) -> str:
    """The plain type in which the numbers of a coded type are computed with."""
    return "f32" if is_float(ttype) else "i32"


def check_decoding(ttype: str) -> None:
    """Raise ValueError that says why the `decode` text of a coded type gives no number of its kind."""
    try:
        number = decoded(ttype, Call("u32", (Var("code"),)))
        found = type_of(number, {})
    except TypeError as error:
        raise ValueError(str(error)) from error
    if unknown := sorted(variables(number) - {"code"}):
        raise ValueError(f"{unknown[0]} is unknown")
    if not fits(found, number_type(ttype)):
        raise ValueError(f"it decodes to {found}, not to {number_type(ttype)}")


def decode_array(ttype: str, codes: NDArray[Any]) -> NDArray[Any]:
    """The numbers of an array of codes."""
    return _pointwise(decoded(ttype, Access("c", (Var("i"),))), {"c": codes.astype(np.uint32)}, number_type(ttype))


def encode_array(ttype: str, numbers: NDArray[Any]) -> NDArray[Any]:
    """The codes (uint32) of an array of i32 or f32."""
    return _pointwise(encoded(ttype, Access("x", (Var("i"),))), {"x": numbers}, "u32")


def _pointwise(body: Expr, operand: dict[str, NDArray[Any]], ttype: str) -> NDArray[Any]:
    (array,) = operand.values()
    flat = {name: each.ravel() for name, each in operand.items()}
    return evaluate(TensorExpr("y", ("i",), (), (Const(array.size),), body), flat, ttype=ttype).reshape(array.shape)


@cache
def is_lossless(source: str, target: str) -> bool:
    """Whether every number of `source`, -0 and NaN included, is one of `target`: by looking at all numbers of a type of
    up to 16 bits, else by range and precision."""
    if source == target:
        return True
    if is_float(source) and not is_float(target):
        return False
    if TTYPES[source].bits > 16:
        return _holds(target, source)
    values = _numbers(source)
    with np.errstate(all="ignore"):
        back = _rounded(target, values)
    same = (back == values) & (np.signbit(back) == np.signbit(values))
    return bool(np.all(same | (np.isnan(back) & np.isnan(values))))


def _numbers(ttype: str) -> NDArray[Any]:
    """Every number of a type of up to 16 bits, in f64."""
    t = TTYPES[ttype]
    if t.kind == "bool":
        return np.array([0.0, 1.0])
    codes = np.arange(1 << t.bits, dtype=np.uint32)
    if t.coded:
        return decode_array(ttype, codes).astype(np.float64)
    with np.errstate(invalid="ignore"):
        return codes.astype(f"u{t.bits // 8}").view(numpy_dtype(ttype)).astype(np.float64)


def _rounded(ttype: str, values: NDArray[Any]) -> NDArray[Any]:
    """Numbers rounded to a type, in f64."""
    if not TTYPES[ttype].coded:
        return values.astype(numpy_dtype(ttype)).astype(np.float64)
    if not TTYPES[ttype].encode:
        return np.where(np.isin(values, _numbers(ttype)) | np.isnan(values), values, np.inf)
    return decode_array(ttype, encode_array(ttype, values.astype(numpy_dtype(number_type(ttype))))).astype(np.float64)


_PRECISION = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}


def _holds(target: str, source: str) -> bool:
    """Whether a type of more than 16 bits fits into another by range and precision."""
    wide, narrow = TTYPES[target], TTYPES[source]
    if is_float(source):
        return (source, target) in {("f32", "f64"), ("tf32", "f32"), ("tf32", "f64")}
    magnitude = narrow.bits - (narrow.kind == "int")
    if is_float(target):
        return magnitude <= _PRECISION.get(target, 0) and not wide.coded
    return magnitude <= wide.bits - (wide.kind == "int") and (narrow.kind == "uint" or wide.kind == "int")
