"""Elementwise arithmetic, comparison, logic, selection and casts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
from onnx import TensorProto

from tilec.importer.element_types import ELEMENT_TYPES, element_type_name
from tilec.importer.operator import Op
from tilec.importer.ops.centering import less_mean
from tilec.importer.ops.quantized import saturated
from tilec.importer.registry import operator
from tilec.importer.sums import summed
from tilec.importer.value import Value
from tilec.ir.types import TTYPES, is_float, numpy_dtype

UNARY = {
    "Abs": "abs(x)",
    "Acos": "acos(x)",
    "Acosh": "acosh(x)",
    "Asin": "asin(x)",
    "Asinh": "asinh(x)",
    "Atan": "atan(x)",
    "Atanh": "atanh(x)",
    "BitwiseNot": "bitnot(x)",
    "Ceil": "ceil(x)",
    "Cos": "cos(x)",
    "Cosh": "cosh(x)",
    "Erf": "erf(x)",
    "Exp": "exp(x)",
    "Floor": "floor(x)",
    "IsNaN": "isnan(x)",
    "Log": "log(x)",
    "Neg": "-x",
    "Not": "not x",
    "Reciprocal": "1.0 / x",
    "Round": "round(x)",
    "Sign": "sign(x)",
    "Sin": "sin(x)",
    "Sinh": "sinh(x)",
    "Sqrt": "sqrt(x)",
    "Tan": "tan(x)",
}

BINARY = {
    "Add": "a + b",
    "And": "a and b",
    "BitwiseAnd": "bitand(a, b)",
    "BitwiseOr": "bitor(a, b)",
    "BitwiseXor": "bitxor(a, b)",
    "Equal": "a == b",
    "Greater": "a > b",
    "GreaterOrEqual": "a >= b",
    "Less": "a < b",
    "LessOrEqual": "a <= b",
    "Mul": "a * b",
    "Or": "a or b",
    "Xor": "a != b",
}

VARIADIC = {"Max": "maximum({}, {})", "Mean": "{} + {}", "Min": "minimum({}, {})", "Sum": "{} + {}"}

POWERS = {
    -1.0: "1.0 / x",
    -0.5: "where(x == -inf, 0.0, 1.0 / abs(sqrt(x)))",
    0.5: "where(x == -inf, inf, abs(sqrt(x)))",
    1.0: "x",
    2.0: "x * x",
    3.0: "x * x * x",
}
"""Exponents with an exactly rounded or cheap form, special-cased as in frameworks; powers of -0 are not negative."""


@operator(*UNARY)
def _unary(op: Op) -> Value:
    return op.map(UNARY[op.kind], x=op.value(0))


@operator(*BINARY)
def _binary(op: Op) -> Value:
    return op.map(BINARY[op.kind], a=op.value(0), b=op.value(1))


MAX_OPERANDS = 64
"""Maximal number of operands combined in one body; more are combined in groups, so that bodies stay small."""


@operator(*VARIADIC)
def _variadic(op: Op) -> Value:
    values = list(op.values())
    total = len(values)
    while len(values) > MAX_OPERANDS:
        groups = [values[start : start + MAX_OPERANDS] for start in range(0, len(values), MAX_OPERANDS)]
        values = [op.elementwise(*_combined(op.kind, group), part="part") for group in groups]
    text, operands = _combined(op.kind, values)
    return op.elementwise(f"({text}) / {float(total)}" if op.kind == "Mean" else text, operands)


def _combined(kind: str, values: Sequence[Value]) -> tuple[str, dict[str, Value]]:
    operands = {f"x{number}": value for number, value in enumerate(values)}
    return reduce(VARIADIC[kind].format, operands), operands


@operator("Sub")
def _sub(op: Op) -> Value:
    a, b = op.value(0), op.value(1)
    if b.mean is not None and b.mean[0] == a.name:
        return less_mean(op, a, b, b.mean[1])
    return op.map("a - b", a=a, b=b)


@operator("Div")
def _div(op: Op) -> Value:
    """Integer division truncates towards zero."""
    a, b = op.value(0), op.value(1)
    floating = TTYPES[a.ttype].kind == "float"
    return op.map("a / b" if floating else "truncdiv(a, b)", a=a, b=b)


@operator("Mod")
def _mod(op: Op) -> Value:
    """With `fmod` the remainder has the dividend's sign, without it the divisor's."""
    a, b = op.value(0), op.value(1)
    if op.integer("fmod"):
        return op.map("fmod(a, b)", a=a, b=b)
    if TTYPES[a.ttype].kind == "float":
        raise op.invalid("fmod=0 needs integers", "Set the attribute fmod to 1.")
    return op.map("a % b", a=a, b=b)


def _common(base: str, exponent: str) -> str:
    """The integer type that holds both; none does where the exponent is u64."""
    both = np.promote_types(numpy_dtype(base), numpy_dtype(exponent))
    return f"{both.kind}{8 * both.itemsize}" if both.kind in "iu" else ""


_LOW, _HIGH = (1 << 62) - 1, 1 << 62
_SIGNED_POWER = f"pow(i64(x), i64(where(y < {_HIGH}, y, bitor(bitand(y, {_LOW}), {_HIGH}))))"
"""A signed x to the power of a u64: modulo 2**64 powers of odd numbers repeat after 2**62, of even ones 64 are 0."""


@operator("Pow")
def _pow(op: Op) -> Value:
    """The result has the type of the base."""
    x, y = op.value(0), op.value(1)
    floating = TTYPES[x.ttype].kind == "float"
    exponent = None if y.literal is None else float(y.literal.value)
    if exponent in POWERS and (floating or exponent >= 1):
        return op.map(POWERS[exponent], x=x, y=y)
    if not floating and TTYPES[y.ttype].kind == "float":
        return op.map(f"{x.ttype}(pow(f64(x), f64(y)))", x=x, y=y)
    if x.ttype == y.ttype:
        return op.map("pow(x, y)", x=x, y=y)
    # An exponent of another type is not rounded to half precision, nor wrapped to fewer bits.
    wide = summed(x.ttype) if floating else _common(x.ttype, y.ttype)
    if not wide:
        return op.map(f"{x.ttype}({_SIGNED_POWER})", x.ttype, x=x, y=y)
    if wide == x.ttype:
        return op.map(f"pow(x, {wide}(y))", x=x, y=y)
    power = f"pow({wide}(x), {wide}(y))"
    return op.map(power if floating else f"{x.ttype}({power})", x.ttype, x=x, y=y)


@operator("BitShift")
def _shift(op: Op) -> Value:
    fn = {"LEFT": "shl", "RIGHT": "shr"}.get(op.text("direction"))
    if fn is None:
        raise op.invalid(f"direction is {op.text('direction')!r}", "It must be LEFT or RIGHT.")
    return op.map(f"{fn}(a, b)", a=op.value(0), b=op.value(1))


@operator("IsInf")
def _isinf(op: Op) -> Value:
    x = op.value(0)
    above, below = op.integer("detect_positive", 1), op.integer("detect_negative", 1)
    if above and below:
        return op.map("isinf(x)", x=x)
    if not above and not below:
        return op.full(x.shape, False, "bool")
    return op.map("x == inf" if above else "x == -inf", x=x)


@operator("Where")
def _where(op: Op) -> Value:
    return op.map("where(c, a, b)", c=op.value(0), a=op.value(1), b=op.value(2))


LARGEST_FINITE = {
    "bf16": 3.3895313892515355e38,
    "f16": 65504.0,
    "f32": 3.4028234663852886e38,
    "f64": 1.7976931348623157e308,
}
"""The largest finite number of each floating-point type."""


@operator("Clip")
def _clip(op: Op) -> Value:
    """Limits are attributes before opset 11, inputs since; the upper one wins when they cross.

    An absent limit is the largest finite number, so that infinities are clipped.
    """
    text = "x"
    operands: dict[str, Value | float] = {"x": op.value(0)}
    largest = LARGEST_FINITE.get(op.value(0).ttype)
    for position, name, fn, sign in ((1, "min", "maximum", -1), (2, "max", "minimum", 1)):
        limit: Value | float | None = op.optional(position)
        if limit is None and name in op.attributes:
            limit = op.number(name)
        if limit is None and largest is not None:
            limit = sign * largest
        if limit is not None:
            text = f"{fn}({text}, {name}_)"
            operands[f"{name}_"] = limit
    return op.elementwise(text, operands)


@operator("Cast", "CastLike")
def _cast(op: Op) -> Value:
    x = op.value(0)
    ttype = op.value(1).ttype if op.kind == "CastLike" else _wanted(op)
    if ttype == x.ttype:
        return x
    if not TTYPES[ttype].coded or not is_float(ttype):
        return op.map(f"{ttype}(x)", ttype, x=x)
    return op.map(f"{ttype}({_limited(op, ttype)})", ttype, x=x)


def _limited(op: Op, ttype: str) -> str:
    """The number that is rounded to a coded type: within its range where it saturates; to a power of two upwards,
    downwards or to the nearest one."""
    if ttype == "e8m0":
        bits = {"up": "bits_u32(f32(x)) + 8388607", "down": "bits_u32(f32(x))"}.get(op.text("round_mode", "up"))
        rounded = "f32(x)" if bits is None else f"bits_f32(bitand({bits}, 4286578688))"
        return rounded if not op.integer("saturate", 1) else f"minimum({rounded}, {TTYPES[ttype].maximum!r})"
    return saturated("f32(x)", ttype) if op.integer("saturate", 1) else "f32(x)"


@operator("BitCast")
def _bit_cast(op: Op) -> Value:
    """The same bits as another type; booleans are bytes of 0 and 1."""
    x, ttype = op.value(0), _wanted(op)
    if TTYPES[ttype].bits != TTYPES[x.ttype].bits:
        raise op.invalid(f"the bits of {x.ttype} as {ttype}", "Both types must have the same width.")
    if ttype == x.ttype:
        return x
    return op.map(f"{ttype}(x)" if "bool" in (ttype, x.ttype) else f"bits_{ttype}(x)", x=x)


def _wanted(op: Op) -> str:
    """The type in the attribute `to`."""
    code = op.integer("to")
    ttype = ELEMENT_TYPES.get(code)
    if code not in TensorProto.DataType.values() or code == TensorProto.UNDEFINED:
        raise op.invalid(f"the attribute 'to' is {code}, which is no element type")
    if ttype is None:
        raise op.unsupported(f"element type {element_type_name(code)} (attribute 'to')")
    return ttype
