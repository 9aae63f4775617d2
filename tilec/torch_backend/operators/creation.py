"""Tensors made from numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from tilec.torch_backend.translation import Translation, translates
from tilec.torch_backend.values import Number, Size, Tensor

aten = torch.ops.aten


@translates(aten.full.default)
def _full(t: Translation, node: fx.Node, shape: Sequence[int | Size], value: Number, **_: Any) -> str:
    return t.emit("Expand", t.operand(value, node.meta["val"].dtype), t.shape(shape))


@translates(aten.full_like.default)
def _full_like(t: Translation, node: fx.Node, x: Tensor, value: Number, **_: Any) -> str:
    return t.emit("Expand", t.operand(value, node.meta["val"].dtype), t.emit("Shape", x.name))


@translates(aten.zeros_like.default, aten.empty_like.default)
def _zeros_like(t: Translation, node: fx.Node, x: Tensor, **_: Any) -> str:
    return _full_like(t, node, x, 0)


@translates(aten.ones_like.default)
def _ones_like(t: Translation, node: fx.Node, x: Tensor, **_: Any) -> str:
    return _full_like(t, node, x, 1)


@translates(aten.zeros.default, aten.empty.memory_format)
def _zeros(t: Translation, node: fx.Node, shape: Sequence[int | Size], **_: Any) -> str:
    return _full(t, node, shape, 0)


@translates(aten.empty_permuted.default)
def _empty_permuted(t: Translation, node: fx.Node, shape: Sequence[int | Size], _order: Any, **_: Any) -> str:
    return _full(t, node, shape, 0)


@translates(aten.ones.default)
def _ones(t: Translation, node: fx.Node, shape: Sequence[int | Size], **_: Any) -> str:
    return _full(t, node, shape, 1)


@translates(aten.new_zeros.default, aten.new_empty.default)
def _new_zeros(t: Translation, node: fx.Node, _x: Tensor, shape: Sequence[int | Size], **_: Any) -> str:
    return _full(t, node, shape, 0)


@translates(aten.new_full.default)
def _new_full(t: Translation, node: fx.Node, _x: Tensor, shape: Sequence[int | Size], value: Number, **_: Any) -> str:
    return _full(t, node, shape, value)


@translates(aten.scalar_tensor.default)
def _scalar(t: Translation, node: fx.Node, value: Number, **_: Any) -> str:
    return t.emit("Identity", t.operand(value, node.meta["val"].dtype))


@translates(aten.arange.start_step)
def _arange(t: Translation, node: fx.Node, first: Number, last: Number, step: Number = 1, **_: Any) -> str:
    """In a type that ONNX counts in, and rounded to that of the result."""
    dtype = node.meta["val"].dtype
    counted = dtype
    if dtype not in COUNTED:
        counted = torch.float32 if dtype.is_floating_point else torch.int64
    made = t.emit("Range", *(t.operand(each, counted) for each in (first, last, step)))
    return t.cast(Tensor(made, (), counted), dtype)


COUNTED = {torch.float32, torch.float64, torch.int16, torch.int32, torch.int64}
"""Types of ONNX's ranges."""


@translates(aten.arange.start)
def _arange_from(t: Translation, node: fx.Node, first: Number, last: Number, **_: Any) -> str:
    return _arange(t, node, first, last)


@translates(aten.arange.default)
def _arange_to(t: Translation, node: fx.Node, last: Number, **_: Any) -> str:
    return _arange(t, node, 0, last)


@translates(torch.ops.prims.iota.default)
def _iota(t: Translation, node: fx.Node, length: int | Size, start: Number = 0, step: Number = 1, **_: Any) -> str:
    """`start + step * n` for n below the length."""
    dtype = node.meta["val"].dtype
    count = t.emit("Range", *(t.operand(each, torch.int64) for each in (0, length, 1)))
    scaled = count if step == 1 else t.emit("Mul", count, t.operand(step, torch.int64))
    shifted = scaled if start == 0 else t.emit("Add", scaled, t.operand(start, torch.int64))
    return t.cast(Tensor(shifted, (), torch.int64), dtype)


@translates(aten.triu.default, aten.tril.default)
def _triangle(t: Translation, node: fx.Node, x: Tensor, diagonal: int = 0) -> str:
    upper = int(node.target is aten.triu.default)
    if x.dtype == torch.bool:
        numbers = t.emit("Cast", x.name, to=6)
        made = t.emit("Trilu", numbers, t.onnx.constant(diagonal, "int64"), upper=upper)
        return t.emit("Cast", made, to=9)
    return t.emit("Trilu", x.name, t.onnx.constant(diagonal, "int64"), upper=upper)
