"""Elementwise operators. Operands are cast to the type that PyTorch computes in, which ONNX does not do by itself."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import fx

from tilec.torch_backend.translation import Translation, UntranslatableError, translates
from tilec.torch_backend.values import ONNX_TYPES, Number, Size, Tensor

aten = torch.ops.aten
Operand = Tensor | Number


def result_type(node: fx.Node) -> torch.dtype:
    """The type of the elements of a node's result."""
    dtype: torch.dtype = node.meta["val"].dtype
    return dtype


def common_type(*operands: Operand) -> torch.dtype:
    """The type in which PyTorch combines operands."""
    tensors = [torch.empty((1,) * o.rank, dtype=o.dtype, device="meta") for o in operands if isinstance(o, Tensor)]
    numbers = [_like(o) for o in operands if not isinstance(o, Tensor)]
    everything: list[Any] = [*tensors, *numbers]
    dtype = torch.result_type(everything[0], everything[-1])
    return dtype if len(everything) > 1 else tensors[0].dtype


def _like(number: Number) -> float:
    """A number of the kind of one that may vary."""
    return (1.0 if number.dtype.is_floating_point else 1) if isinstance(number, Size) else number


_UNARY = {
    "Abs": aten.abs.default,
    "Acos": aten.acos.default,
    "Acosh": aten.acosh.default,
    "Asin": aten.asin.default,
    "Asinh": aten.asinh.default,
    "Atan": aten.atan.default,
    "Atanh": aten.atanh.default,
    "Cos": aten.cos.default,
    "Cosh": aten.cosh.default,
    "Erf": aten.erf.default,
    "Exp": aten.exp.default,
    "Log": aten.log.default,
    "Neg": aten.neg.default,
    "Reciprocal": aten.reciprocal.default,
    "Relu": aten.relu.default,
    "Sigmoid": aten.sigmoid.default,
    "Sin": aten.sin.default,
    "Sinh": aten.sinh.default,
    "Sqrt": aten.sqrt.default,
    "Tan": aten.tan.default,
    "Tanh": aten.tanh.default,
}

for _name, _target in _UNARY.items():

    def _unary(t: Translation, node: fx.Node, x: Tensor, name: str = _name) -> str:
        return t.emit(name, t.cast(x, result_type(node)))

    translates(_target)(_unary)

_BINARY = {
    "Add": (aten.add.Tensor, aten.add.Scalar),
    "Sub": (aten.sub.Tensor, aten.sub.Scalar),
    "Mul": (aten.mul.Tensor, aten.mul.Scalar),
    "Div": (aten.div.Tensor, aten.div.Scalar, aten.true_divide.Tensor),
    "Max": (aten.maximum.default,),
    "Min": (aten.minimum.default,),
}

for _name, _targets in _BINARY.items():

    def _binary(t: Translation, node: fx.Node, x: Operand, y: Operand, alpha: float = 1, name: str = _name) -> str:
        dtype = result_type(node)
        right = t.operand(y, dtype)
        if alpha != 1:
            right = t.emit("Mul", right, t.literal(alpha, dtype))
        if dtype == torch.bool:
            name = {"Add": "Or", "Max": "Or", "Mul": "And", "Min": "And"}[name]
        return t.emit(name, t.operand(x, dtype), right)

    translates(*_targets)(_binary)

_COMPARISONS = {
    "Equal": (aten.eq.Tensor, aten.eq.Scalar),
    "Less": (aten.lt.Tensor, aten.lt.Scalar),
    "LessOrEqual": (aten.le.Tensor, aten.le.Scalar),
    "Greater": (aten.gt.Tensor, aten.gt.Scalar),
    "GreaterOrEqual": (aten.ge.Tensor, aten.ge.Scalar),
}

for _name, _targets in _COMPARISONS.items():

    def _comparison(t: Translation, node: fx.Node, x: Operand, y: Operand, name: str = _name) -> str:
        dtype = common_type(x, y)
        left, right = t.operand(x, dtype), t.operand(y, dtype)
        if dtype == torch.bool and name != "Equal":  # ONNX has no order of truth values
            left, right = (t.emit("Cast", each, to=ONNX_TYPES[torch.int32]) for each in (left, right))
        return t.emit(name, left, right)

    translates(*_targets)(_comparison)


