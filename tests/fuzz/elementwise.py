"""Elementwise operators: unary, binary, variadic, comparisons, choices and casts."""

from __future__ import annotations

import numpy as np
from onnx import helper

from fuzz.reference import is_float, words
from fuzz.sketch import ALL, DTYPES, Sketch
from fuzz.table import draws, since, types_of

UNARY = words(
    """
    Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid HardSwish
    Identity IsInf IsNaN LeakyRelu Log Mish Neg Not Reciprocal Relu Round Selu Sigmoid Sign Sin Sinh Softplus
    Softsign Sqrt Tan Tanh ThresholdedRelu Celu
    """
)
ARITHMETIC = ["Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean", "Pow", "PRelu"]
COMPARISONS = ["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"]
LOGIC = ["And", "Or", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor"]
ALPHA = {"Elu": 1, "LeakyRelu": 1, "ThresholdedRelu": 1, "Celu": 1, "HardSigmoid": 2, "Selu": 2}
NAN_DIFFERS = words("Max Min PRelu Relu Sign Elu Celu Selu LeakyRelu ThresholdedRelu HardSwish HardSigmoid")
"""Operators whose NaN is not the same in onnxruntime and ONNX."""


@draws(10)
def unary(s: Sketch) -> None:
    kind = s.choice(UNARY)
    if since(kind) > s.opset or (s.special and kind in NAN_DIFFERS):
        return
    attributes: dict[str, object] = {}
    if s.chance(0.5):
        names = ("alpha", "beta" if kind == "HardSigmoid" else "gamma")[: ALPHA.get(kind, 0)]
        attributes = {name: s.choice((0.1, 0.25, 0.5, 1.5)) for name in names}
    if kind == "Gelu":
        attributes = {"approximate": s.choice(("none", "tanh"))}
    if kind == "IsInf" and s.chance(0.5):
        attributes = {s.choice(("detect_negative", "detect_positive")): 0}
    s.node(kind, [s.pick(types_of(kind, s.opset))], **attributes)


@draws(14)
def binary(s: Sketch) -> None:
    kind = s.choice(ARITHMETIC)
    if s.special and kind in NAN_DIFFERS:
        return
    a = s.pick(types_of(kind, s.opset))
    b = s.like(a)
    if kind == "PRelu" and not _broadcasts_into(s, b, a):
        return
    if s.chance(0.5) and kind != "PRelu":
        a, b = b, a
    if kind == "Div" and not divides(s, a, b):
        return
    if kind == "Pow":
        _power(s, a, b)
        return
    more = [s.like(a) for _ in range(s.integer(0, 2))] if kind in ("Max", "Min", "Sum", "Mean") else []
    if kind in ("Max", "Min") and s.type(a) == "i64" and max(_largest(s, x) for x in (a, b, *more)) >= 2**31:
        return  # onnxruntime compares halves of them
    s.node(kind, [a, b, *more] if s.chance(0.95) or not more else [a])


def _largest(s: Sketch, name: str) -> float:
    return float(np.abs(s.value(name).astype(np.float64)).max(initial=0.0))


def _power(s: Sketch, a: str, b: str) -> None:
    if s.chance(0.5):
        kind = s.choice(types_of("Pow", s.opset, 1))
        values = [0, 1, 2, 3] if DTYPES[kind].kind in "u" else [-2, -1, 0, 1, 2, 3]
        b = s.given(np.asarray(s.choice(values if not is_float(DTYPES[kind]) else [*values, 0.5, -0.5]), DTYPES[kind]))
    base, power = s.value(a), s.value(b)
    whole = not is_float(base.dtype)
    if whole and (power.astype(np.float64).min(initial=0) < 0 or is_float(power.dtype)):
        return  # undefined
    if whole and np.abs(base.astype(np.float64)).max(initial=0) ** power.astype(np.float64).max(initial=0) > 2**31:
        return
    s.node("Pow", [a, b])


def divides(s: Sketch, a: str, b: str) -> bool:
    """Whether a / b is defined: always for floats."""
    dividend, divisor = s.value(a), s.value(b)
    if is_float(divisor.dtype):
        return True
    least = dividend.dtype.kind == "i" and bool((dividend == np.iinfo(dividend.dtype).min).any())
    return not (divisor == 0).any() and not (least and (divisor == -1).any())


def _broadcasts_into(s: Sketch, name: str, into: str) -> bool:
    try:
        return np.broadcast_shapes(s.dims(name), s.dims(into)) == s.dims(into)
    except ValueError:
        return False


@draws(1)
def remainder(s: Sketch) -> None:
    a = s.pick(types_of("Mod", s.opset))
    b = s.like(a)
    floating = is_float(s.value(a).dtype)
    if not divides(s, a, b) or (floating and s.special):
        return
    signed = 1 if floating else s.integer(0, 1)
    if signed and not floating and max(_largest(s, a), _largest(s, b)) >= 2**53:
        return  # onnxruntime divides them as f64
    s.node("Mod", [a, b], fmod=signed)


@draws(3)
def comparison(s: Sketch) -> None:
    kind = s.choice(COMPARISONS)
    a = s.pick(types_of(kind, s.opset))
    s.node(kind, [a, s.like(a)])


@draws(2)
def logic(s: Sketch) -> None:
    kind = s.choice(LOGIC)
    if since(kind) <= s.opset:
        a = s.pick(types_of(kind, s.opset))
        s.node(kind, [a, s.like(a)])


@draws(1)
def shift(s: Sketch) -> None:
    a = s.pick(types_of("BitShift", s.opset))
    dtype = s.value(a).dtype
    by = s.given(np.asarray(s.rng.integers(0, 8 * dtype.itemsize, s.partner(s.dims(a))), dtype), s.chance(0.5))
    s.node("BitShift", [a, by], direction=s.choice(("LEFT", "RIGHT")))


@draws(3)
def where(s: Sketch) -> None:
    a = s.pick(types_of("Where", s.opset, 1))
    b = s.like(a)
    shape = np.broadcast_shapes(s.dims(a), s.dims(b))

    def fits(name: str) -> bool:
        try:
            return bool(np.prod(np.broadcast_shapes(shape, s.dims(name))) <= 20000)
        except ValueError:
            return False

    masks = [n for n in s.trace.copies if s.type(n) == "bool" and fits(n)]
    condition = s.choice(masks) if masks and s.chance(0.7) else s.new("bool", s.partner(shape))
    if fits(condition):
        s.node("Where", [condition, *([a, b] if s.chance(0.5) else [b, a])])


@draws(2)
def clip(s: Sketch) -> None:
    if s.special:
        return
    a = s.pick(types_of("Clip", s.opset))
    if s.type(a) == "i64" and _largest(s, a) >= 2**31:  # onnxruntime compares the lower halves only
        return
    dtype = s.value(a).dtype
    low = 1 if dtype.kind == "u" else -2
    ends = [s.given(np.asarray(low, dtype), s.chance(0.2)), s.given(np.asarray(5, dtype), s.chance(0.2))]
    s.node("Clip", [a, *(s.choice((end, end, "")) for end in ends)])


@draws(6)
def cast(s: Sketch) -> None:
    a, to = s.pick(ALL), s.choice(ALL)
    value, target = s.value(a), DTYPES[to]
    if is_float(value.dtype) and not is_float(target) and to != "bool":
        limits, wide = np.iinfo(target), value.astype(np.float64)
        inside = (
            np.isfinite(wide).all() and wide.max(initial=0) < float(limits.max) and wide.min(initial=0) >= limits.min
        )
        if not inside or (limits.bits < 32 and wide.min(initial=0) < 0 and target.kind == "u"):
            return
    if s.chance(0.1) and s.opset >= 15:
        s.node("CastLike", [a, s.pick((to,))])
    else:
        s.node("Cast", [a], to=helper.np_dtype_to_tensor_dtype(DTYPES[to]))
