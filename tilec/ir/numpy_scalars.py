"""The scalar functions of tensor expressions over NumPy arrays, with the types of `tilec.ir.scalars`.

Values are arrays, or Python scalars for literals that have not adopted a type yet. f16 and bf16 keep their type while
they are only moved and become f32 as soon as they are computed with.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import erf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilec.ir.dots import DOTS, WORD, WORD_TTYPE, Dot
from tilec.ir.scalars import BITCASTS
from tilec.ir.types import TTYPES, has_numpy_dtype, numpy_dtype

Array = NDArray[Any]
Value = Array | bool | int | float


def is_literal(value: Value) -> bool:
    """Whether a value is a literal without a type (NumPy's float64 is a Python float too)."""
    return type(value) in (bool, int, float)


@cache
def _halves() -> tuple[np.dtype[Any], np.dtype[Any]]:
    return numpy_dtype("f16"), numpy_dtype("bf16")


def widen(value: Value) -> Value:
    """f16 and bf16 converted to f32, in which they are computed; any other value unchanged."""
    if isinstance(value, np.ndarray | np.generic) and value.dtype in _halves():
        return np.asarray(value.astype(np.float32))
    return value


def ttype_of(dtype: np.dtype[Any]) -> str:
    """The tType of a NumPy dtype. Raises KeyError for a dtype without one."""
    for name in TTYPES:
        if has_numpy_dtype(name) and numpy_dtype(name) == dtype:
            return name
    raise KeyError(str(dtype))


def typed(value: Value, dtype: np.dtype[Any]) -> Array:
    """A literal converted to the type of the other operand; any other value unchanged."""
    return cast(value, dtype) if is_literal(value) else np.asarray(value)


def _met(values: list[Value]) -> list[Value]:
    """The values with literals converted to the type of the first array among them."""
    kinds = [v.dtype for v in values if isinstance(v, np.ndarray | np.generic)]
    return [typed(v, kinds[0]) for v in values] if kinds else values


def cast(value: Value, dtype: np.dtype[Any]) -> Array:
    """Conversion to `dtype`: integers wrap, floats truncate and saturate (NaN becomes 0), bool is `!= 0`."""
    array = np.asarray(value)
    if array.dtype == dtype:
        return array
    if dtype.kind in "iu" and array.dtype.kind not in "iub":
        limits = np.iinfo(dtype)
        wide = np.trunc(array.astype(np.float64))
        inside = (wide >= float(limits.min)) & (wide < float(limits.max) + (limits.bits < 64))
        ends = np.where(wide > 0, limits.max, np.where(wide < 0, limits.min, 0)).astype(dtype)
        return np.asarray(np.where(inside, np.where(inside, wide, 0.0).astype(dtype), ends))
    return np.asarray(array.astype(np.float32).astype(dtype) if dtype in _halves() else array.astype(dtype))


def select(condition: Value, yes: Value, no: Value) -> Value:
    """`where(condition, yes, no)`; f16 and bf16 are moved, not computed."""
    yes, no = _met([yes, no])
    if is_literal(yes):
        yes, no = np.asarray(yes), np.asarray(no)
    if np.asarray(yes).dtype != np.asarray(no).dtype:
        yes, no = widen(yes), widen(no)
    return np.asarray(np.where(np.asarray(condition), yes, no))


def _erf(x: Array) -> Array:
    wide = np.asarray(x, np.float64)
    values = np.fromiter(map(erf, wide.ravel().tolist()), np.float64, wide.size)
    return values.reshape(wide.shape).astype(x.dtype)


def _sigmoid(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1 / (1 + small), small / (1 + small)))


def _pow(a: Array, b: Array) -> Array:
    if a.dtype.kind not in "iu":
        # By one exponent for all NumPy takes the square root for the power 0.5: NaN of -inf, -0 of -0.
        shape = np.broadcast_shapes(a.shape, b.shape)
        full = np.ones((2, *shape), b.dtype) * b
        return np.asarray(np.power(np.broadcast_to(a, shape), full)[0])
    positive = np.power(a, np.maximum(b, 0))
    inverse = np.where(a == 1, 1, np.where(a == -1, 1 - 2 * (b % 2), 0)).astype(a.dtype)
    return np.asarray(np.where(b < 0, inverse, positive))


def _truncdiv(a: Array, b: Array) -> Array:
    if a.dtype.kind not in "iu":
        return np.asarray(np.trunc(a / b))
    quotient = a // b
    return np.asarray(quotient + ((quotient * b != a) & ((a < 0) != (b < 0)) & (b != 0)).astype(a.dtype))


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.true_divide,
    "//": np.floor_divide,
    "%": np.remainder,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "pow": _pow,
    "fmod": np.fmod,
    "truncdiv": _truncdiv,
    "bitand": np.bitwise_and,
    "bitor": np.bitwise_or,
    "bitxor": np.bitwise_xor,
    "shl": np.left_shift,
    "shr": np.right_shift,
}
_UNARY: dict[str, Callable[[Any], Any]] = {
    **{name: getattr(np, name) for name in ("exp", "log", "sqrt", "tanh", "floor", "ceil", "sin", "cos", "tan")},
    **{name: getattr(np, name) for name in ("sinh", "cosh", "abs", "sign", "isnan", "isinf")},
    **{name: getattr(np, "arc" + name[1:]) for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")},
    "erf": _erf,
    "sigmoid": _sigmoid,
    "round": np.rint,
    "neg": np.negative,
    "not": np.logical_not,
    "bitnot": np.invert,
}

EXACT = frozenset(
    {"+", "-", "*", "/", "//", "%", "<", "<=", ">", ">=", "==", "!=", "and", "or", "where"}
    | {"sqrt", "floor", "ceil", "round", "neg", "not", "abs", "sign", "isnan", "isinf", "fmod", "truncdiv"}
    | {"bitand", "bitor", "bitxor", "shl", "shr", "bitnot", *BITCASTS, WORD}
    | {name for name, dot in DOTS.items() if TTYPES[dot.accumulator].kind == "int"}
)
"""Operations with the same result on every machine: exact or correctly rounded for every type."""


def join(args: list[Array]) -> Array:
    """Words of elements of one type, the first lowest."""
    stacked = np.stack(np.broadcast_arrays(*args), axis=-1)
    return stacked.view(np.uint8).view(numpy_dtype(WORD_TTYPE))[..., 0]


def elements(words: Array, ttype: str) -> Array:
    """The elements of words along a further, last axis."""
    return np.ascontiguousarray(words)[..., None].view(np.uint8).view(numpy_dtype(ttype))


def dot(function: Dot, words: list[Array]) -> Array:
    """Sums of the products of the elements of two words."""
    kind = numpy_dtype(function.accumulator)
    x, w = (elements(each, ttype).astype(kind) for each, ttype in zip(words, function.inputs, strict=True))
    return np.asarray((x * w).sum(-1, dtype=kind))


def apply(fn: str, args: list[Value]) -> Value:
    """A function or operator of the language; of literals alone the result is a literal. Raises KeyError for an unknown
    function."""
    if fn == WORD:
        return join([np.asarray(a) for a in args])
    if fn in DOTS:
        return dot(DOTS[fn], [np.asarray(a) for a in args])
    widened = [widen(a) for a in _met(args)]
    function: Callable[..., Any] = _UNARY[fn] if len(args) == 1 else _BINARY[fn]
    literals = all(is_literal(a) for a in widened)
    result = np.asarray(function(*(np.asarray(a) for a in widened)))
    return result.item() if literals else result
