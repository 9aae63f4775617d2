"""Images in another size, or read at places that are data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from tilec.torch_backend.translation import Translation, UntranslatableError, translates
from tilec.torch_backend.values import Size, Tensor

aten = torch.ops.aten


def _resized(t: Translation, x: Tensor, size: Sequence[int | Size], **attributes: Any) -> str:
    sizes = [t.extent(x, 0), t.extent(x, 1), *size]
    return t.emit("Resize", x.name, "", "", t.shape(sizes), **attributes)


@translates(aten.upsample_nearest2d.default, aten.upsample_nearest1d.default, aten.upsample_nearest3d.default)
def _nearest(t: Translation, node: fx.Node, x: Tensor, size: Sequence[int | Size], *_: float | None) -> str:
    return _resized(t, x, size, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")


@translates(aten.upsample_bilinear2d.default)
def _bilinear(
    t: Translation, node: fx.Node, x: Tensor, size: Sequence[int | Size], corners: bool, *_: float | None
) -> str:
    mode = "align_corners" if corners else "half_pixel"
    return _resized(t, x, size, mode="linear", coordinate_transformation_mode=mode)


@translates(aten._upsample_bilinear2d_aa.default, aten._upsample_bicubic2d_aa.default)
def _smooth(
    t: Translation,
    node: fx.Node,
    x: Tensor,
    size: Sequence[int | Size],
    corners: bool,
    scale_h: float | None = None,
    scale_w: float | None = None,
) -> str:
    """With windows that grow where an image shrinks: of known sizes a Resize, of others products with the matrices of
    the weights."""
    if corners or not x.dtype.is_floating_point:
        raise UntranslatableError("smooth resizing with aligned corners, or of integers")
    cubic = node.target is aten._upsample_bicubic2d_aa.default
    pairs = list(zip((2, 3), size, (scale_h, scale_w), strict=True))
    if all(isinstance(t.extent(x, place), int) and isinstance(out, int) and not s for place, out, s in pairs):
        more: dict[str, Any] = {"mode": "cubic", "cubic_coeff_a": -0.5} if cubic else {"mode": "linear"}
        return _resized(t, x, size, **more, antialias=1, exclude_outside=1)
    name = t.cast(x, torch.float32)
    for place, out, scale in pairs:
        weights = _window_weights(t, t.extent(x, place), out, scale, cubic)
        if place == 2:
            name = t.emit("MatMul", weights, name)
        else:
            name = t.emit("MatMul", name, t.emit("Transpose", weights, perm=[1, 0]))
    return t.cast(Tensor(name, x.shape, torch.float32), x.dtype)


def _window_weights(t: Translation, extent: int | Size, out: int | Size, scale: float | None, cubic: bool) -> str:
    """What each element adds to each result: a hat or a cubic curve around the result's place, which adds up to 1."""
    zero, one = t.literal(0, torch.float32), t.literal(1, torch.float32)
    half = t.literal(0.5, torch.float32)
    many, few = (t.operand(each, torch.float32) for each in (extent, out))
    ratio = t.literal(1 / scale, torch.float32) if scale else t.emit("Div", many, few)
    centre = t.emit("Mul", t.emit("Add", t.emit("Range", zero, few, one), half), ratio)
    place = t.emit("Add", t.emit("Range", zero, many, one), half)
    apart = t.emit("Sub", place, t.emit("Unsqueeze", centre, t.onnx.integers([1])))
    far = t.emit("Abs", t.emit("Div", apart, t.emit("Max", ratio, one)))
    curve = _cubic(t, far) if cubic else t.emit("Max", t.emit("Sub", one, far), zero)
    return t.emit("Div", curve, t.emit("ReduceSum", curve, t.onnx.integers([1]), keepdims=1))


def _cubic(t: Translation, far: str) -> str:
    """The cubic curve with slope -0.5 at 1, by Horner's rule within 1 and within 2."""

    def polynomial(*factors: float) -> str:
        total = t.literal(factors[0], torch.float32)
        for factor in factors[1:]:
            total = t.emit("Add", t.emit("Mul", total, far), t.literal(factor, torch.float32))
        return total

    near, middle = polynomial(1.5, -2.5, 0, 1), polynomial(-0.5, 2.5, -4, 2)
    outer = t.emit("Where", t.emit("Less", far, t.literal(2, torch.float32)), middle, t.literal(0, torch.float32))
    return t.emit("Where", t.emit("Less", far, t.literal(1, torch.float32)), near, outer)


@translates(aten.grid_sampler_2d.default, aten.grid_sampler_3d.default)
def _grid_sample(
    t: Translation, node: fx.Node, x: Tensor, grid: Tensor, interpolation: int, padding: int, corners: bool
) -> str:
    return t.emit(
        "GridSample",
        x.name,
        t.cast(grid, x.dtype),
        mode=("linear", "nearest", "cubic")[interpolation],
        padding_mode=("zeros", "border", "reflection")[padding],
        align_corners=int(corners),
    )