@translates(aten.ne.Tensor, aten.ne.Scalar)
def _different(t: Translation, node: fx.Node, x: Operand, y: Operand) -> str:
    dtype = common_type(x, y)
    return t.emit("Not", t.emit("Equal", t.operand(x, dtype), t.operand(y, dtype)))


for _name, _target in {
    "And": aten.logical_and.default,
    "Or": aten.logical_or.default,
    "Xor": aten.logical_xor.default,
}.items():

    def _logical(t: Translation, node: fx.Node, x: Tensor, y: Tensor, name: str = _name) -> str:
        return t.emit(name, t.cast(x, torch.bool), t.cast(y, torch.bool))

    translates(_target)(_logical)

_BITS = {
    ("BitwiseAnd", "And"): (aten.bitwise_and.Tensor, aten.bitwise_and.Scalar),
    ("BitwiseOr", "Or"): (aten.bitwise_or.Tensor, aten.bitwise_or.Scalar),
    ("BitwiseXor", "Xor"): (aten.bitwise_xor.Tensor, aten.bitwise_xor.Scalar),
}

for _names, _targets in _BITS.items():

    def _bits(t: Translation, node: fx.Node, x: Operand, y: Operand, names: tuple[str, str] = _names) -> str:
        dtype = result_type(node)
        return t.emit(names[dtype == torch.bool], t.operand(x, dtype), t.operand(y, dtype))

    translates(*_targets)(_bits)


_LEFT = (aten.__lshift__.Scalar, aten.bitwise_left_shift.Tensor_Scalar)
_RIGHT = (aten.__rshift__.Scalar, aten.bitwise_right_shift.Tensor_Scalar)


@translates(*_LEFT, *_RIGHT)
def _shift(t: Translation, node: fx.Node, x: Tensor, places: int) -> str:
    """By a known number of places: a product, or a quotient that is rounded down."""
    if not isinstance(places, int) or not 0 <= places < torch.iinfo(x.dtype).bits - x.dtype.is_signed:
        raise UntranslatableError("a shift by places that vary, or by more than the type has")
    factor = t.literal(1 << places, x.dtype)
    if node.target in _LEFT:
        return t.emit("Mul", x.name, factor)
    return t.emit("Div", t.emit("Sub", x.name, t.emit("Mod", x.name, factor)), factor)


@translates(aten.logical_not.default)
def _not(t: Translation, node: fx.Node, x: Tensor) -> str:
    return t.emit("Not", t.cast(x, torch.bool))


@translates(aten.bitwise_not.default)
def _bitwise_not(t: Translation, node: fx.Node, x: Tensor) -> str:
    return t.emit("Not" if x.dtype == torch.bool else "BitwiseNot", x.name)


@translates(aten.ceil.default, aten.floor.default, aten.round.default)
def _whole(t: Translation, node: fx.Node, x: Tensor) -> str:
    if not x.dtype.is_floating_point:
        return x.name
    ops = {aten.ceil.default: "Ceil", aten.floor.default: "Floor", aten.round.default: "Round"}
    return t.emit(ops[node.target], x.name)


@translates(aten.isnan.default, aten.isinf.default)
def _is_special(t: Translation, node: fx.Node, x: Tensor) -> str:
    """Integers are numbers, and finite."""
    if not x.dtype.is_floating_point:
        return t.emit("Expand", t.literal(False, torch.bool), t.emit("Shape", x.name))
    return t.emit("IsNaN" if node.target is aten.isnan.default else "IsInf", x.name)


@translates(aten.sign.default)
def _sign(t: Translation, node: fx.Node, x: Tensor) -> str:
    """0 of NaN, which ONNX keeps."""
    if not x.dtype.is_floating_point:
        return x.name if x.dtype == torch.bool else t.emit("Sign", x.name)
    return t.emit("Where", t.emit("IsNaN", x.name), t.literal(0, x.dtype), t.emit("Sign", x.name))


@translates(aten.atan2.default)
def _angle(t: Translation, node: fx.Node, y: Tensor, x: Tensor) -> str:
    """The angle of the quotient, half a turn further on where x is negative; the sign of 0 is its reciprocal's."""
    dtype = result_type(node)
    up, right = t.cast(y, dtype), t.cast(x, dtype)
    zero, turn = t.literal(0, dtype), t.literal(math.pi, dtype)
    up_sign = _negative(t, up, dtype)
    half = t.emit("Where", up_sign, t.emit("Neg", turn), turn)
    both = t.emit("And", t.emit("IsInf", up), t.emit("IsInf", right))
    one = t.literal(1, dtype)
    signs = [t.emit("Where", _negative(t, each, dtype), t.literal(-1, dtype), one) for each in (up, right)]
    slope = t.emit("Where", both, t.emit("Mul", *signs), t.emit("Div", up, right))
    none = t.emit("And", t.emit("Equal", up, zero), t.emit("Equal", right, zero))
    slope = t.emit("Where", none, t.emit("Mul", zero, t.emit("Mul", *signs)), slope)
    base = t.emit("Atan", slope)
    return t.emit("Where", _negative(t, right, dtype), t.emit("Add", base, half), base)


