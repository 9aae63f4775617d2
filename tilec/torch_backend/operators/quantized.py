"""Quantisation with scales and zero points, as pt2e and torchao write it, and products of integers."""

from __future__ import annotations

import importlib
from typing import Any

import torch
from torch import fx

from tilec.torch_backend.translation import Translation, UntranslatableError, translates
from tilec.torch_backend.values import Number, Tensor

importlib.import_module("torch.ao.quantization.fx._decomposed")  # it defines the operators
aten, quantized = torch.ops.aten, torch.ops.quantized_decomposed
Parameter = Tensor | Number
"""A scale or zero point, or a tensor of them."""

CODES = (torch.int8, torch.uint8)


def _real(t: Translation, x: Tensor) -> str:
    if x.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise UntranslatableError(f"quantisation of {x.dtype}")
    return t.cast(x, torch.float32)


def _along(t: Translation, values: Tensor, rank: int, axis: int) -> Tensor:
    """A vector along one dimension of a tensor."""
    axes = [d for d in range(rank) if d != axis % rank]
    return Tensor(t.emit("Unsqueeze", values.name, t.onnx.integers(axes)), (), values.dtype) if axes else values


def _quantized(
    t: Translation, x: Tensor, scale: Parameter, zero: Parameter, low: int, high: int, dtype: torch.dtype
) -> str:
    """`clamp(round(x * (1 / scale)) + zero)`, as eager PyTorch computes it: `x / scale` is another number."""
    f32 = torch.float32
    match scale:
        case Tensor(dtype=torch.float32):
            inverse = t.emit("Reciprocal", scale.name)
        case float() | int():
            inverse = t.literal(1.0 / scale, f32)
        case _:
            raise UntranslatableError("a scale that is neither a number nor of f32")
    rounded = t.emit("Round", t.emit("Mul", _real(t, x), inverse))
    shifted = rounded if zero == 0 else t.emit("Add", rounded, t.operand(zero, f32))
    clamped = t.emit("Min", t.emit("Max", shifted, t.literal(low, f32)), t.literal(high, f32))
    return t.cast(Tensor(clamped, (), f32), dtype)


def _dequantized(
    t: Translation, x: Tensor, scale: Parameter, zero: Parameter, made: torch.dtype, axis: int | None = None
) -> str:
    """`(x - zero) * scale`, where the difference is exact; with an axis scales and zero points are vectors along it."""
    f32 = torch.float32
    if isinstance(scale, Tensor) and scale.dtype != f32:
        raise UntranslatableError(f"a scale of {scale.dtype}")
    if x.dtype in CODES and (axis is not None or not (isinstance(scale, Tensor) and scale.rank)):
        ports = [x.name, t.operand(scale, f32), *([t.operand(zero, x.dtype)] if zero != 0 else [])]
        return t.cast(Tensor(t.emit("DequantizeLinear", *ports, axis=axis), (), f32), made)
    if axis is not None:
        scale, zero = (_along(t, each, x.rank, axis) if isinstance(each, Tensor) else each for each in (scale, zero))
    number = t.cast(x, f32)
    if zero != 0:
        number = t.emit("Sub", number, t.operand(zero, f32))
    return t.cast(Tensor(t.emit("Mul", number, t.operand(scale, f32)), (), f32), made)


@translates(quantized.quantize_per_tensor.default, quantized.quantize_per_tensor.tensor)
def _quantize(
    t: Translation, node: fx.Node, x: Tensor, scale: Parameter, zero: Parameter, low: int, high: int, dtype: torch.dtype
) -> str:
    return _quantized(t, x, scale, zero, low, high, dtype)


@translates(quantized.dequantize_per_tensor.default, quantized.dequantize_per_tensor.tensor)
def _dequantize(t: Translation, node: fx.Node, x: Tensor, scale: Parameter, zero: Parameter, *_: Any, **__: Any) -> str:
    return _dequantized(t, x, scale, zero, node.meta["val"].dtype)


@translates(quantized.quantize_per_channel.default)
def _quantize_channels(
    t: Translation,
    node: fx.Node,
    x: Tensor,
    scales: Tensor,
    zeros: Tensor,
    axis: int,
    low: int,
    high: int,
    dtype: torch.dtype,
) -> str:
    scale, zero = (_along(t, each, x.rank, axis) for each in (scales, zeros))
    return _quantized(t, x, scale, zero, low, high, dtype)


@translates(quantized.dequantize_per_channel.default)
def _dequantize_channels(
    t: Translation, node: fx.Node, x: Tensor, scales: Tensor, zeros: Tensor | None, axis: int, *_: Any, **__: Any
) -> str:
    return _dequantized(t, x, scales, 0 if zeros is None else zeros, node.meta["val"].dtype, axis)


@translates(aten._int_mm.default)
def _integer_product(t: Translation, node: fx.Node, x: Tensor, y: Tensor) -> str:
    """Sums of products of 8 bits in 32."""
    return t.emit("MatMulInteger", x.name, y.name)
