"""Products of small integers: exact sums in i32, then scaled to f32 or requantised."""

from __future__ import annotations

from tilec.importer.compose import applied, every_result
from tilec.importer.operator import Op
from tilec.importer.ops.contrib.quantized_elementwise import channels_first, channels_last, rescaled
from tilec.importer.ops.movement import transposed
from tilec.importer.registry import CONTRIB, operator
from tilec.importer.value import Value


def scaled_product(
    op: Op,
    a: tuple[Value, Value, Value | None],
    b: tuple[Value, Value, Value | None],
    bias: Value | None,
    part: str = "",
) -> Value:
    """`f32(A @ B) * (a * b) + bias` of operands given as values, scale and zero point."""
    total = applied(op, "MatMulInteger", a[0], b[0], a[2], b[2], part=f"{part}_product" if part else "product")
    text = "f32(x) * (a * b)" if bias is None else "f32(x) * (a * b) + c"
    return op.elementwise(text, {"x": total, "a": a[1], "b": b[1]} | ({} if bias is None else {"c": bias}), part=part)


@operator("MatMulIntegerToFloat", domain=CONTRIB)
def _matmul_integer_to_float(op: Op) -> Value:
    a, b = (op.value(0), op.value(2), op.optional(4)), (op.value(1), op.value(3), op.optional(5))
    return scaled_product(op, a, b, op.optional(6))


def dynamically_quantized(op: Op, x: Value, part: str) -> tuple[Value, Value, Value]:
    """A tensor quantised to u8 over its range: values, scale, zero point."""
    values, scale, zero = every_result(op, "DynamicQuantizeLinear", x, part=part, results=3)
    return values, scale, zero


@operator("DynamicQuantizeMatMul", domain=CONTRIB)
def _dynamic_quantize_matmul(op: Op) -> Value:
    a = dynamically_quantized(op, op.value(0), "quantized")
    return scaled_product(op, a, (op.value(1), op.value(2), op.optional(3)), op.optional(4))


@operator("QGemm", domain=CONTRIB)
def _qgemm(op: Op) -> Value:
    """`alpha * A @ B + C` with C in units of the sum; f32 without a scale of the result."""
    a, b, c, scale, zero = op.value(0), op.value(3), op.optional(6), op.optional(7), op.optional(8)
    a = transposed(op, a, (1, 0), part="a") if op.integer("transA") else a
    b = transposed(op, b, (1, 0), part="b") if op.integer("transB") else b
    total = applied(op, "MatMulInteger", a, b, op.optional(2), op.optional(5), part="product")
    if c is not None:
        total = op.map("x + c", x=total, c=c, part="sum")
    alpha = op.number("alpha", 1.0)
    factor = op.map(
        "a * b" if alpha == 1.0 else "alpha * a * b", a=op.value(1), b=op.value(4), alpha=alpha, part="scale"
    )
    if scale is None:
        return op.map("f32(x) * f", x=total, f=factor)
    number = op.map("f32(x)", x=total, part="number")
    return rescaled(op, number, factor, scale, zero, a.ttype if zero is None else zero.ttype)


@operator("QLinearConv", domain=CONTRIB)
def _qlinear_conv(op: Op) -> Value:
    """ONNX's QLinearConv with an optional layout `[n, ..., c]` of input and result."""
    attributes = {name: value for name, value in op.attributes.items() if name != "channels_last"}
    x = op.value(0)
    if not op.integer("channels_last"):
        return applied(op, op.kind, *op.inputs, **attributes)
    first = transposed(op, x, channels_first(x.rank), part="first")
    result = applied(op, op.kind, first, *op.inputs[1:], part="channels", **attributes)
    return transposed(op, result, channels_last(x.rank))
