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
    """Of operands of several types in float32, as PyTorch computes it."""
    _only_first(node)
    result = node.meta["val"][0].dtype
    dtype = computed_type(x, weight, bias)
    scale = t.cast(weight, dtype) if weight is not None else t.emit("Expand", t.literal(1, dtype), t.shape(shape))
    more = [] if bias is None else [t.cast(bias, dtype)]
    made = t.emit("LayerNormalization", t.cast(x, dtype), scale, *more, axis=-len(shape), epsilon=float(epsilon))
    return [t.cast(Tensor(made, x.shape, dtype), result), None, None]


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
    """Of operands of several types in float32, as PyTorch computes it."""
    _only_first(node)
    result = node.meta["val"][0].dtype
    dtype = computed_type(x, weight, bias, mean, variance)
    sizes = t.shape([t.extent(mean, 0)])
    scale = t.cast(weight, dtype) if weight is not None else t.emit("Expand", t.literal(1, dtype), sizes)
    shift = t.cast(bias, dtype) if bias is not None else t.emit("Expand", t.literal(0, dtype), sizes)
    operands = (t.cast(x, dtype), scale, shift, t.cast(mean, dtype), t.cast(variance, dtype))
    made = t.emit("BatchNormalization", *operands, epsilon=float(epsilon))
    return [t.cast(Tensor(made, x.shape, dtype), result), None, None]


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
    if x.shape[0] != 1 or not training or x.dtype == torch.float64:
        raise UntranslatableError(f"{node.target} over several images, or in float64")
    size = t.shape([t.extent(x, 1)])
    scale, shift = (
        t.cast(each, torch.float32) if each is not None else t.emit("Expand", t.literal(number, torch.float32), size)
        for each, number in ((weight, 1), (bias, 0))
    )
    made = t.emit("InstanceNormalization", t.cast(x, torch.float32), scale, shift, epsilon=float(epsilon))
    return [t.cast(Tensor(made, x.shape, torch.float32), x.dtype), None, None]


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
    """Each group, with its area, is a row that is normalised alone, in float32."""
    _only_first(node)
    if x.dtype == torch.float64:
        raise UntranslatableError("a group normalisation of float64")
    rows = t.emit("Reshape", t.cast(x, torch.float32), t.shape([batch, groups, -1]))
    ones = t.onnx.constant([1.0] * groups, "float32")
    zeros = t.onnx.constant([0.0] * groups, "float32")
    made = t.emit("InstanceNormalization", rows, ones, zeros, epsilon=float(epsilon))
    made = t.emit("Reshape", made, t.emit("Shape", x.name))
    wide = t.shape([channels, *[1] * (x.rank - 2)])
    if weight is not None:
        made = t.emit("Mul", made, t.emit("Reshape", t.cast(weight, torch.float32), wide))
    if bias is not None:
        made = t.emit("Add", made, t.emit("Reshape", t.cast(bias, torch.float32), wide))
    return [t.cast(Tensor(made, x.shape, torch.float32), x.dtype), None, None]


def computed_type(*operands: Tensor | None) -> torch.dtype:
    """The type in which operands are combined: their own, or float32 for several."""
    dtypes = {each.dtype for each in operands if each is not None}
    return dtypes.pop() if len(dtypes) == 1 else torch.float64 if torch.float64 in dtypes else torch.float32


def _only_first(node: fx.Node) -> None:
    """Raise UntranslatableError where the statistics are read."""
    if any(user.args[1] != 0 and user.users for user in node.users):
        raise UntranslatableError(f"the statistics of {node.target}")
