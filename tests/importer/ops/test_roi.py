"""RoiAlign and MaxRoiPool against onnxruntime: regions inside, outside, tiny, reversed and larger than the image."""

from pathlib import Path

import numpy as np
import pytest

from tests.importer.reference import check, compare, helper, normal, save, single
from tilec.errors import ConfigError, UnsupportedError
from tilec.importer import import_model

REGIONS = np.array(
    [[0, 0, 4, 4], [1, 2, 9, 7], [-2, -3, 3, 2.5], [5, 5, 5.2, 5.1], [3, 1, 30, 20], [-9, -9, -7, -7]], np.float32
)
IMAGES = np.array([0, 1, 1, 0, 1, 0])


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("ratio", [0, 1, 2])
@pytest.mark.parametrize("scale", [1.0, 0.5])
@pytest.mark.parametrize("bins", [(1, 1), (3, 2)])
def test_roi_align(
    tmp_path: Path, mode: str, coordinates: str, ratio: int, scale: float, bins: tuple[int, int]
) -> None:
    options = {"mode": mode, "sampling_ratio": ratio, "spatial_scale": scale}
    options |= {"output_height": bins[0], "output_width": bins[1], "coordinate_transformation_mode": coordinates}
    known = [] if ratio else [1]
    check(tmp_path, "RoiAlign", normal(2, 3, 8, 9), REGIONS, IMAGES, known=known, rtol=1e-4, atol=1e-5, **options)


def test_roi_align_of_opset_10_and_of_one_pixel(tmp_path: Path) -> None:
    options = {"sampling_ratio": 2, "output_height": 2}
    check(tmp_path, "RoiAlign", normal(2, 3, 8, 9), REGIONS, IMAGES, opset=10, **options)
    check(tmp_path, "RoiAlign", normal(2, 3, 1, 1), REGIONS, IMAGES, **options)


def test_roi_align_of_any_number_of_regions(tmp_path: Path) -> None:
    node = helper.make_node("RoiAlign", ["x", "r", "b"], ["y"], sampling_ratio=2, output_height=2, output_width=3)
    inputs = {"x": ("float32", ["n", 2, "h", "w"]), "r": ("float32", ["k", 4]), "b": ("int64", ["k"])}
    path = save(tmp_path / "m.onnx", [node], inputs, ["y"])
    feeds = {"x": normal(2, 2, 8, 9), "r": REGIONS, "b": IMAGES}
    compare(path, feeds, {"n": 2, "h": 8, "w": 9, "k": 6}, rtol=1e-4, atol=1e-5)


def test_samples_that_depend_on_the_regions_are_refused(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "RoiAlign", normal(2, 3, 8, 9), REGIONS, IMAGES)
    with pytest.raises(UnsupportedError, match="sampling_ratio 0 makes the number of samples depend"):
        import_model(path)
    path, _ = single(tmp_path, "RoiAlign", normal(2, 3, 8, 9), 1000 * REGIONS, IMAGES, known=[1])
    with pytest.raises(UnsupportedError, match="more than 64 samples"):
        import_model(path)


@pytest.mark.parametrize("scale", [1.0, 0.5, 0.3])
@pytest.mark.parametrize("bins", [[1, 1], [3, 2], [7, 7]])
def test_max_roi_pool(tmp_path: Path, scale: float, bins: list[int]) -> None:
    regions = np.concatenate([IMAGES[:, None].astype(np.float32), REGIONS], 1)
    check(tmp_path, "MaxRoiPool", normal(2, 3, 8, 9), regions, pooled_shape=bins, spatial_scale=scale)


def test_max_roi_pool_over_large_images_is_left_to_the_reference(tmp_path: Path) -> None:
    regions = np.zeros((2000, 5), np.float32)
    path, _ = single(tmp_path, "MaxRoiPool", np.zeros((1, 1, 500, 500), np.float32), regions, pooled_shape=[2, 2])
    with pytest.raises(UnsupportedError, match="would take 1000000000 operations"):
        import_model(path)


def test_regions_that_do_not_fit(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "RoiAlign", normal(2, 3, 8, 9), REGIONS[:, :3], IMAGES)
    with pytest.raises(ConfigError, match="regions"):
        import_model(path)
    path, _ = single(tmp_path, "RoiAlign", normal(2, 3, 8, 9), REGIONS, IMAGES, mode="min")
    with pytest.raises(ConfigError, match="mode is 'min'"):
        import_model(path)
