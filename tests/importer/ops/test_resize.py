"""Resize against onnxruntime: modes, coordinates, scales and sizes."""

from pathlib import Path

import numpy as np
import pytest

from tests.importer.reference import check, compare, helper, normal, save, single
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


@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
@pytest.mark.parametrize("coordinates", COORDINATES)
def test_coordinates_near_the_middle_of_two_pixels(tmp_path: Path, rounding: str, coordinates: str) -> None:
    options = {"nearest_mode": rounding, "coordinate_transformation_mode": coordinates}
    for scale in (0.3, 1 / 3, 0.6, 0.7, 1.1, 1.2, 1.5, 2.5):
        for size in (10, 13):
            factors = np.array([1, 1, scale], np.float32)
            check(tmp_path, "Resize", normal(1, 1, size), None, factors, known=[2], **options)


def test_doubling_is_index_algebra(tmp_path: Path) -> None:
    factors = np.array([1, 1, 2, 2], np.float32)
    path, _ = single(tmp_path, "Resize", normal(1, 2, 4, 6), None, factors, known=[2])
    graph = import_model(path).graph
    (node,) = graph.nodes
    assert tensor_text(node.expr) == "y0[i, j, k, l] = x0[i, j, k // 2, l // 2]"
    assert not graph.constants


def test_upsample(tmp_path: Path) -> None:
    factors = np.array([1, 1, 2, 3], np.float32)
    check(tmp_path, "Upsample", normal(1, 2, 3, 4), factors, known=[1], opset=9)
    check(tmp_path, "Upsample", normal(1, 2, 3, 4), factors, known=[1], opset=9, mode="linear")
    check(tmp_path, "Upsample", normal(1, 2, 3, 4), opset=7, scales=[1.0, 1.0, 2.0, 3.0])


@pytest.mark.parametrize("coordinates", ["half_pixel", "asymmetric", "half_pixel_symmetric"])
@pytest.mark.parametrize("exclude", [0, 1])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("scales", [[1, 1, 0.5, 1.5], [1, 1, 3, 0.7], [1, 1, 0.3, 0.6]])
def test_antialias(tmp_path: Path, coordinates: str, exclude: int, mode: str, scales: list[float]) -> None:
    options = {"coordinate_transformation_mode": coordinates, "mode": mode, "exclude_outside": exclude, "antialias": 1}
    factors = np.array(scales, np.float32)
    check(tmp_path, "Resize", normal(1, 2, 10, 13), None, factors, known=[2], rtol=1e-4, atol=1e-5, **options)


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("scales", [[1, 1, 2, 1.5], [1, 1, 3, 0.7]])
def test_cubic_without_neighbours_outside(tmp_path: Path, coordinates: str, scales: list[float]) -> None:
    options = {"coordinate_transformation_mode": coordinates, "mode": "cubic", "exclude_outside": 1}
    factors = np.array(scales, np.float32)
    options["cubic_coeff_a"] = -0.5
    check(tmp_path, "Resize", normal(1, 2, 5, 6), None, factors, known=[2], rtol=1e-4, atol=1e-5, **options)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("sizes", [[1, 2, 8, 10], [1, 2, 2, 3], [1, 2, 7, 1]])
@pytest.mark.parametrize("known", [[1, 3], [3]])
def test_a_region_of_interest(tmp_path: Path, mode: str, sizes: list[int], known: list[int]) -> None:
    roi = np.array([0, 0, 0.3, 0.2, 1, 1, 0.8, 1.3], np.float32)
    options = {"coordinate_transformation_mode": "tf_crop_and_resize", "mode": mode, "extrapolation_value": 7.0}
    target = np.array(sizes, np.int64)
    check(tmp_path, "Resize", normal(1, 2, 4, 5), roi, None, target, known=known, rtol=1e-4, atol=1e-5, **options)


def test_a_region_of_interest_over_some_axes(tmp_path: Path) -> None:
    roi, target = np.array([0.3, 0.2, 0.8, 1.3], np.float32), np.array([7, 3], np.int64)
    options = {"coordinate_transformation_mode": "tf_crop_and_resize", "axes": [3, 2]}
    check(tmp_path, "Resize", normal(1, 2, 4, 5), roi, None, target, known=[1, 3], **options)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
@pytest.mark.parametrize("sizes", [[7, 9], [3, 11], [2, 2]])
def test_the_aspect_ratio_is_kept(tmp_path: Path, policy: str, sizes: list[int]) -> None:
    target = np.array(sizes, np.int64)
    options = {"keep_aspect_ratio_policy": policy, "axes": [2, 3]}
    check(tmp_path, "Resize", normal(1, 2, 10, 13), None, None, target, known=[3], **options)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int32])
