"""Resize against onnxruntime: modes, coordinates, scales and sizes."""

from pathlib import Path

import numpy as np
import pytest

from tests.importer.reference import check, normal, single
from tilec.errors import UnsupportedError
from tilec.importer import import_model
from tilec.ir.text import tensor_text

COORDINATES = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"]


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("sizes", [[1, 2, 8, 10], [1, 2, 2, 3], [1, 2, 7, 1], [1, 2, 4, 5]])
def test_resize_to_sizes(tmp_path: Path, coordinates: str, mode: str, sizes: list[int]) -> None:
    target = np.array(sizes, np.int64)
    options = {"coordinate_transformation_mode": coordinates, "mode": mode}
    check(tmp_path, "Resize", normal(1, 2, 4, 5), None, None, target, known=[3], rtol=1e-4, atol=1e-5, **options)


@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
@pytest.mark.parametrize("scales", [[1, 1, 2, 2], [1, 1, 0.5, 1.5], [1, 1, 3, 1]])
def test_resize_by_scales(tmp_path: Path, rounding: str, scales: list[float]) -> None:
    factors = np.array(scales, np.float32)
    check(tmp_path, "Resize", normal(1, 2, 4, 6), None, factors, known=[2], nearest_mode=rounding)


def test_doubling_is_index_algebra(tmp_path: Path) -> None:
    factors = np.array([1, 1, 2, 2], np.float32)
    path, _ = single(tmp_path, "Resize", normal(1, 2, 4, 6), None, factors, known=[2])
    graph = import_model(path).graph
    assert [tensor_text(node.expr).partition(" = ")[2] for node in graph.nodes] == [
        "x0[i, j, k // 2, l]",
        "y0_axis2[i, j, k, l // 2]",
    ]
    assert not graph.constants


def test_upsample(tmp_path: Path) -> None:
    factors = np.array([1, 1, 2, 3], np.float32)
    check(tmp_path, "Upsample", normal(1, 2, 3, 4), factors, known=[1], opset=9)
    check(tmp_path, "Upsample", normal(1, 2, 3, 4), factors, known=[1], opset=9, mode="linear")
    check(tmp_path, "Upsample", normal(1, 2, 3, 4), opset=7, scales=[1.0, 1.0, 2.0, 3.0])


def test_what_resize_does_not_do(tmp_path: Path) -> None:
    target = np.array([2, 2], np.int64)
    for options in ({"antialias": 1, "mode": "linear"}, {"keep_aspect_ratio_policy": "not_larger"}):
        path, _ = single(tmp_path, "Resize", normal(4, 4), None, None, target, known=[3], **options)
        with pytest.raises(UnsupportedError, match=next(iter(options))):
            import_model(path)
