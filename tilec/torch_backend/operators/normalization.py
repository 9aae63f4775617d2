"""Normalisations, with the statistics that only training needs left out."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import fx

from tilec.torch_backend.translation import Translation, UntranslatableError, translates
from tilec.torch_backend.values import Size, Tensor

aten = torch.ops.aten


@translates(aten.native_layer_norm.default)
def _layer_norm(
    t: Translation,
    node: fx.Node,
    x: Tensor,
    shape: Sequence[int | Size],
    weight: Tensor | None,
    bias: Tensor | None,
    epsilon: float,
) -> list[str | None]:
    _only_first(node)
    scale = weight.name if weight is not None else t.emit("Expand", t.literal(1, x.dtype), t.shape(shape))
    more = [] if bias is None else [bias.name]
    return [
        t.emit("LayerNormalization", x.name, scale, *more, axis=-len(shape), epsilon=float(epsilon)),
        None,
        None,
    ]


@translates(aten._native_batch_norm_legit_no_training.default)
def _batch_norm(
    t: Translation,
    node: fx.Node,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    _momentum: float,
    epsilon: float,
) -> list[str | None]:
    _only_first(node)
    sizes = [t.extent(mean, 0)]
    scale = weight.name if weight is not None else t.emit("Expand", t.literal(1, mean.dtype), t.shape(sizes))
    shift = bias.name if bias is not None else t.emit("Expand", t.literal(0, mean.dtype), t.shape(sizes))
    operands = (x.name, scale, shift, mean.name, variance.name)
    return [t.emit("BatchNormalization", *operands, epsilon=float(epsilon)), None, None]


@translates(aten._native_batch_norm_legit.no_stats)
def _instance_norm(
    t: Translation,
    node: fx.Node,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    training: bool,
    _momentum: float,
    epsilon: float,
) -> list[str | None]:
    """Statistics of every channel over all images: PyTorch gives one image with a channel for each instance."""
    _only_first(node)
    if x.shape[0] != 1 or not training or x.dtype != torch.float32:
        raise UntranslatableError(f"{node.target} over several images")
    size = t.shape([t.extent(x, 1)])
    scale, shift = (
        each.name if each is not None else t.emit("Expand", t.literal(number, x.dtype), size)
        for each, number in ((weight, 1), (bias, 0))
    )
    return [t.emit("InstanceNormalization", x.name, scale, shift, epsilon=float(epsilon)), None, None]


@translates(aten.native_group_norm.default)
def _group_norm(
    t: Translation,
    node: fx.Node,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    batch: int | Size,
    channels: int | Size,
    _area: int | Size,
    groups: int,
    epsilon: float,
) -> list[str | None]:
    """Each group, with its area, is a row that is normalised alone."""
    _only_first(node)
    rows = t.emit("Reshape", x.name, t.shape([batch, groups, -1]))
    ones = t.onnx.constant([1.0] * groups, "float32")
    zeros = t.onnx.constant([0.0] * groups, "float32")
    if x.dtype != torch.float32:
        raise UntranslatableError(f"a group normalisation of {x.dtype}")
    made = t.emit("InstanceNormalization", rows, ones, zeros, epsilon=float(epsilon))
    made = t.emit("Reshape", made, t.emit("Shape", x.name))
    wide = t.shape([channels, *[1] * (x.rank - 2)])
    if weight is not None:
        made = t.emit("Mul", made, t.emit("Reshape", weight.name, wide))
    if bias is not None:
        made = t.emit("Add", made, t.emit("Reshape", bias.name, wide))
    return [made, None, None]


def _only_first(node: fx.Node) -> None:
    """Raise UntranslatableError where the statistics are read."""
    if any(user.args[1] != 0 and user.users for user in node.users):
        raise UntranslatableError(f"the statistics of {node.target}")