@pytest.mark.parametrize("options", [{"mode": "linear"}, {"mode": "cubic", "antialias": 1}, {"mode": "nearest"}])
def test_resize_of_integers(tmp_path: Path, dtype: type, options: dict[str, object]) -> None:
    """The reference rounds intermediate results elsewhere, so that integers may differ by one."""
    x = np.random.default_rng(0).integers(0, 100, (1, 2, 9, 10)).astype(dtype)
    factors = np.array([1, 1, 0.5, 0.7], np.float32)
    check(tmp_path, "Resize", x, None, factors, known=[2], atol=1, **options)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_resize_of_lines_volumes_and_half_floats(tmp_path: Path, mode: str) -> None:
    flat = [((5,), [2])] if mode == "nearest" else []  # which the reference does not interpolate
    for shape, scales in [*flat, ((3, 4, 5), [2, 1.5, 0.5]), ((1, 2, 3, 4, 5), [1, 1, 2, 1.5, 0.5])]:
        check(tmp_path, "Resize", normal(*shape), None, np.array(scales, np.float32), known=[2], mode=mode)
    half = normal(1, 2, 5, 6, dtype="float16")
    factors = np.array([1, 1, 2, 2], np.float32)
    check(tmp_path, "Resize", half, None, factors, known=[2], mode=mode, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", [[1, 1, 2, 2], [1, 1, 0.5, 0.5], [1, 1, 0.6, 1.3]])
def test_resize_before_opset_11(tmp_path: Path, mode: str, scales: list[float]) -> None:
    check(tmp_path, "Resize", normal(1, 2, 7, 6), np.array(scales, np.float32), known=[1], opset=10, mode=mode)


def test_coordinates_of_opset_11(tmp_path: Path) -> None:
    roi, factors = np.zeros(0, np.float32), np.array([1, 1, 2.5, 0.5], np.float32)
    options = {"coordinate_transformation_mode": "tf_half_pixel_for_nn"}
    check(tmp_path, "Resize", normal(1, 2, 7, 6), roi, factors, known=[1, 2], opset=11, **options)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("coordinates", COORDINATES)
def test_resize_of_a_symbolic_image(tmp_path: Path, mode: str, coordinates: str) -> None:
    options = {"mode": mode, "coordinate_transformation_mode": coordinates}
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], **options)
    inputs = {"x": ("float32", [1, 1, "h", "w"])}
    path = save(tmp_path / "m.onnx", [node], inputs, ["y"], {"s": np.array([1, 1, 2, 0.5], np.float32)})
    for h, w in ((5, 6), (1, 2)):
        compare(path, {"x": normal(1, 1, h, w)}, {"h": h, "w": w}, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rounding", ["round_prefer_floor", "ceil"])
@pytest.mark.parametrize("coordinates", COORDINATES)
def test_growing_a_symbolic_image_by_whole_factors(tmp_path: Path, rounding: str, coordinates: str) -> None:
    options = {"nearest_mode": rounding, "coordinate_transformation_mode": coordinates}
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], **options)
    inputs = {"x": ("float32", [1, "h", "w"])}
    path = save(tmp_path / "m.onnx", [node], inputs, ["y"], {"s": np.array([1, 2, 3], np.float32)})
    for h, w in ((5, 6), (1, 1)):
        graph = compare(path, {"x": normal(1, h, w)}, {"h": h, "w": w})
    if (rounding, coordinates) == ("round_prefer_floor", "half_pixel"):
        assert [tensor_text(n.expr) for n in graph.nodes] == ["y[i, j, k] = x[i, j // 2, k // 3]"]


def test_resize_to_the_size_of_another(tmp_path: Path) -> None:
    nodes = [helper.make_node("Shape", ["z"], ["n"]), helper.make_node("Resize", ["x", "", "", "n"], ["y"])]
    inputs = {"x": ("float32", [1, 1, "h", 4]), "z": ("float32", [1, 1, "k", 8])}
    path = save(tmp_path / "m.onnx", nodes, inputs, ["y"])
    compare(path, {"x": normal(1, 1, 3, 4), "z": normal(1, 1, 7, 8)}, {"h": 3, "k": 7})


def test_what_resize_does_not_do(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "Resize", normal(4, 4), None, np.ones(2, np.float32))
    with pytest.raises(UnsupportedError, match="input 2 must be known at compile time"):
        import_model(path)
    node = helper.make_node("Resize", ["x", "", "s"], ["y"])
    path = save(tmp_path / "m.onnx", [node], {"x": ("float32", ["n"])}, ["y"], {"s": np.array([0.7], np.float32)})
    with pytest.raises(UnsupportedError, match="--shape SYMBOL=SIZE"):
        import_model(path)
