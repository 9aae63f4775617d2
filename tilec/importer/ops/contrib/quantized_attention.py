"""QAttention: self-attention whose projection is a product of small integers."""

from __future__ import annotations

from tilec.importer.operator import Op
from tilec.importer.ops.contrib.attention import refuse, self_attention
from tilec.importer.ops.contrib.quantized_products import scaled_product
from tilec.importer.registry import CONTRIB, operator
from tilec.importer.value import Value


@operator("QAttention", domain=CONTRIB)
def _qattention(op: Op) -> tuple[Value | None, ...]:
    refuse(op, {"past_present_share_buffer": 0, "do_rotary": 0})
    x, weight = (op.value(0), op.value(3), op.optional(6)), (op.value(1), op.value(4), op.optional(7))
    projected = scaled_product(op, x, weight, op.value(2), part="projected")
    return self_attention(op, projected, op.optional(5), op.optional(8))
