"""Quantised operators that compute on real numbers: dequantised, computed in f32, quantised.

Sums over integers (pooling) are exact; the result is rounded half to even and saturated.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilec.importer.compose import applied
from tilec.importer.onnx_types import element_code
from tilec.importer.operator import Op, count
from tilec.importer.ops.movement import concatenated, transposed
from tilec.importer.ops.quantized import is_zero
from tilec.importer.registry import CONTRIB, operator
from tilec.importer.value import Value


def real(op: Op, x: Value, scale: Value, zero: Value | None, part: str) -> Value:
    """`(x - zero) * scale` in f32."""
    return applied(op, "DequantizeLinear", x, scale, zero, part=part)


def quantized(op: Op, x: Value, scale: Value, zero: Value | None, ttype: str, part: str = "") -> Value:
    """`saturate(round(x / scale) + zero)` as `ttype`."""
    return applied(op, "QuantizeLinear", x, scale, zero, part=part, output_dtype=0 if zero else element_code(ttype))


def shifted(op: Op, x: Value, zero: Value | None, part: str) -> Value:
    """`x - zero` in i32."""
    if zero is None or is_zero(zero):
        return op.map("i32(x)", x=x, part=part)
    return op.map("i32(x) - i32(z)", x=x, z=zero, part=part)


def rescaled(op: Op, x: Value, scale: Value, out_scale: Value, zero: Value | None, ttype: str) -> Value:
    """`saturate(round(x * (scale / out_scale)) + zero)` of an f32 tensor."""
    factor = op.map("s / y", s=scale, y=out_scale, part="factor")
    scaled = op.map("x * f", x=x, f=factor, part="scaled")
    if zero is None or is_zero(zero):
        return op.map(f"{ttype}(round(x))", x=scaled)
    return op.map(f"{ttype}(round(x) + f32(z))", x=scaled, z=zero)


@operator("DequantizeLinear", "QuantizeLinear", domain=CONTRIB)
def _conversion(op: Op) -> Value:
    """As ONNX's operators, which did not have 16-bit types when these were added."""
    return applied(op, op.kind, *op.inputs, axis=op.integer("axis", 1), block_size=op.integer("block_size"))


@operator("QLinearAdd", domain=CONTRIB)
def _add(op: Op) -> Value:
    a, b = (
        real(op, op.value(0), op.value(1), op.optional(2), "a"),
        real(op, op.value(3), op.value(4), op.optional(5), "b"),
    )
    total = op.map("a + b", a=a, b=b, part="sum")
    return _rounded_last(op, op.map("x / y", x=total, y=op.value(6), part="scaled"), op.optional(7))


@operator("QLinearMul", domain=CONTRIB)
def _mul(op: Op) -> Value:
    """The product of the integers is exact; one factor has all three scales."""
    a, b = shifted(op, op.value(0), op.optional(2), "a"), shifted(op, op.value(3), op.optional(5), "b")
    product = op.map("f32(a * b)", a=a, b=b, part="product")
    factor = op.map("a * b / y", a=op.value(1), b=op.value(4), y=op.value(6), part="factor")
    return _rounded_last(op, op.map("x * f", x=product, f=factor, part="scaled"), op.optional(7))


def _rounded_last(op: Op, real: Value, zero: Value | None) -> Value:
    """`saturate(round(real + zero))`: onnxruntime shifts before it rounds here, so that ties go to other integers."""
    ttype = op.value(0).ttype
    if zero is None or is_zero(zero):
        return op.map(f"{ttype}(round(x))", x=real)
    return op.map(f"{ttype}(round(x + f32(z)))", x=real, z=zero)


@operator("QLinearWhere", domain=CONTRIB)
def _where(op: Op) -> Value:
    x, y = (
        real(op, op.value(1), op.value(2), op.optional(3), "x"),
        real(op, op.value(4), op.value(5), op.optional(6), "y"),
    )
    chosen = op.map("where(c, x, y)", c=op.value(0), x=x, y=y, part="chosen")
    return quantized(op, chosen, op.value(7), op.optional(8), op.value(1).ttype)


