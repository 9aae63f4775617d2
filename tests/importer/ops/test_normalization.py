"""Normalisations: against onnxruntime, and against float64 where the mean is large beside the spread."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.importer.reference import check, helper, normal, onnxruntime, run, save, single
from tilec.importer import import_model


@pytest.mark.parametrize("axis", [-1, 1, 2])
@pytest.mark.feature("A04")
def test_layer_normalization(tmp_path: Path, axis: int) -> None:
    x = normal(2, 3, 4, 5)
    scale, bias = normal(*x.shape[axis:], seed=1), normal(*x.shape[axis:], seed=2)
    check(tmp_path, "LayerNormalization", x, scale, bias, known=[1, 2], axis=axis, epsilon=1e-3)
    check(tmp_path, "LayerNormalization", x, scale, known=[1], axis=axis)


def test_layer_normalization_also_gives_mean_and_deviation(tmp_path: Path) -> None:
    check(tmp_path, "LayerNormalization", normal(2, 3, 4), normal(4), outputs=3)


def test_rms_normalization(tmp_path: Path) -> None:
    check(tmp_path, "RMSNormalization", normal(2, 3, 4), normal(4, seed=1), known=[1], opset=23, epsilon=1e-3)
    check(tmp_path, "RMSNormalization", normal(2, 3, 4), normal(3, 4, seed=1), known=[1], opset=23, axis=1)


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (1, 2, 6)])
def test_instance_normalization(tmp_path: Path, shape: tuple[int, ...]) -> None:
    check(tmp_path, "InstanceNormalization", normal(*shape), normal(shape[1], seed=1), normal(shape[1], seed=2))


@pytest.mark.parametrize("opset", [18, 21])
@pytest.mark.parametrize("groups", [1, 2, 6])
def test_group_normalization(tmp_path: Path, opset: int, groups: int) -> None:
    size = 6 if opset >= 21 else groups
    x, scale, bias = normal(2, 6, 3, 3), normal(size, seed=1), normal(size, seed=2)
    path, feeds = single(tmp_path, "GroupNormalization", x, scale, bias, opset=opset, num_groups=groups)
    (found,) = run(import_model(path), tmp_path, feeds)
    wide = x.astype(np.float64).reshape(2, groups, -1)
    standard = ((wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)).reshape(x.shape)
    repeats = 6 // size
    factor, offset = (np.repeat(v, repeats)[None, :, None, None] for v in (scale, bias))
    np.testing.assert_allclose(found, standard * factor + offset, rtol=1e-5, atol=1e-5)


def test_mean_variance_normalization(tmp_path: Path) -> None:
    check(tmp_path, "MeanVarianceNormalization", normal(2, 3, 4, 5))
    check(tmp_path, "MeanVarianceNormalization", normal(2, 3, 4), axes=[1, 2])


def _exact(x: NDArray[Any], axes: tuple[int, ...], epsilon: float) -> NDArray[np.float64]:
    wide = x.astype(np.float64)
    centered = wide - wide.mean(axes, keepdims=True)
    standard: NDArray[np.float64] = centered / np.sqrt((centered**2).mean(axes, keepdims=True) + epsilon)
    return standard


@pytest.mark.parametrize("offset", [1e3, 0.0])
@pytest.mark.parametrize(
    ("kind", "axes"), [("LayerNormalization", (-1,)), ("InstanceNormalization", (2,)), ("GroupNormalization", (1, 2))]
)
def test_error_is_within_twice_the_references(tmp_path: Path, kind: str, axes: tuple[int, ...], offset: float) -> None:
    x = (offset + (0.1 if offset else 1.0) * normal(2, 8, 256)).astype(np.float32)
    if not offset:
        x[:, ::3], x[:, 1::3] = 88.0, -88.0
        x += normal(2, 8, 256, seed=1)
    size = x.shape[-1] if kind == "LayerNormalization" else x.shape[1]
    extra = {"num_groups": 1} if kind == "GroupNormalization" else {}
    path, feeds = single(
        tmp_path, kind, x, np.ones(size, np.float32), np.zeros(size, np.float32), opset=21, epsilon=1e-5, **extra
    )
    (found,), (reference,) = run(import_model(path), tmp_path, feeds), onnxruntime(path, feeds)
    exact = _exact(x, axes, 1e-5)
    error, allowed = (np.abs(y - exact).max() for y in (found, reference))
    # The reference's group normalisation gives NaN where the mean is large.
    assert error <= 2 * np.nan_to_num(allowed, nan=1e-3)
    assert error <= 1e-5 * np.abs(exact).max()


def test_a_mean_subtracted_by_the_model_is_as_accurate(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["m"], axes=[-1]),
        helper.make_node("Sub", ["x", "m"], ["y"]),
    ]
    x = (1e3 + 0.1 * normal(8, 256)).astype(np.float32)
    path = save(tmp_path / "m.onnx", nodes, {"x": ("float32", x.shape)}, ["y"], opset=13)
    (found,) = run(import_model(path), tmp_path, {"x": x})
    exact = x.astype(np.float64) - x.astype(np.float64).mean(-1, keepdims=True)
    assert np.abs(found - exact).max() < 1e-7


def test_half_precision_is_normalised_in_single(tmp_path: Path) -> None:
    x = (100 + normal(2, 64)).astype(np.float16)
    path, feeds = single(tmp_path, "LayerNormalization", x, np.ones(64, np.float16))
    (found,) = run(import_model(path), tmp_path, feeds)
    np.testing.assert_allclose(found, _exact(x, (-1,), 1e-5), atol=2e-3)


def test_the_spread_itself_is_what_mean_variance_normalization_divides_by(tmp_path: Path) -> None:
    """Its epsilon is added to the root: beside a spread of 1e-3 it is nothing, added to the variance it would show."""
    x = (1e-3 * normal(2, 3, 4, 5)).astype(np.float32)
    path, feeds = single(tmp_path, "MeanVarianceNormalization", x)
    (found,) = run(import_model(path), tmp_path, feeds)
    np.testing.assert_allclose(found, _exact(x, (0, 2, 3), 0.0), rtol=1e-5, atol=1e-6)
    (found,) = run(import_model(path), tmp_path, {name: np.full_like(x, 0.5) for name in feeds})
    assert not found.any()


@pytest.mark.parametrize("kind", ["InstanceNormalization", "GroupNormalization", "MeanVarianceNormalization"])
def test_sums_beyond_half_precision(tmp_path: Path, kind: str) -> None:
    x = (300 + 10 * normal(1, 2, 16, 64)).astype(np.float16)
    ones = () if kind.startswith("Mean") else (np.ones(2, np.float16), np.zeros(2, np.float16))
    extra = {"num_groups": 2} if kind.startswith("Group") else {}
    path, feeds = single(tmp_path, kind, x, *ones, opset=18, **extra)
    (found,) = run(import_model(path), tmp_path, feeds)
    np.testing.assert_allclose(found, _exact(x, (2, 3), 1e-5), atol=5e-3)


def test_statistics_of_double_precision_are_stashed_in_single(tmp_path: Path) -> None:
    x, scale = normal(2, 3, 4, dtype="float64"), normal(4, dtype="float64")
    check(tmp_path, "LayerNormalization", x, scale, outputs=3, opset=17)


def test_sizes_of_one_and_of_nothing(tmp_path: Path) -> None:
    ones = np.ones(1, np.float32)
    check(tmp_path, "LayerNormalization", normal(3, 1), ones, ones)
    check(tmp_path, "LayerNormalization", normal(0, 4), normal(4), normal(4))
    check(tmp_path, "InstanceNormalization", normal(2, 3, 1), normal(3), normal(3), atol=1e-5)
    check(tmp_path, "InstanceNormalization", normal(0, 3, 4), normal(3), normal(3))
    path, feeds = single(tmp_path, "GroupNormalization", normal(0, 6, 2), normal(6), normal(6), opset=21, num_groups=2)
    assert run(import_model(path), tmp_path, feeds)[0].shape == (0, 6, 2)
