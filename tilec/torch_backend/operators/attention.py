"""Scaled dot products with softmax, in the form that the scheduler joins into one loop."""

from __future__ import annotations

import math

import torch
from torch import fx

from tilec.torch_backend.translation import Translation, UntranslatableError, translates
from tilec.torch_backend.values import Tensor

aten = torch.ops.aten


@translates(aten._scaled_dot_product_flash_attention_for_cpu.default)
def _attention(
    t: Translation,
    node: fx.Node,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout: float = 0,
    is_causal: bool = False,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> list[str | None]:
    """`softmax(Q K^T * scale + mask) V`; the logarithms of the sums, which only the gradient needs, are not made."""
    width = query.shape[-1]
    if dropout or not isinstance(width, int) or any(user.args[1] != 0 and user.users for user in node.users):
        raise UntranslatableError("attention with dropout, of an open width, or whose sums are read")
    dtype = query.dtype
    order = [*range(key.rank - 2), key.rank - 1, key.rank - 2]
    factor = t.literal(1 / math.sqrt(width) if scale is None else scale, dtype)
    scores = t.emit("MatMul", t.emit("Mul", query.name, factor), t.emit("Transpose", key.name, perm=order))
    if is_causal:
        rows, columns = t.extent(query, query.rank - 2), t.extent(key, key.rank - 2)
        i, j = (t.emit("Range", *(t.operand(n, torch.int64) for n in (0, size, 1))) for size in (rows, columns))
        seen = t.emit("LessOrEqual", j, t.emit("Unsqueeze", i, t.onnx.integers([1])))
        scores = t.emit("Where", seen, scores, t.literal(-math.inf, dtype))
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = t.emit("Where", attn_mask.name, scores, t.literal(-math.inf, dtype))
    elif attn_mask is not None:
        scores = t.emit("Add", scores, t.cast(attn_mask, dtype))
    weights = t.emit("Softmax", scores, axis=-1)
    if attn_mask is not None:  # a row whose mask lets nothing through is 0 in PyTorch
        largest = t.emit("ReduceMax", scores, t.onnx.integers([-1]), keepdims=1)
        closed = t.emit("Equal", largest, t.literal(-math.inf, dtype))
        weights = t.emit("Where", closed, t.literal(0, dtype), weights)
    return [t.emit("MatMul", weights, value.name), None]
