"""GridSample against onnxruntime: modes, padding, images and volumes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.importer.reference import check, compare, helper, normal, run, save, single
from tilec.errors import ConfigError
from tilec.importer import import_model

SHAPES = [((2, 3, 5, 4), (2, 3, 7, 2)), ((1, 1, 1, 1), (1, 2, 2, 2)), ((1, 2, 1, 6), (1, 4, 1, 2))]
VOLUMES = [((2, 2, 3, 5, 4), (2, 2, 3, 3, 3)), ((1, 1, 1, 2, 1), (1, 2, 1, 1, 3))]
PADDINGS = ["zeros", "border", "reflection"]


def grid(*shape: int) -> NDArray[Any]:
    """Positions of which some lie outside."""
    return np.random.default_rng(1).uniform(-1.8, 1.8, shape).astype(np.float32)


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("align", [0, 1])
def test_images(tmp_path: Path, mode: str, padding: str, align: int) -> None:
    older = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
    options = {"padding_mode": padding, "align_corners": align, "rtol": 1e-4, "atol": 1e-5}
    for image, points in SHAPES:
        check(tmp_path, "GridSample", normal(*image), grid(*points), mode=mode, **options)
        check(tmp_path, "GridSample", normal(*image), grid(*points), opset=16, mode=older, **options)


@pytest.mark.parametrize("mode", ["linear", "nearest"])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("align", [0, 1])
def test_volumes(tmp_path: Path, mode: str, padding: str, align: int) -> None:
    options = {"padding_mode": padding, "align_corners": align, "rtol": 1e-4, "atol": 1e-5}
    for volume, points in VOLUMES:
        check(tmp_path, "GridSample", normal(*volume), grid(*points), mode=mode, **options)


def test_lines_and_cubic_volumes(tmp_path: Path) -> None:
    """Which the reference does not have; a volume that varies along one dimension is sampled as an image is."""
    line, points = normal(1, 2, 6), np.array([[[-1.0], [0.0], [1.0]]], np.float32)
    path, feeds = single(tmp_path, "GridSample", line, points, align_corners=1)
    expected = np.stack([line[..., 0], (line[..., 2] + line[..., 3]) / 2, line[..., 5]], -1)
    np.testing.assert_allclose(run(import_model(path), tmp_path, feeds)[0], expected, rtol=1e-6)
    volume, places = normal(1, 1, 4, 5, 1).repeat(3, 4), grid(1, 2, 3, 4, 3)
    places[..., 0] = 0.0
    path, feeds = single(tmp_path, "GridSample", volume, places, mode="cubic", align_corners=1)
    found = run(import_model(path), tmp_path, feeds)[0]
    flat = places[..., [1, 2]].reshape(1, 6, 4, 2)
    path, feeds = single(tmp_path, "GridSample", volume[..., 1].copy(), flat, mode="cubic", align_corners=1)
    np.testing.assert_allclose(found.ravel(), run(import_model(path), tmp_path, feeds)[0].ravel(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_positions_that_are_not_finite_and_infinite_borders(tmp_path: Path, mode: str) -> None:
    """Zeros outside are zeros, whatever stands at the border."""
    image = np.full((1, 1, 3, 3), np.inf, np.float32)
    image[0, 0, 1, 1] = 1.0
    points = np.array([[[[1e30, 0.0], [0.0, -5.0], [np.inf, 0.0]]]], np.float32)
    path, feeds = single(tmp_path, "GridSample", image, points, mode=mode)
    assert run(import_model(path), tmp_path, feeds)[0][0, 0, 0, 1] == 0.0
    path, feeds = single(tmp_path, "GridSample", normal(1, 1, 3, 3), points, mode=mode, padding_mode="border")
    assert run(import_model(path), tmp_path, feeds)[0].shape == (1, 1, 1, 3)


def test_a_symbolic_image(tmp_path: Path) -> None:
    node = helper.make_node("GridSample", ["x", "g"], ["y"], padding_mode="reflection")
    inputs = {"x": ("float32", ["n", 2, "h", "w"]), "g": ("float32", ["n", "i", "j", 2])}
    path = save(tmp_path / "m.onnx", [node], inputs, ["y"])
    sizes = {"n": 2, "h": 4, "w": 5, "i": 3, "j": 2}
    compare(path, {"x": normal(2, 2, 4, 5), "g": grid(2, 3, 2, 2)}, sizes, rtol=1e-4, atol=1e-5)


def test_grids_that_do_not_fit(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "GridSample", normal(1, 1, 4, 4), grid(1, 2, 2, 3))
    with pytest.raises(ConfigError, match="a grid"):
        import_model(path)
    path, _ = single(tmp_path, "GridSample", normal(1, 1, 4, 4), grid(1, 2, 2, 2), padding_mode="wrap")
    with pytest.raises(ConfigError, match="padding_mode is 'wrap'"):
        import_model(path)
