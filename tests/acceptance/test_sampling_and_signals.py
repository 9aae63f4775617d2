"""Sampling, pooling with indices, transforms and losses compile and give what onnxruntime gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from importer.ops.test_deformable import CASES, extents
from importer.ops.test_roi import IMAGES, REGIONS
from importer.reference import normal, single

from acceptance.building import check

F32 = np.float32


def compiles(folder: Path, kind: str, *arrays: Any, **options: Any) -> None:
    path, feeds = single(folder, kind, *arrays, **options)
    check(path, feeds)


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "linear"},
        {"mode": "cubic", "exclude_outside": 1},
        {"mode": "linear", "antialias": 1},
        {"mode": "nearest", "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 7.0},
    ],
)
def test_resize(tmp_path: Path, options: dict[str, Any]) -> None:
    """The image shrinks along one side and grows along the other; the region of interest is an input."""
    crops = "coordinate_transformation_mode" in options
    roi = np.array([0, 0, 0.3, 0.2, 1, 1, 0.8, 1.3], F32) if crops else None
    factors = np.array([1, 1, 0.3, 2.5], F32)
    compiles(tmp_path, "Resize", normal(1, 3, 17, 13), roi, factors, known=[2], **options)


@pytest.mark.parametrize("order", [0, 1])
def test_where_maxima_lie(tmp_path: Path, order: int) -> None:
    x = np.random.default_rng(0).integers(0, 5, (2, 3, 9, 7)).astype(F32)
    frame = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    compiles(tmp_path, "MaxPool", x, outputs=2, storage_order=order, **frame)


@pytest.mark.quick_cases("linear-zeros")
@pytest.mark.parametrize(
    ("mode", "padding"),
    [
        ("linear", "zeros"),
        pytest.param("linear", "border", marks=pytest.mark.slow),
        pytest.param("nearest", "reflection", marks=pytest.mark.slow),
        ("cubic", "reflection"),
    ],
)
def test_grid_sample(tmp_path: Path, mode: str, padding: str) -> None:
    grid = np.random.default_rng(1).uniform(-1.8, 1.8, (2, 5, 7, 2)).astype(F32)
    compiles(tmp_path, "GridSample", normal(2, 3, 5, 4), grid, mode=mode, padding_mode=padding)


@pytest.mark.slow_cases("max-0")
@pytest.mark.parametrize(
    ("mode", "ratio"),
    [
        ("avg", 2),
        ("max", 0),
        pytest.param("avg", 0, marks=pytest.mark.slow),
        pytest.param("max", 2, marks=pytest.mark.slow),
    ],
)
def test_roi_align(tmp_path: Path, mode: str, ratio: int) -> None:
    options = {"mode": mode, "sampling_ratio": ratio, "output_height": 3, "output_width": 2, "spatial_scale": 0.5}
    compiles(tmp_path, "RoiAlign", normal(2, 3, 8, 9), REGIONS, IMAGES, known=[] if ratio else [1], **options)


def test_max_roi_pool(tmp_path: Path) -> None:
    regions = np.concatenate([IMAGES[:, None].astype(F32), REGIONS], 1)
    compiles(tmp_path, "MaxRoiPool", normal(2, 3, 8, 9), regions, pooled_shape=[3, 2], spatial_scale=0.5)


def test_deformable_convolution(tmp_path: Path) -> None:
    shape, weight, attributes, groups, _, _ = CASES[1]
    out, number = extents(shape, weight[2:], attributes), groups * weight[2] * weight[3]
    arrays = [normal(shape[0], number * k, *out, seed=k) for k in (2, 1)]
    bias = normal(weight[0])
    options = {"offset_group": groups, "opset": 22, **attributes}
    compiles(tmp_path, "DeformConv", normal(*shape), normal(*weight, seed=2), 2 * arrays[0], bias, arrays[1], **options)


@pytest.mark.parametrize(
    ("size", "inverse"),
    [
        (512, 0),
        (5, 1),
        pytest.param(5, 0, marks=pytest.mark.slow),
        pytest.param(512, 1, marks=pytest.mark.slow),
    ],
)
def test_dft(tmp_path: Path, size: int, inverse: int) -> None:
    compiles(tmp_path, "DFT", normal(3, size, 2), inverse=inverse)
    if not inverse:
        compiles(tmp_path, "DFT", normal(3, size, 1), onesided=1)


def test_stft(tmp_path: Path) -> None:
    step, window = np.array(7), normal(16)
    compiles(tmp_path, "STFT", normal(2, 100, 1), step, window, known=[1], opset=17)


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
def test_pad(tmp_path: Path, mode: str) -> None:
    compiles(tmp_path, "Pad", normal(5, 6), np.array([-1, 2, 2, 1]), known=[1], mode=mode)


@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_losses(tmp_path: Path, reduction: str) -> None:
    target = np.random.default_rng(0).integers(0, 5, (4, 3))
    options = {"reduction": reduction, "ignore_index": 2, "opset": 13, "outputs": 2}
    compiles(tmp_path, "SoftmaxCrossEntropyLoss", normal(4, 5, 3), target, np.abs(normal(5)), **options)