def _negative(t: Translation, name: str, dtype: torch.dtype) -> str:
    """Whether a number has the sign bit, zeros included; NaN has not."""
    zero = t.literal(0, dtype)
    below = t.emit("Less", t.emit("Div", t.literal(1, dtype), name), zero)
    return t.emit("Or", t.emit("Less", name, zero), t.emit("And", t.emit("Equal", name, zero), below))


@translates(aten.hypot.default)
def _hypotenuse(t: Translation, node: fx.Node, x: Tensor, y: Tensor) -> str:
    """By the longer side, so that no square is too large or too small."""
    dtype = result_type(node)
    a, b = (t.emit("Abs", t.cast(each, dtype)) for each in (x, y))
    long, short = t.emit("Max", a, b), t.emit("Min", a, b)
    zero, one = t.literal(0, dtype), t.literal(1, dtype)
    ratio = t.emit("Div", short, t.emit("Where", t.emit("Equal", long, zero), one, long))
    made = t.emit("Mul", long, t.emit("Sqrt", t.emit("Add", one, t.emit("Mul", ratio, ratio))))
    endless = t.emit("Or", t.emit("IsInf", a), t.emit("IsInf", b))
    return t.emit("Where", endless, t.literal(math.inf, dtype), made)


@translates(aten.round.decimals)
def _round_to(t: Translation, node: fx.Node, x: Tensor, *, decimals: int) -> str:
    factor = t.literal(10.0 ** abs(decimals), x.dtype)
    up, down = ("Mul", "Div") if decimals >= 0 else ("Div", "Mul")
    return t.emit(down, t.emit("Round", t.emit(up, x.name, factor)), factor)


@translates(aten.exp2.default)
def _exp2(t: Translation, node: fx.Node, x: Tensor) -> str:
    dtype = result_type(node)
    return t.emit("Pow", t.literal(2, dtype), t.cast(x, dtype))


@translates(aten.fmax.default, aten.fmin.default)
def _without_nan(t: Translation, node: fx.Node, x: Operand, y: Operand) -> str:
    """NaN only where both are."""
    dtype = result_type(node)
    left, right = t.operand(x, dtype), t.operand(y, dtype)
    op = "Max" if node.target is aten.fmax.default else "Min"
    if not dtype.is_floating_point:
        return t.emit(op, left, right)
    best = t.emit("Where", t.emit("IsNaN", right), left, t.emit(op, left, right))
    return t.emit("Where", t.emit("IsNaN", left), right, best)


@translates(aten.pow.Tensor_Scalar, aten.pow.Tensor_Tensor, aten.pow.Scalar)
def _power(t: Translation, node: fx.Node, x: Operand, y: Operand) -> str:
    """Small powers as products: they are exact where PyTorch's are."""
    dtype = result_type(node)
    base = t.operand(x, dtype)
    if isinstance(y, int | float) and not isinstance(y, bool):
        if y == 1:
            return t.emit("Identity", base)
        if y == 2:
            return t.emit("Mul", base, base)
        if y == 3:
            return t.emit("Mul", t.emit("Mul", base, base), base)
        if dtype.is_floating_point and y == 0.5:
            return t.emit("Sqrt", base)
        if dtype.is_floating_point and y == -0.5:
            return t.emit("Reciprocal", t.emit("Sqrt", base))
    return t.emit("Pow", base, t.operand(y, dtype))


@translates(aten.rsqrt.default)
def _rsqrt(t: Translation, node: fx.Node, x: Tensor) -> str:
    return t.emit("Reciprocal", t.emit("Sqrt", t.cast(x, result_type(node))))


