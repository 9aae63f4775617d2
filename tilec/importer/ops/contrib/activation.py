"""Activations of the contrib domain: forms of GELU with an optional bias."""

from __future__ import annotations

from tilec.importer.broadcasting import require_fit
from tilec.importer.operator import Op
from tilec.importer.ops.activation import GELU
from tilec.importer.registry import CONTRIB, operator
from tilec.importer.value import Value

FORMS = {"BiasGelu": "none", "FastGelu": "tanh", "Gelu": "none"}
"""Operator -> form of GELU."""


@operator(*FORMS, domain=CONTRIB)
def _gelu(op: Op) -> Value:
    x, bias = op.value(0), op.optional(1)
    if bias is not None:
        require_fit(bias.shape, x.shape, op.sizes)
        x = op.map("x + b", x=x, b=bias, part="biased")
    return op.map(GELU[FORMS[op.kind]], x=x)


@operator("QuickGelu", domain=CONTRIB)
def _quick_gelu(op: Op) -> Value:
    return op.map("x * sigmoid(alpha * x)", x=op.value(0), alpha=op.number("alpha", 1.702))


@operator("BiasAdd", domain=CONTRIB)
def _bias_add(op: Op) -> Value:
    x, bias, skip = (op.value(i) for i in range(3))
    for term in (bias, skip):
        require_fit(term.shape, x.shape, op.sizes)
    return op.map("x + b + skip", x=x, b=bias, skip=skip)
