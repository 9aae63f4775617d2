"""Scaled dot products with softmax, in the form that the scheduler joins into one loop."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import fx

from tilec.torch_backend.translation import Translation, UntranslatableError, translates
from tilec.torch_backend.values import Size, Tensor

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
    """`softmax(Q K^T * scale + mask) V`; the logarithms of the sums, which only the gradient needs, are not made.

    Where several heads of queries share one of keys they are a dimension of their own, which keys and values have not.
    """
    if dropout or any(user.args[1] != 0 and user.users for user in node.users):
        raise UntranslatableError("attention with dropout, or whose sums are read")
    dtype = query.dtype
    groups = _groups(t, query, key)
    heads = query.rank - 3
    rows, columns = t.extent(query, query.rank - 2), t.extent(key, key.rank - 2)
    scaled = t.emit("Mul", query.name, _factor(t, query, scale))
    keys, values = key.name, value.name
    if groups is not None:
        sizes = t.extents(query)
        lead = [*sizes[:heads], t.extent(key, heads), groups]
        scaled = t.emit("Reshape", scaled, t.shape([*lead, rows, sizes[-1]]), allowzero=1)
        keys, values = (t.emit("Unsqueeze", each, t.onnx.integers([heads + 1])) for each in (keys, values))
    rank = query.rank + (groups is not None)
    scores = t.emit("MatMul", scaled, t.emit("Transpose", keys, perm=[*range(rank - 2), rank - 1, rank - 2]))
    if is_causal:
        i, j = (t.emit("Range", *(t.operand(n, torch.int64) for n in (0, size, 1))) for size in (rows, columns))
        seen = t.emit("LessOrEqual", j, t.emit("Unsqueeze", i, t.onnx.integers([1])))
        scores = t.emit("Where", seen, scores, t.literal(-math.inf, dtype))
    if attn_mask is not None:
        mask = attn_mask.name if groups is None else _grouped_mask(t, attn_mask, t.extent(key, heads), groups)
        if attn_mask.dtype == torch.bool:
            scores = t.emit("Where", mask, scores, t.literal(-math.inf, dtype))
        else:
            scores = t.emit("Add", scores, t.cast(replace(attn_mask, name=mask), dtype))
    weights = t.emit("Softmax", scores, axis=-1)
    if attn_mask is not None:  # a row whose mask lets nothing through is 0 in PyTorch
        largest = t.emit("ReduceMax", scores, t.onnx.integers([-1]), keepdims=1)
        closed = t.emit("Equal", largest, t.literal(-math.inf, dtype))
        weights = t.emit("Where", closed, t.literal(0, dtype), weights)
    made = t.emit("MatMul", weights, values)
    if groups is not None:
        made = t.emit("Reshape", made, t.shape([*t.extents(query)[:-1], t.extent(value, value.rank - 1)]), allowzero=1)
    return [made, None]


def _factor(t: Translation, query: Tensor, scale: float | None) -> str:
    """What products are multiplied by: the scale given, or that of the width."""
    width = query.shape[-1]
    if scale is not None or isinstance(width, int):
        return t.literal(1 / math.sqrt(width) if scale is None else scale, query.dtype)
    root = t.emit("Sqrt", t.operand(t.extent(query, query.rank - 1), torch.float32))
    return t.cast(Tensor(t.emit("Reciprocal", root), (), torch.float32), query.dtype)


def _groups(t: Translation, query: Tensor, key: Tensor) -> int | Size | None:
    """Heads of queries for each of keys; None for one."""
    if query.rank < 4 or str(query.shape[-3]) == str(key.shape[-3]):
        return None
    many, few = (t.extent(each, each.rank - 3) for each in (query, key))
    if isinstance(many, int) and isinstance(few, int):
        return many // few
    return Size(t.emit("Div", t.operand(many, torch.int64), t.operand(few, torch.int64)))


def _grouped_mask(t: Translation, mask: Tensor, few: int | Size, groups: int | Size) -> str:
    """The mask of scores whose heads are a dimension of their own, and then the group's queries."""
    if mask.rank < 3:
        return mask.name
    place = mask.rank - 3
    if mask.shape[place] == 1:
        return t.emit("Unsqueeze", mask.name, t.onnx.integers([place]))
    sizes = t.extents(mask)
    shape = [*sizes[:place], few, groups, *sizes[place + 1 :]]
    return t.emit("Reshape", mask.name, t.shape(shape), allowzero=1)