@translates(aten.expm1.default)
def _expm1(t: Translation, node: fx.Node, x: Tensor) -> str:
    """`exp(x) - 1`; near 0, where that cancels, `2 tanh(x/2) / (1 - tanh(x/2))`."""
    dtype = result_type(node)
    name, one = t.cast(x, dtype), t.literal(1, dtype)
    half = t.emit("Tanh", t.emit("Mul", name, t.literal(0.5, dtype)))
    small = t.emit("Div", t.emit("Add", half, half), t.emit("Sub", one, half))
    near = t.emit("Less", t.emit("Abs", name), one)
    return t.emit("Where", near, small, t.emit("Sub", t.emit("Exp", name), one))


@translates(aten.log2.default, aten.log10.default)
def _logarithm(t: Translation, node: fx.Node, x: Tensor) -> str:
    dtype = result_type(node)
    base = 2 if node.target is aten.log2.default else 10
    return t.emit("Mul", t.emit("Log", t.cast(x, dtype)), t.literal(1 / math.log(base), dtype))


@translates(aten.trunc.default)
def _truncated(t: Translation, node: fx.Node, x: Tensor) -> str:
    if not x.dtype.is_floating_point:
        return x.name
    return t.emit("Mul", t.emit("Sign", x.name), t.emit("Floor", t.emit("Abs", x.name)))


@translates(aten.div.Tensor_mode, aten.div.Scalar_mode)
def _rounded_quotient(t: Translation, node: fx.Node, x: Operand, y: Operand, rounding_mode: str | None = None) -> str:
    dtype = result_type(node)
    left, right = t.operand(x, dtype), t.operand(y, dtype)
    if rounding_mode is None:
        return t.emit("Div", left, right)
    if not dtype.is_floating_point:
        if rounding_mode == "trunc":
            return t.emit("Div", left, right)
        return t.emit("Div", t.emit("Sub", left, t.emit("Mod", left, right)), right)
    quotient = Tensor(t.emit("Div", left, right), (), dtype)
    return t.emit("Floor", quotient.name) if rounding_mode == "floor" else _truncated(t, node, quotient)


@translates(aten.remainder.Tensor, aten.remainder.Scalar, aten.remainder.Scalar_Tensor)
def _remainder(t: Translation, node: fx.Node, x: Operand, y: Operand) -> str:
    """The sign of the divisor, as in Python."""
    dtype = result_type(node)
    left, right = t.operand(x, dtype), t.operand(y, dtype)
    if not dtype.is_floating_point:
        return t.emit("Mod", left, right)
    whole = t.emit("Floor", t.emit("Div", left, right))
    return t.emit("Sub", left, t.emit("Mul", whole, right))


@translates(torch.ops.prims.fma.default)
def _product_and_sum(t: Translation, node: fx.Node, x: Operand, y: Operand, z: Operand) -> str:
    dtype = result_type(node)
    return t.emit("Add", t.emit("Mul", t.operand(x, dtype), t.operand(y, dtype)), t.operand(z, dtype))


@translates(aten.fmod.Tensor, aten.fmod.Scalar)
def _fmod(t: Translation, node: fx.Node, x: Operand, y: Operand) -> str:
    dtype = result_type(node)
    return t.emit("Mod", t.operand(x, dtype), t.operand(y, dtype), fmod=1)


@translates(aten.clamp.default, aten.clamp.Tensor)
def _clamped(
    t: Translation, node: fx.Node, x: Tensor, least: Operand | None = None, most: Operand | None = None
) -> str:
    dtype = result_type(node)
    name = t.cast(x, dtype)
    if least is not None:
        name = t.emit("Max", name, t.operand(least, dtype))
    return name if most is None else t.emit("Min", name, t.operand(most, dtype))


@translates(aten.clamp_min.default, aten.clamp_max.default)
def _one_side(t: Translation, node: fx.Node, x: Tensor, limit: Operand) -> str:
    op = "Max" if node.target is aten.clamp_min.default else "Min"
    return t.emit(op, t.cast(x, result_type(node)), t.operand(limit, result_type(node)))


@translates(aten.hardtanh.default)
def _hardtanh(t: Translation, node: fx.Node, x: Tensor, least: float = -1, most: float = 1) -> str:
    return _clamped(t, node, x, least, most)


@translates(aten.where.self, aten.where.ScalarSelf, aten.where.ScalarOther, aten.where.Scalar)
def _where(t: Translation, node: fx.Node, condition: Tensor, x: Operand, y: Operand) -> str:
    dtype = result_type(node)
    return t.emit("Where", t.cast(condition, torch.bool), t.operand(x, dtype), t.operand(y, dtype))


