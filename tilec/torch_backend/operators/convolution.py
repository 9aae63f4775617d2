"""Convolutions and pooling."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import fx

from tilec.torch_backend.translation import Translation, UntranslatableError, translates
from tilec.torch_backend.values import Size, Tensor

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
    """The indices, which only the gradient needs, are not made."""
    rank = 2 if node.target is aten.max_pool2d_with_indices.default else 3
    if any(user.args[1] == 1 for user in node.users):
        raise UntranslatableError("the indices of a maximum pooling")
    return [_pool(t, "MaxPool", x, rank, kernel, stride, padding, ceil, dilations=spread(dilation, rank)), None]


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
    if divisor is not None:
        raise UntranslatableError("an average pooling with a divisor of its own")
    ranks = {aten.avg_pool1d.default: 1, aten.avg_pool2d.default: 2, aten.avg_pool3d.default: 3}
    rank = ranks[node.target]
    return _pool(t, "AveragePool", x, rank, kernel, stride, padding, ceil, count_include_pad=int(with_padding))


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
    pads, window = spread(padding, rank), spread(kernel, rank)
    made = t.emit(
        op,
        name,
        kernel_shape=window,
        strides=spread(stride, rank) if stride else window,
        pads=[*pads, *pads],
        ceil_mode=int(ceil),
        **more,
    )
    return made if batched else t.emit("Squeeze", made, t.onnx.integers([0]))


@translates(aten._adaptive_avg_pool2d.default, aten._adaptive_avg_pool3d.default)
def _adaptive_average(t: Translation, node: fx.Node, x: Tensor, size: Sequence[int]) -> str:
    """Windows of equal size only: an extent is a multiple of the number of windows."""
    rank = len(size)
    if all(each == 1 for each in size):
        return t.emit("ReduceMean", x.name, t.onnx.integers(list(range(x.rank - rank, x.rank))), keepdims=1)
    extents = x.shape[-rank:]
    if not all(
        isinstance(e, int) and isinstance(s, int) and s and e % s == 0 for e, s in zip(extents, size, strict=True)
    ):
        raise UntranslatableError("an adaptive pooling with windows of several sizes")
    window = [int(e) // int(s) for e, s in zip(extents, size, strict=True)]
    return _pool(t, "AveragePool", x, rank, window, window, (0,), False)
