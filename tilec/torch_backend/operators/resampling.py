"""Images in another size, or read at places that are data."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import fx

from tilec.torch_backend.translation import Translation, translates
from tilec.torch_backend.values import Size, Tensor

aten = torch.ops.aten


def _resized(t: Translation, x: Tensor, size: Sequence[int | Size], **attributes: str) -> str:
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
