"""Convolutions and pooling."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from torch import fx

from tilec.torch_backend.translation import Translation, UntranslatableError, translates
from tilec.torch_backend.values import ONNX_TYPES, Size, Tensor

aten = torch.ops.aten


def spread(values: Sequence[int], rank: int) -> list[int]:
    """A number for each of `rank` dimensions, where one stands for all."""
    return list(values) if len(values) == rank else [values[0]] * rank


@translates(aten.convolution.default)
def _convolution(
    t: Translation,
    node: fx.Node,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> str:
    rank = weight.rank - 2
    if any(isinstance(each, Size) for each in (*stride, *padding, *dilation)):
        raise UntranslatableError("a convolution whose window depends on sizes")
    batched = x.rank == weight.rank
    name = x.name if batched else t.emit("Unsqueeze", x.name, t.onnx.integers([0]))
    pads = spread(padding, rank)
    operands = [name, weight.name, *([] if bias is None else [bias.name])]
    made = t.emit(
        "ConvTranspose" if transposed else "Conv",
        *operands,
        strides=spread(stride, rank),
        pads=[*pads, *pads],
        dilations=spread(dilation, rank),
        group=groups,
        output_padding=spread(output_padding, rank) if transposed else None,
    )
    return made if batched else t.emit("Squeeze", made, t.onnx.integers([0]))


@translates(aten.max_pool2d_with_indices.default, aten.max_pool3d_with_indices.default)
def _max_pool(
    t: Translation,
    node: fx.Node,
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil: bool = False,
) -> list[str | None]:
    """The indices, which few programs read, are made for those: in each plane, where ONNX counts over all planes."""
    rank = 2 if node.target is aten.max_pool2d_with_indices.default else 3
    if not any(user.args[1] == 1 and user.users for user in node.users):
        return [_pool(t, "MaxPool", x, rank, kernel, stride, padding, ceil, dilations=spread(dilation, rank)), None]
    if x.rank != rank + 2:
        raise UntranslatableError("the places of maxima of one image")
    best, places = t.onnx.emit_several(
        "MaxPool", 2, x.name, **_window(rank, kernel, stride, padding, ceil), dilations=spread(dilation, rank)
    )
    plane = t.emit("ReduceProd", t.shape(t.extents(x)[2:]), keepdims=0)
    return [best, t.emit("Mod", places, plane)]


@translates(aten.avg_pool1d.default, aten.avg_pool2d.default, aten.avg_pool3d.default)
def _average_pool(
    t: Translation,
    node: fx.Node,
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil: bool = False,
    with_padding: bool = True,
    divisor: int | None = None,
) -> str:
    """With a divisor of its own the sum, which an average with all of the padding is but for a factor, is divided."""
    ranks = {aten.avg_pool1d.default: 1, aten.avg_pool2d.default: 2, aten.avg_pool3d.default: 3}
    rank = ranks[node.target]
    if divisor is None:
        return _pool(t, "AveragePool", x, rank, kernel, stride, padding, ceil, count_include_pad=int(with_padding))
    if ceil:
        raise UntranslatableError("an average pooling with a divisor of its own and windows over the end")
    mean = _pool(t, "AveragePool", x, rank, kernel, stride, padding, ceil, count_include_pad=1)
    return t.emit("Mul", mean, t.literal(prod(spread(kernel, rank)) / divisor, x.dtype))


def _pool(
    t: Translation,
    op: str,
    x: Tensor,
    rank: int,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil: bool,
    **more: object,
) -> str:
    batched = x.rank == rank + 2
    name = x.name if batched else t.emit("Unsqueeze", x.name, t.onnx.integers([0]))
    made = t.emit(op, name, **_window(rank, kernel, stride, padding, ceil), **more)
    return made if batched else t.emit("Squeeze", made, t.onnx.integers([0]))


def _window(
    rank: int, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], ceil: bool
) -> dict[str, Any]:
    """The attributes of a pooling."""
    pads, window = spread(padding, rank), spread(kernel, rank)
    return {
        "kernel_shape": window,
        "strides": spread(stride, rank) if stride else window,
        "pads": [*pads, *pads],
        "ceil_mode": int(ceil),
    }


@translates(aten._adaptive_avg_pool2d.default, aten._adaptive_avg_pool3d.default)
def _adaptive_average(t: Translation, node: fx.Node, x: Tensor, size: Sequence[int | Size]) -> str:
    """Windows of equal extent are a pooling; others a product, in each dimension, with the matrix of their shares."""
    rank = len(size)
    if all(each == 1 for each in size):
        return t.emit("ReduceMean", x.name, t.onnx.integers(list(range(x.rank - rank, x.rank))), keepdims=1)
    pairs = list(zip(x.shape[-rank:], size, strict=True))
    window = [e // s for e, s in pairs if isinstance(e, int) and isinstance(s, int) and s and e % s == 0]
    if len(window) == rank:
        return _pool(t, "AveragePool", x, rank, window, window, (0,), False)
    name = x.name
    for number, count in enumerate(size):
        place = x.rank - rank + number
        shares = _shares(t, t.extent(x, place), count, x.dtype)
        order = list(range(x.rank))
        order[place], order[-1] = order[-1], order[place]
        last = place == x.rank - 1
        rows = name if last else t.emit("Transpose", name, perm=order)
        made = t.emit("MatMul", rows, shares)
        name = made if last else t.emit("Transpose", made, perm=order)
    return name


@translates(aten.adaptive_max_pool2d.default, aten.adaptive_max_pool3d.default)
def _adaptive_maximum(t: Translation, node: fx.Node, x: Tensor, size: Sequence[int | Size]) -> list[str | None]:
    """In each dimension the largest of every window, the shorter ones of which have their last element twice."""
    if any(user.args[1] != 0 and user.users for user in node.users):
        raise UntranslatableError("the places of adaptive maxima")
    name, rank = x.name, len(size)
    for number, count in enumerate(size):
        place = x.rank - rank + number
        extent = t.extent(x, place)
        if extent == count:
            continue
        if not isinstance(extent, int) or not isinstance(count, int):
            raise UntranslatableError("adaptive maxima of an open number of windows, or of windows of open extents")
        ends = [(n * extent // count, -(-(n + 1) * extent // count)) for n in range(count)]
        widest = max(last - first for first, last in ends)
        places = [[min(first + n, last - 1) for n in range(widest)] for first, last in ends]
        windows = t.emit("Gather", name, t.onnx.constant(places, "int64"), axis=place)
        name = t.emit("ReduceMax", windows, t.onnx.integers([place + 1]), keepdims=0)
    return [name, None]


def _shares(t: Translation, extent: int | Size, count: int | Size, dtype: torch.dtype) -> str:
    """How much each of an extent's elements is of each of `count` averages: window n is from `n*extent // count` to
    the next multiple above `(n+1)*extent // count`."""
    whole, many, one = (t.operand(each, torch.int64) for each in (extent, count, 1))
    zero = t.onnx.constant(0, "int64")
    n = t.emit("Range", zero, many, one)
    first = t.emit("Div", t.emit("Mul", n, whole), many)
    last = t.emit("Mul", t.emit("Add", n, one), whole)
    last = t.emit("Div", t.emit("Add", last, t.emit("Sub", many, one)), many)
    place = t.emit("Unsqueeze", t.emit("Range", zero, whole, one), t.onnx.integers([1]))
    inside = t.emit("And", t.emit("GreaterOrEqual", place, first), t.emit("Less", place, last))
    width = t.emit("Cast", t.emit("Sub", last, first), to=ONNX_TYPES[dtype])
    return t.emit("Div", t.emit("Cast", inside, to=ONNX_TYPES[dtype]), width)
