"""A judge of quantised models: integers exactly, floats in single precision, with what orders of sums may alter.

Integers are exact numbers of int64 and saturate where ONNX says so. Elementwise floats are those of IEEE single
precision. A sum of products of floats is exact where no order of single precision rounds it (scales that are powers of
two), and otherwise known within `error`, as is all that is computed from it. A product that is added to something is
rounded before, as ONNX says, or once with the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
import onnx
from fuzz.reference import NoReference
from onnx import NodeProto, TensorProto, helper, numpy_helper

from quantised.known import ULP, Array, Known, dtype_of, kind_of, limits
from quantised.window import Attributes, Window


@dataclass
class Judgement:
    """Every tensor of a model on its inputs."""

    opset: int
    known: dict[str, Known] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Array:
        return self.known[name].array

    def run(self, node: NodeProto) -> None:
        """Evaluate a node. Raises NoReference."""
        rule = _RULES.get((node.domain, node.op_type))
        if rule is None:
            raise NoReference(node.op_type)
        given = [self.known[name] if name else None for name in node.input]
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        with np.errstate(all="ignore"):
            made = rule(given, attributes)
        for name, value in zip(node.output, (made,) if isinstance(made, Known) else made, strict=False):
            self.known[name] = value

    def difference(self, name: str, found: Array) -> str:
        """What is wrong with an output; nothing when it is right."""
        wanted = self.known[name]
        if (found.shape, found.dtype) != (wanted.numbers.shape, dtype_of(wanted.kind)):
            return f"{name}: {found.dtype}{list(found.shape)} instead of {wanted.kind}{list(wanted.numbers.shape)}"
        got, right = found.astype(np.float64), wanted.numbers.astype(np.float64)
        wrong = ~(np.abs(got - right) <= wanted.error)
        if not wrong.any():
            return ""
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        off = f"{found[at]!r} instead of {wanted.numbers[at]!r} (within {wanted.error[at]:.3g})"
        return f"{name}: {off} at {list(at)}, {int(wrong.sum())} of {wrong.size} elements"


def evaluate(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> Judgement:
    """Every tensor of a model. Raises NoReference."""
    judged = Judgement(next(o.version for o in model.opset_import if not o.domain))
    given = dict(feeds) | {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    judged.known |= {name: Known.read(np.asarray(array)) for name, array in given.items()}
    for node in model.graph.node:
        judged.run(node)
    return judged


Given = Sequence[Known | None]
Rule = Callable[[Given, Attributes], "Known | tuple[Known, ...]"]

_RULES: dict[tuple[str, str], Rule] = {}


def _rule(*kinds: str, domain: str = "") -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        _RULES.update({(domain, kind): rule for kind in kinds})
        return rule

    return register


def _operand(given: Given, place: int) -> Known:
    value = given[place] if place < len(given) else None
    assert value is not None
    return value


def _optional(given: Given, place: int) -> Known | None:
    return given[place] if place < len(given) else None


# conversions


def _along(value: Known, like: Array, axis: int, block: int) -> Array:
    """A scale or zero point, broadcast to the shape of a tensor."""
    numbers = value.numbers
    if numbers.size == 1:
        return numbers.reshape(())
    if block:
        return np.repeat(numbers, block, axis)[tuple(slice(0, n) for n in like.shape)]
    shape = [1] * like.ndim
    shape[axis] = -1
    return numbers.reshape(shape)


def _rounded(real: Array, error: Array, zero: Array, kind: str) -> Known:
    """`saturate(round(real) + zero)`, and how far the integer is off where the real number may be."""
    low, high = limits(kind)

    def whole(x: Array) -> Array:
        return np.asarray(np.clip(np.rint(x) + zero, low, high))

    middle, wide = whole(real), real.astype(np.float64)
    off = np.maximum(np.abs(whole(wide + error) - middle), np.abs(middle - whole(wide - error)))
    return Known.of(kind, middle, np.where(error > 0, off, 0.0))


@_rule("QuantizeLinear")
def _quantize(given: Given, a: Attributes) -> Known:
    x, scale, zero = _operand(given, 0), _operand(given, 1), _optional(given, 2)
    axis, block = a.get("axis", 1), a.get("block_size", 0)
    kind = zero.kind if zero is not None else _kind(a.get("output_dtype", 0) or TensorProto.UINT8)
    s = _along(scale, x.numbers, axis, block)
    shift = np.zeros((), np.int64) if zero is None else _along(zero, x.numbers, axis, block)
    real = x.numbers / s
    return _rounded(real, np.where(x.error > 0, x.error / s + 2 * ULP * np.abs(real), 0.0), shift, kind)


def _kind(code: int) -> str:
    return kind_of(helper.tensor_dtype_to_np_dtype(code))


@_rule("DequantizeLinear")
def _dequantize(given: Given, a: Attributes) -> Known:
    x, scale, zero = _operand(given, 0), _operand(given, 1), _optional(given, 2)
    axis, block = a.get("axis", 1), a.get("block_size", 0)
    s = _along(scale, x.numbers, axis, block)
    shift = 0 if zero is None else _along(zero, x.numbers, axis, block)
    return Known.product((x.numbers - shift).astype(np.float32), s, x.error * s)


@_rule("DynamicQuantizeLinear")
def _dynamic(given: Given, _: Attributes) -> tuple[Known, ...]:
    x = _operand(given, 0)
    if not x.exact:
        raise NoReference("the range of a float that is not known exactly")
    low, high = np.minimum(x.numbers.min(), np.float32(0)), np.maximum(x.numbers.max(), np.float32(0))
    scale = np.float32(1) if low == high else (high - low) / np.float32(255)
    zero = np.clip(np.rint(-low / scale), 0, 255)
    return (
        _rounded(x.numbers / scale, np.zeros(x.numbers.shape), zero, "u8"),
        Known.of("f32", scale),
        Known.of("u8", zero),
    )


@_rule("Cast")
def _cast(given: Given, a: Attributes) -> Known:
    x, kind = _operand(given, 0), _kind(a["to"])
    if kind == "f32":
        return Known.of(kind, x.numbers.astype(np.float32), x.error)
    low, high = limits(kind)
    if x.kind == "f32" or not x.exact or x.numbers.min(initial=0) < low or x.numbers.max(initial=0) > high:
        raise NoReference("a cast to a type that does not hold the number")
    return Known.of(kind, x.numbers)


# sums


def _total(left: Array, right: Array, contract: Callable[[Array, Array], Array]) -> Array:
    """An exact sum of products of integers, which wraps around like i32."""
    return contract(left, right).astype(np.int64).astype(np.int32).astype(np.int64)


def _integer_sum(a: Known, b: Known, left: Array, right: Array, contract: Callable[[Array, Array], Array]) -> Known:
    total = _total(left, right, contract)
    error = np.zeros(total.shape)
    if not a.exact or not b.exact:
        x, y = (np.abs(each).astype(np.float64) for each in (left, right))
        error = contract(a.error, y) + contract(x, b.error) + contract(a.error, b.error)
    return Known.of("i32", total, error)


def _quantum(x: Array) -> float:
    """The largest power of two that divides every number."""
    mantissa, exponent = np.frexp(x[x != 0].astype(np.float64))
    if not mantissa.size:
        return 1.0
    whole = (np.abs(mantissa) * 2.0**24).astype(np.int64)
    return float(np.ldexp((whole & -whole).astype(np.float64), exponent - 24).min())


def _float_sum(
    a: Known, b: Known, terms: int, contract: Callable[[Array, Array], Array], add: Known | None = None
) -> Known:
    x, y = a.numbers.astype(np.float64), b.numbers.astype(np.float64)
    total, most = contract(x, y), contract(np.abs(x), np.abs(y))
    quantum = _quantum(x) * _quantum(y)
    error = np.zeros(total.shape)
    if not a.exact or not b.exact:
        error = contract(a.error, np.abs(y)) + contract(np.abs(x), b.error) + contract(a.error, b.error)
    if add is not None:
        total, most, error = total + add.numbers, most + np.abs(add.numbers), error + add.error
        quantum = min(quantum, _quantum(add.numbers))
    if error.any() or most.max(initial=0.0) >= 2.0**24 * quantum:
        error = error + (terms + 8) * ULP * most
    return Known.of("f32", total.astype(np.float32), error)


@_rule("MatMul")
def _matmul(given: Given, _: Attributes) -> Known:
    a, b = _operand(given, 0), _operand(given, 1)
    return _float_sum(a, b, a.numbers.shape[-1], np.matmul)


@_rule("Gemm")
def _gemm(given: Given, a: Attributes) -> Known:
    left, right, c = _operand(given, 0), _operand(given, 1), _optional(given, 2)
    left = _turned(left) if a.get("transA") else left
    right = _turned(right) if a.get("transB") else right
    return _float_sum(left, right, left.numbers.shape[1], np.matmul, c)


def _turned(x: Known) -> Known:
    return Known(x.kind, x.numbers.T, x.error.T)


def _rows(value: Known | None, rank: int) -> Array:
    """Scales or zero points of rows of a product."""
    if value is None:
        return np.zeros((), np.int64)
    numbers = value.numbers
    return numbers.reshape(()) if numbers.size == 1 else numbers[:, None] if numbers.ndim == 1 and rank > 1 else numbers


def _columns(value: Known | None) -> Array:
    if value is None:
        return np.zeros((), np.int64)
    return value.numbers.reshape(()) if value.numbers.size == 1 else value.numbers


@_rule("MatMulInteger")
def _matmul_integer(given: Given, _: Attributes) -> Known:
    a, b = _operand(given, 0), _operand(given, 1)
    left = a.numbers - _rows(_optional(given, 2), a.numbers.ndim)
    return _integer_sum(a, b, left, b.numbers - _columns(_optional(given, 3)), np.matmul)


def _requantized(total: Known, factor: Array, zero: Array, kind: str, shift: Array | None = None) -> Known:
    """`saturate(round(f32(total) * factor + shift) + zero)`."""
    made = Known.product(total.numbers.astype(np.float32), factor, total.error * np.abs(factor))
    real = made.numbers if shift is None else made.numbers + shift
    return _rounded(real, made.error if shift is None else made.error + made.rounding, zero, kind)


@_rule("QLinearMatMul")
def _qlinear_matmul(given: Given, _: Attributes) -> Known:
    a, b, zero = _operand(given, 0), _operand(given, 3), _operand(given, 7)
    rank = a.numbers.ndim
    left = a.numbers - _rows(_operand(given, 2), rank)
    total = _integer_sum(a, b, left, b.numbers - _columns(_operand(given, 5)), np.matmul)
    factor = _rows(_operand(given, 1), rank) * _columns(_operand(given, 4)) / _rows(_operand(given, 6), rank)
    return _requantized(total, factor, _rows(zero, rank), zero.kind)


def _convolution(a: Attributes, x: Array, w: Array) -> Callable[[Array, Array], Array]:
    window, groups = Window.of(a, x.shape[2:], w.shape[2:]), a.get("group", 1)

    def contract(left: Array, right: Array) -> Array:
        views = window.views(left)
        rank = left.ndim - 2
        parts = []
        for g in range(groups):
            channels = slice(g * w.shape[1], (g + 1) * w.shape[1])
            filters = slice(g * w.shape[0] // groups, (g + 1) * w.shape[0] // groups)
            axes = [1, *range(2 + rank, 2 + 2 * rank)]
            part = np.tensordot(views[:, channels], right[filters], (axes, [1, *range(2, 2 + rank)]))
            parts.append(np.moveaxis(part, -1, 1))
        return np.concatenate(parts, 1)

    return contract


@_rule("Conv")
def _conv(given: Given, a: Attributes) -> Known:
    x, w, bias = _operand(given, 0), _operand(given, 1), _optional(given, 2)
    if bias is not None:
        shape = (1, -1, *[1] * (x.numbers.ndim - 2))
        bias = Known(bias.kind, bias.numbers.reshape(shape), bias.error.reshape(shape))
    return _float_sum(x, w, prod(w.numbers.shape[1:]), _convolution(a, x.numbers, w.numbers), bias)


def _of_filters(value: Known | None, rank: int) -> Array:
    if value is None:
        return np.zeros((), np.int64)
    return value.numbers.reshape(()) if value.numbers.size == 1 else value.numbers.reshape(-1, *[1] * (rank - 1))


def _integer_convolution(x: Known, w: Known, zero_x: Known | None, zero_w: Known | None, a: Attributes) -> Known:
    left = x.numbers - _of_filters(zero_x, 1)
    right = w.numbers - _of_filters(zero_w, w.numbers.ndim)
    return _integer_sum(x, w, left, right, _convolution(a, left, right))


@_rule("ConvInteger")
def _conv_integer(given: Given, a: Attributes) -> Known:
    return _integer_convolution(_operand(given, 0), _operand(given, 1), _optional(given, 2), _optional(given, 3), a)


@_rule("QLinearConv")
def _qlinear_conv(given: Given, a: Attributes) -> Known:
    x, w, zero, bias = _operand(given, 0), _operand(given, 3), _operand(given, 7), _optional(given, 8)
    total = _integer_convolution(x, w, _operand(given, 2), _operand(given, 5), a)
    rank = x.numbers.ndim - 1
    if bias is not None:
        total = Known.of("i32", total.numbers + _of_filters(bias, rank), total.error)
    factor = _operand(given, 1).numbers * _of_filters(_operand(given, 4), rank) / _operand(given, 6).numbers
    return _requantized(total, factor.astype(np.float32), zero.numbers.reshape(()), zero.kind)


@_rule("MatMulNBits", domain="com.microsoft")
def _matmul_nbits(given: Given, a: Attributes) -> Known:
    x, packed, scales = _operand(given, 0), _operand(given, 1), _operand(given, 2)
    zeros, bias = _optional(given, 3), _optional(given, 5)
    bits, block, rows, inner = a.get("bits", 4), a["block_size"], a["N"], a["K"]
    blocks = -(-inner // block)
    codes = _unpacked(packed.numbers, rows, bits, blocks * block)
    if zeros is None:
        shift: Array = np.full((rows, blocks), 1 << (bits - 1))
    elif zeros.kind == "f32":
        shift = zeros.numbers.reshape(rows, blocks)
    else:
        shift = _unpacked(zeros.numbers, rows, bits, blocks)
    numbers = (codes - np.repeat(shift, block, 1)).astype(np.float32)
    weight = (numbers * np.repeat(scales.numbers.reshape(rows, blocks), block, 1))[:, :inner]
    return _float_sum(x, Known.of("f32", weight.T), inner, np.matmul, bias)


def _unpacked(packed: Array, rows: int, bits: int, columns: int) -> Array:
    """Codes `[rows, columns]` of bytes that hold the first in the lowest bits."""
    shifts = np.arange(0, 8, bits)
    codes = (packed.reshape(rows, -1, 1) >> shifts) & ((1 << bits) - 1)
    return codes.reshape(rows, -1)[:, :columns]


# elementwise


def _elementwise(given: Given, function: Callable[..., Array], error: Callable[..., Array]) -> Known:
    values = [each for each in given if each is not None]
    made, off = function(*(each.numbers for each in values)), error(*values)
    return Known.of(
        values[0].kind, made, np.where(off > 0, off + 2 * ULP * np.abs(made) * (values[0].kind == "f32"), 0)
    )


def _added(x: Known, y: Known) -> Array:
    """The error of a sum or difference."""
    return np.asarray(x.error + y.error + x.rounding + y.rounding)


@_rule("Add")
def _add(given: Given, _: Attributes) -> Known:
    return _elementwise(given, lambda x, y: x + y, _added)


@_rule("Sub")
def _sub(given: Given, _: Attributes) -> Known:
    return _elementwise(given, lambda x, y: x - y, _added)


@_rule("Mul")
def _mul(given: Given, _: Attributes) -> Known:
    x, y = _operand(given, 0), _operand(given, 1)
    error = x.error * np.abs(y.numbers) + y.error * np.abs(x.numbers) + x.error * y.error
    return Known.product(x.numbers, y.numbers, error)


@_rule("Relu")
def _relu(given: Given, _: Attributes) -> Known:
    return _elementwise(given, lambda x: np.maximum(x, 0), lambda x: x.error)


@_rule("Clip")
def _clip(given: Given, _: Attributes) -> Known:
    x, low, high = (_operand(given, place) for place in range(3))
    return Known(x.kind, np.clip(x.numbers, low.numbers, high.numbers), x.error)


@_rule("QLinearAdd", domain="com.microsoft")
def _qlinear_add(given: Given, _: Attributes) -> Known:
    a, b = (_dequantize(given[place : place + 3], {}) for place in (0, 3))
    total, scale, zero = _add([a, b], {}), _operand(given, 6).numbers, _operand(given, 7)
    real = total.numbers / scale
    error = np.where(total.error > 0, total.error / scale + 2 * ULP * np.abs(real), 0.0)
    return _rounded(real + zero.numbers.astype(np.float32), error, np.zeros((), np.int64), zero.kind)


@_rule("QLinearMul", domain="com.microsoft")
def _qlinear_mul(given: Given, _: Attributes) -> Known:
    a, b, zero = _operand(given, 0), _operand(given, 3), _operand(given, 7)
    x, y = a.numbers - _operand(given, 2).numbers, b.numbers - _operand(given, 5).numbers
    error = a.error * np.abs(y) + b.error * np.abs(x) + a.error * b.error
    factor = _operand(given, 1).numbers * _operand(given, 4).numbers / _operand(given, 6).numbers
    shift = zero.numbers.astype(np.float32)  # onnxruntime adds it before it rounds, unlike ONNX
    return _requantized(Known.of("i32", x * y, error), factor, np.zeros((), np.int64), zero.kind, shift)


@_rule("MatMulIntegerToFloat", domain="com.microsoft")
def _matmul_integer_to_float(given: Given, _: Attributes) -> Known:
    total = _matmul_integer([given[0], given[1], _optional(given, 4), _optional(given, 5)], {})
    factor = _operand(given, 2).numbers * _columns(_operand(given, 3))
    bias = _optional(given, 6)
    made = Known.product(total.numbers.astype(np.float32), factor, total.error * factor)
    return made if bias is None else _add([made, bias], {})


# movement


def _moved(x: Known, move: Callable[[Array], Array]) -> Known:
    return Known(x.kind, move(x.numbers), move(x.error))


@_rule("Reshape")
def _reshape(given: Given, _: Attributes) -> Known:
    shape = [int(n) for n in _operand(given, 1).numbers]
    return _moved(_operand(given, 0), lambda x: x.reshape(shape))


@_rule("Transpose")
def _transpose(given: Given, a: Attributes) -> Known:
    return _moved(_operand(given, 0), lambda x: x.transpose(a["perm"]))


@_rule("Concat")
def _concat(given: Given, a: Attributes) -> Known:
    values = [each for each in given if each is not None]
    joined = [np.concatenate([getattr(v, part) for v in values], a["axis"]) for part in ("numbers", "error")]
    return Known(values[0].kind, joined[0], joined[1])


@_rule("Slice")
def _slice(given: Given, _: Attributes) -> Known:
    x = _operand(given, 0)
    starts, ends, axes, steps = (_operand(given, place).numbers for place in range(1, 5))
    cut = [slice(None)] * x.numbers.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        cut[int(axis)] = slice(int(start), int(end), int(step))
    return _moved(x, lambda array: array[tuple(cut)])


@_rule("Gather")
def _gather(given: Given, a: Attributes) -> Known:
    places = _operand(given, 1).numbers
    return _moved(_operand(given, 0), lambda x: np.take(x, places, a.get("axis", 0)))


@_rule("MaxPool")
def _max_pool(given: Given, a: Attributes) -> Known:
    x = _operand(given, 0)
    window = Window.of(a, x.numbers.shape[2:], a["kernel_shape"])
    axes = tuple(range(-len(window.kernel), 0))
    least = -np.inf if x.kind == "f32" else limits(x.kind)[0]
    return Known(x.kind, window.views(x.numbers, least).max(axes), window.views(x.error).max(axes))
