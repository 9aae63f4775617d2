"""Activations: one elementwise formula each."""

from __future__ import annotations

from tilec.importer.broadcasting import require_fit
from tilec.importer.operator import Op
from tilec.importer.registry import operator
from tilec.importer.value import Value
from tilec.ir.types import TTYPES

ACTIVATIONS: dict[str, tuple[str, dict[str, float]]] = {
    "Celu": ("maximum(x, 0.0) + minimum(alpha * (exp(x / alpha) - 1.0), 0.0)", {"alpha": 1.0}),
    "Elu": ("where(x < 0.0, alpha * (exp(x) - 1.0), x)", {"alpha": 1.0}),
    "HardSigmoid": ("maximum(minimum(alpha * x + beta, 1.0), 0.0)", {"alpha": 0.2, "beta": 0.5}),
    "HardSwish": ("x * maximum(minimum(x / 6.0 + 0.5, 1.0), 0.0)", {}),
    "LeakyRelu": ("where(x < 0.0, alpha * x, x)", {"alpha": 0.01}),
    "Mish": ("x * tanh(maximum(x, 0.0) + log(exp(-abs(x)) + 1.0))", {}),
    "Relu": ("maximum(x, 0)", {}),
    "Selu": (
        "gamma * where(x > 0.0, x, alpha * exp(x) - alpha)",
        {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875},
    ),
    "Sigmoid": ("sigmoid(x)", {}),
    "Softplus": ("maximum(x, 0.0) + log(exp(-abs(x)) + 1.0)", {}),
    "Softsign": ("x / (abs(x) + 1.0)", {}),
    "Swish": ("x * sigmoid(alpha * x)", {"alpha": 1.0}),
    "Tanh": ("tanh(x)", {}),
    "ThresholdedRelu": ("where(x > alpha, x, 0.0)", {"alpha": 1.0}),
}
"""Operator -> formula in x and the operator's attributes, with the attributes' defaults."""

GELU = {
    "none": "x * ((erf(x * 0.7071067811865476) + 1.0) * 0.5)",
    "tanh": "x * ((tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)) + 1.0) * 0.5)",
}


@operator(*ACTIVATIONS)
def _activation(op: Op) -> Value:
    text, defaults = ACTIVATIONS[op.kind]
    attributes = {name: op.number(name, default) for name, default in defaults.items()}
    return op.elementwise(text, {"x": op.value(0), **attributes})


@operator("Shrink")
def _shrink(op: Op) -> Value:
    """0 within `lambd` of 0, moved towards 0 by `bias` elsewhere; integers are computed in f64 and truncated."""
    x = op.value(0)
    text, wide = "where(x < -lambd, x + bias, where(x > lambd, x - bias, 0.0))", x
    if TTYPES[x.ttype].kind != "float":
        text, wide = f"{x.ttype}({text})", op.map("f64(x)", x=x, part="wide")
    return op.map(text, x=wide, lambd=op.number("lambd", 0.5), bias=op.number("bias"))


@operator("PRelu")
def _prelu(op: Op) -> Value:
    x, slope = op.value(0), op.value(1)
    require_fit(slope.shape, x.shape, op.sizes)
    return op.map("where(x < 0, slope * x, x)", x=x, slope=slope)


@operator("Gelu")
def _gelu(op: Op) -> Value:
    form = op.text("approximate", "none")
    if form not in GELU:
        raise op.invalid(f"approximate is {form!r}", "It must be 'none' or 'tanh'.")
    return op.map(GELU[form], x=op.value(0))
