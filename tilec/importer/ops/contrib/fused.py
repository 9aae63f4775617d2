"""Products and convolutions that onnxruntime's optimiser has joined with a transposition, a factor or an activation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilec.importer.compose import applied
from tilec.importer.operator import Op
from tilec.importer.ops.activation import ACTIVATIONS
from tilec.importer.ops.contraction import product
from tilec.importer.ops.movement import transposed
from tilec.importer.registry import CONTRIB, operator
from tilec.importer.value import Value


def activated(op: Op, x: Value, parameters: Sequence[float], part: str = "") -> Value:
    """The activation named by the attribute `activation`, with its parameters in the order of its definition."""
    kind = op.text("activation")
    if not kind:
        return x
    if kind == "Clip":
        low, high = (
            (*parameters, float("-inf"), float("inf"))[:2] if len(parameters) >= 2 else (float("-inf"), float("inf"))
        )
        return op.map("minimum(maximum(x, low), high)", x=x, low=low, high=high, part=part)
    if kind not in ACTIVATIONS:
        raise op.unsupported(f"the activation {kind!r}")
    _, defaults = ACTIVATIONS[kind]
    attributes: dict[str, Any] = dict(zip(defaults, parameters, strict=False))
    return applied(op, kind, x, part=part, **attributes)


def _swapped(op: Op, x: Value, name: str) -> Value:
    """An operand as transA, transBatchA (transB, transBatchB) say: last dimensions swapped, first dimension moved."""
    order = list(range(x.rank))
    if op.integer(f"transBatch{name}") and x.rank > 2:
        order = [*order[1:-1], 0, order[-1]]
    if op.integer(f"trans{name}") and x.rank > 1:
        order = [*order[:-2], order[-1], order[-2]]
    return transposed(op, x, order, part=name.lower())


@operator("FusedMatMul", "TransposeMatMul", domain=CONTRIB)
def _fused_matmul(op: Op) -> Value:
    a, b, alpha = _swapped(op, op.value(0), "A"), _swapped(op, op.value(1), "B"), op.number("alpha", 1.0)
    if alpha == 1.0:
        return product(op, a, b)
    return op.map("x * alpha", x=product(op, a, b, part="product"), alpha=alpha)


@operator("FusedGemm", domain=CONTRIB)
def _fused_gemm(op: Op) -> Value:
    names = ("alpha", "beta", "transA", "transB")
    attributes = {name: op.attributes[name] for name in names if name in op.attributes}
    total = applied(op, "Gemm", *op.inputs, part="gemm", **attributes)
    wanted = ("activation_alpha", "activation_beta", "activation_gamma")
    return activated(op, total, [op.number(name) for name in wanted if name in op.attributes])


@operator("FusedConv", domain=CONTRIB)
def _fused_conv(op: Op) -> Value:
    """`activation(Conv(X, W) + B + Z)`."""
    attributes = {name: value for name, value in op.attributes.items() if not name.startswith("activation")}
    total = applied(op, "Conv", *op.inputs[:3], part="conv", **attributes)
    if op.optional(3) is not None:
        total = op.map("x + z", x=total, z=op.value(3), part="sum")
    return activated(op, total, [float(v) for v in op.attributes.get("activation_params", ())])
