"""Convolutions, pooling, images of other sizes."""

from __future__ import annotations

import torch
from torch.nn import functional as F  # noqa: N812

from torch_backend.functions.function import IMAGES, MATRIX, REAL, ROWS, Function, normal, tensors

FUNCTIONS: dict[str, Function] = {
    "conv1d": Function(F.conv1d, tensors((2, 4, "n"), (6, 4, 3), (6,)), REAL),
    "conv1d same": Function(lambda x, w: F.conv1d(x, w, padding="same"), tensors((2, 4, "n"), (6, 4, 4))),
    "conv2d": Function(
        lambda x, w: F.conv2d(x, w, stride=(1, 2), padding=(2, 1), dilation=2),
        tensors((2, 4, "n", 9), (6, 4, 3, 3)),
        REAL,
    ),
    "conv2d of groups": Function(
        lambda x, w: F.conv2d(x, w, padding=1, groups=2), tensors((2, 4, "n", 9), (6, 2, 3, 3)), REAL
    ),
    "conv2d unbatched": Function(F.conv2d, tensors((4, "n", 9), (6, 4, 3, 3))),
    "conv3d": Function(lambda x, w: F.conv3d(x, w, padding=1), tensors((1, 2, "n", 5, 6), (3, 2, 3, 3, 3))),
    "conv_transpose1d": Function(
        lambda x, w: F.conv_transpose1d(x, w, stride=2, padding=1, output_padding=1), tensors((2, 4, "n"), (4, 6, 3))
    ),
    "conv_transpose2d": Function(
        lambda x, w: F.conv_transpose2d(x, w, stride=2, groups=2, dilation=2),
        tensors((2, 4, "n", 5), (4, 3, 3, 3)),
        REAL,
    ),
    "avg_pool1d": Function(lambda x: F.avg_pool1d(x, 3, 2, 1), ROWS),
    "avg_pool2d": Function(lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), IMAGES, REAL),
    "avg_pool2d ceil": Function(lambda x: F.avg_pool2d(x, 2, 2, ceil_mode=True), IMAGES),
    "avg_pool2d divisor": Function(lambda x: F.avg_pool2d(x, 2, 1, divisor_override=3), IMAGES),
    "avg_pool3d": Function(lambda x: F.avg_pool3d(x, 2), normal(1, 2, "n", 4, 5)),
    "max_pool1d": Function(lambda x: F.max_pool1d(x, 3, 2, 1), ROWS),
    "max_pool2d": Function(lambda x: F.max_pool2d(x, 3, 2, 1), IMAGES, REAL),
    "max_pool2d dilated": Function(lambda x: F.max_pool2d(x, 2, 1, 0, 2, ceil_mode=True), IMAGES),
    "max_pool2d with indices": Function(lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), IMAGES),
    "max_pool3d": Function(lambda x: F.max_pool3d(x, 2, 1), normal(1, 2, "n", 4, 5)),
    "max_unpool2d": Function(
        lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2), normal(2, 3, 6, 8), fixed=True
    ),
    "adaptive_avg_pool1d": Function(lambda x: F.adaptive_avg_pool1d(x, 3), normal(2, "n", 7)),
    "adaptive_avg_pool2d": Function(lambda x: F.adaptive_avg_pool2d(x, 1), IMAGES, REAL),
    "adaptive_avg_pool2d uneven": Function(lambda x: F.adaptive_avg_pool2d(x, (3, 4)), normal("n", 4, 7, 9)),
    "adaptive_avg_pool2d of a size": Function(lambda x: F.adaptive_avg_pool2d(x, (2, 3)), IMAGES),
    "adaptive_max_pool2d": Function(lambda x: F.adaptive_max_pool2d(x, (2, 3)), normal("n", 4, 6, 9)),
    "adaptive_max_pool2d uneven": Function(lambda x: F.adaptive_max_pool2d(x, (3, 4)), normal("n", 4, 7, 9)),
    "lp_pool2d": Function(lambda x: F.lp_pool2d(x, 2, 2), IMAGES),
    "fractional_max_pool2d": Function(
        lambda x, s: F.fractional_max_pool2d(x, 2, (3, 3), _random_samples=s),
        lambda n: (torch.randn(n, 4, 8, 9), torch.rand(n, 4, 2)),
    ),
    "interpolate nearest": Function(lambda x: F.interpolate(x, scale_factor=2), IMAGES, REAL),
    "interpolate nearest of a scale": Function(lambda x: F.interpolate(x, scale_factor=1.7), IMAGES),
    "interpolate nearest-exact": Function(lambda x: F.interpolate(x, size=(7, 5), mode="nearest-exact"), IMAGES),
    "interpolate bilinear": Function(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), IMAGES, REAL),
    "interpolate bilinear of a scale": Function(lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear"), IMAGES),
    "interpolate bilinear corners": Function(
        lambda x: F.interpolate(x, size=(7, 5), mode="bilinear", align_corners=True), IMAGES
    ),
    "interpolate bilinear antialias": Function(
        lambda x: F.interpolate(x, size=(5, 4), mode="bilinear", antialias=True), IMAGES
    ),
    "interpolate bicubic": Function(lambda x: F.interpolate(x, size=(7, 5), mode="bicubic"), IMAGES),
    "interpolate linear": Function(lambda x: F.interpolate(x, scale_factor=2, mode="linear"), ROWS),
    "interpolate trilinear": Function(
        lambda x: F.interpolate(x, scale_factor=2, mode="trilinear"), normal(1, 2, "n", 4, 5)
    ),
    "interpolate area": Function(lambda x: F.interpolate(x, size=(3, 3), mode="area"), normal("n", 4, 6, 9)),
    "grid_sample": Function(
        lambda x, g: F.grid_sample(x, g.tanh(), align_corners=False), tensors((2, 4, "n", 9), (2, 5, 6, 2))
    ),
    "grid_sample nearest": Function(
        lambda x, g: F.grid_sample(x, g.tanh(), mode="nearest", padding_mode="border", align_corners=True),
        tensors((2, 4, "n", 9), (2, 5, 6, 2)),
    ),
    "grid_sample reflection": Function(
        lambda x, g: F.grid_sample(x, g, padding_mode="reflection", align_corners=False),
        tensors((2, 4, "n", 9), (2, 5, 6, 2)),
    ),
    "affine_grid": Function(lambda t: F.affine_grid(t, [2, 3, 4, 5], align_corners=False), normal(2, 2, 3), fixed=True),
    "pad": Function(lambda x: F.pad(x, (1, 2, 0, 3), value=0.5), IMAGES, REAL),
    "pad negative": Function(lambda x: F.pad(x, (-1, 2, 1, -1)), IMAGES),
    "pad of truth values": Function(lambda x: F.pad(x > 0, (1, 2), value=True), MATRIX),
    "pad reflect": Function(lambda x: F.pad(x, (1, 2, 2, 1), mode="reflect"), IMAGES, REAL),
    "pad reflect 1d": Function(lambda x: F.pad(x, (2, 1), mode="reflect"), ROWS),
    "pad replicate": Function(lambda x: F.pad(x, (1, 2, 2, 1), mode="replicate"), IMAGES),
    "pad circular": Function(lambda x: F.pad(x, (1, 2, 2, 1), mode="circular"), IMAGES),
    "unfold": Function(lambda x: F.unfold(x, 3, padding=1, stride=2), IMAGES, REAL),
    "fold": Function(lambda x: F.fold(x, (6, 8), 2, stride=2), normal("n", 12, 12)),
    "fold overlapping": Function(lambda x: F.fold(x, (5, 6), 3, padding=1), normal("n", 18, 30)),
}