@translates(aten._to_copy.default, torch.ops.prims.convert_element_type.default)
def _converted(t: Translation, node: fx.Node, x: Tensor, *_args: Any, **_: Any) -> str:
    return t.emit("Cast", x.name, to=ONNX_TYPES[result_type(node)])


@translates(aten._neg_view.default)
def _negated(t: Translation, node: fx.Node, x: Tensor) -> str:
    return t.emit("Neg", x.name)


@translates(
    aten.clone.default,
    aten.alias.default,
    aten.detach.default,
    aten.lift_fresh_copy.default,
    aten.resolve_conj.default,
    aten.resolve_neg.default,
)
def _same(t: Translation, node: fx.Node, x: Tensor, **_: Any) -> str:
    return t.emit("Identity", x.name)


@translates(aten.copy.default)
def _copied(t: Translation, node: fx.Node, x: Tensor, source: Tensor, *_: bool) -> str:
    """The source in the shape and type of a tensor that it overwrites."""
    return t.emit("Expand", t.cast(source, x.dtype), t.emit("Shape", x.name))


@translates(aten.gelu.default)
def _gelu(t: Translation, node: fx.Node, x: Tensor, approximate: str = "none") -> str:
    dtype = x.dtype
    half, one = t.literal(0.5, dtype), t.literal(1, dtype)
    if approximate == "none":
        inner = t.emit("Erf", t.emit("Mul", x.name, t.literal(math.sqrt(0.5), dtype)))
    else:
        cube = t.emit("Mul", t.emit("Mul", x.name, x.name), x.name)
        total = t.emit("Add", x.name, t.emit("Mul", cube, t.literal(0.044715, dtype)))
        inner = t.emit("Tanh", t.emit("Mul", total, t.literal(math.sqrt(2 / math.pi), dtype)))
    return t.emit("Mul", t.emit("Mul", x.name, half), t.emit("Add", inner, one))


@translates(aten.silu.default)
def _silu(t: Translation, node: fx.Node, x: Tensor) -> str:
    return t.emit("Mul", x.name, t.emit("Sigmoid", x.name))


@translates(aten.leaky_relu.default)
def _leaky_relu(t: Translation, node: fx.Node, x: Tensor, slope: float = 0.01) -> str:
    return t.emit("LeakyRelu", x.name, alpha=float(slope))


@translates(aten.elu.default)
def _elu(t: Translation, node: fx.Node, x: Tensor, alpha: float = 1, scale: float = 1, inner: float = 1) -> str:
    if inner != 1:
        raise UntranslatableError(f"{node.target} with an input scale of {inner}")
    made = t.emit("Elu", x.name, alpha=float(alpha))
    return made if scale == 1 else t.emit("Mul", made, t.literal(scale, x.dtype))


@translates(aten.hardswish.default)
def _hardswish(t: Translation, node: fx.Node, x: Tensor) -> str:
    return t.emit("HardSwish", x.name)


@translates(aten.hardsigmoid.default)
def _hardsigmoid(t: Translation, node: fx.Node, x: Tensor) -> str:
    return t.emit("HardSigmoid", x.name, alpha=1 / 6, beta=0.5)


@translates(aten.softplus.default)
def _softplus(t: Translation, node: fx.Node, x: Tensor, beta: float = 1, threshold: float = 20) -> str:
    dtype = x.dtype
    scaled = t.emit("Mul", x.name, t.literal(beta, dtype))
    soft = t.emit("Div", t.emit("Softplus", scaled), t.literal(beta, dtype))
    return t.emit("Where", t.emit("Greater", scaled, t.literal(threshold, dtype)), x.name, soft)


@translates(aten.log1p.default)
def _log1p(t: Translation, node: fx.Node, x: Tensor) -> str:
    """`log(u) x / (u - 1)` for `u = 1 + x` below 1, as exact as x where u has lost its digits (Kahan)."""
    dtype = result_type(node)
    name, one = t.cast(x, dtype), t.literal(1, dtype)
    whole = t.emit("Add", name, one)
    log, apart = t.emit("Log", whole), t.emit("Sub", whole, one)
    small = t.emit(
        "Where", t.emit("Equal", apart, t.literal(0, dtype)), name, t.emit("Div", t.emit("Mul", log, name), apart)
    )
    return t.emit("Where", t.emit("Less", t.emit("Abs", name), one), small, log)