@operator("QLinearConcat", domain=CONTRIB)
def _concat(op: Op) -> Value:
    if len(op.inputs) < 5 or len(op.inputs) % 3 != 2:
        raise op.invalid(f"{len(op.inputs)} inputs", "There must be two for the result and three for each part.")
    triples = [(op.value(i), op.value(i + 1), op.optional(i + 2)) for i in range(2, len(op.inputs), 3)]
    parts = [real(op, *triple, f"part{number}") for number, triple in enumerate(triples)]
    joined = concatenated(op, parts, op.integer("axis"), part="joined")
    return quantized(op, joined, op.value(0), op.optional(1), op.value(2).ttype)


@operator("QLinearLeakyRelu", "QLinearSigmoid", domain=CONTRIB)
def _activation(op: Op) -> Value:
    x = real(op, op.value(0), op.value(1), op.optional(2), "real")
    y = applied(op, op.kind.removeprefix("QLinear"), x, part="activated", **op.attributes)
    return quantized(op, y, op.value(3), op.optional(4), op.value(0).ttype)


@operator("QLinearSoftmax", domain=CONTRIB)
def _softmax(op: Op) -> Value:
    """The attribute `opset` says which of ONNX's definitions of `axis` holds."""
    x = real(op, op.value(0), op.value(1), op.optional(2), "real")
    opset = op.integer("opset", 13)
    axis = op.integer("axis", -1 if opset >= 13 else 1)
    y = applied(op, "Softmax", x, part="softmax", opset=opset, axis=axis)
    return quantized(op, y, op.value(3), op.optional(4), op.value(0).ttype)


def channels_first(rank: int) -> list[int]:
    """The permutation from `[n, ..., c]` to `[n, c, ...]`."""
    return [0, rank - 1, *range(1, rank - 1)]


def channels_last(rank: int) -> list[int]:
    """The permutation from `[n, c, ...]` to `[n, ..., c]`."""
    return [0, *range(2, rank), 1]


@operator("QLinearAveragePool", domain=CONTRIB)
def _average_pool(op: Op) -> Value:
    """The sum of a window is exact: integers in f32."""
    x, last = op.value(0), bool(op.integer("channels_last"))
    number = op.map("f32(x)", x=shifted(op, x, op.optional(2), "shifted"), part="number")
    if last:
        number = transposed(op, number, channels_first(x.rank), part="first")
    attributes = {name: value for name, value in op.attributes.items() if name != "channels_last"}
    mean = applied(op, "AveragePool", number, part="mean", **attributes)
    if last:
        mean = transposed(op, mean, channels_last(x.rank), part="last")
    return rescaled(op, mean, op.value(1), op.value(3), op.optional(4), x.ttype)


@operator("QLinearGlobalAveragePool", domain=CONTRIB)
def _global_average_pool(op: Op) -> Value:
    x = op.value(0)
    return _mean(op, range(1, x.rank - 1) if op.integer("channels_last") else range(2, x.rank))


@operator("QLinearReduceMean", domain=CONTRIB)
def _reduce_mean(op: Op) -> Value:
    axes = op.axes(5, "axes", op.value(0).rank)
    return _mean(op, range(op.value(0).rank) if axes is None else axes, bool(op.integer("keepdims", 1)))


def _mean(op: Op, axes: Sequence[int], keep: bool = True) -> Value:
    """The mean of integers: summed in i32, divided by scaling."""
    x = op.value(0)
    total = op.reduce("sum", tuple(axes), keep=keep, part="sum", x=shifted(op, x, op.optional(2), "shifted"))
    mean = op.map("f32(x) / n", x=total, n=count([x.shape[d] for d in axes], "f32"), part="mean")
    return rescaled(op, mean, op.value(1), op.value(3), op.optional(4), x.ttype)
