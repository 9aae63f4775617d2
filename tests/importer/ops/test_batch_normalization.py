"""Batch normalisation against onnxruntime: statistics given, for each element of a sample, and in training."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.importer.reference import check, normal, run, single
from tilec.errors import ConfigError
from tilec.importer import import_model
from tilec.ir.graph import Inline
from tilec.ir.text import tensor_text

SHAPES = [(2, 3, 4, 5), (2, 3), (1, 1, 1), (0, 3, 4), (2, 3, 0)]


def _statistics(*shape: int, dtype: str = "float32") -> list[NDArray[np.float32]]:
    scale, shift, mean, variance = (normal(*shape, seed=i) for i in range(4))
    return [a.astype(dtype) for a in (scale, shift, mean, np.abs(variance) + np.float32(0.1))]


@pytest.mark.parametrize("shape", SHAPES)
def test_given_statistics(tmp_path: Path, shape: tuple[int, ...]) -> None:
    for opset in (7, 9, 14, 15):
        check(tmp_path, "BatchNormalization", normal(*shape), *_statistics(shape[1]), known=[1, 2, 3, 4], opset=opset)


def test_one_multiplication_and_one_addition(tmp_path: Path) -> None:
    statistics = [np.array(v, np.float32) for v in ([2.0, 1.0], [0.5, 0.0], [1.0, 2.0], [4.0, 1.0])]
    path, _ = single(
        tmp_path, "BatchNormalization", normal(1, 2, 3, 3), *statistics, known=[1, 2, 3, 4], opset=15, epsilon=0.0
    )
    graph = import_model(path).graph
    (node,) = graph.nodes
    assert tensor_text(node.expr) == "y0[i, j, k, l] = x0[i, j, k, l] * y0_factor[j] + y0_offset[j]"
    assert graph.constants == {"y0_factor": Inline((1.0, 1.0)), "y0_offset": Inline((-0.5, -2.0))}


def test_statistics_for_each_element_of_a_sample(tmp_path: Path) -> None:
    x, statistics = normal(2, 3, 4), _statistics(3, 4)
    path, feeds = single(tmp_path, "BatchNormalization", x, *statistics, opset=7, spatial=0)
    scale, shift, mean, variance = statistics
    (found,) = run(import_model(path), tmp_path, feeds)
    np.testing.assert_allclose(found, (x - mean) / np.sqrt(variance + 1e-5) * scale + shift, atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES[:4])
@pytest.mark.parametrize("opset", [14, 15])
def test_training(tmp_path: Path, shape: tuple[int, ...], opset: int) -> None:
    arrays = normal(*shape), *_statistics(shape[1])
    check(tmp_path, "BatchNormalization", *arrays, opset=opset, outputs=3, training_mode=1, momentum=0.7, atol=1e-5)


def test_training_before_opset_14(tmp_path: Path) -> None:
    x, (scale, shift, mean, variance) = normal(4, 3, 5), _statistics(3)
    path, feeds = single(tmp_path, "BatchNormalization", x, scale, shift, mean, variance, opset=9, outputs=5)
    y, new_mean, new_variance, batch_mean, batch_variance = run(import_model(path), tmp_path, feeds)
    np.testing.assert_allclose(batch_mean, x.mean((0, 2)), atol=1e-6)
    np.testing.assert_allclose(batch_variance, x.var((0, 2)), atol=1e-6)
    np.testing.assert_allclose(new_mean, 0.9 * mean + 0.1 * batch_mean, atol=1e-6)
    np.testing.assert_allclose(new_variance, 0.9 * variance + 0.1 * batch_variance, atol=1e-6)
    factor = scale / np.sqrt(batch_variance + 1e-5)
    np.testing.assert_allclose(y, (x - batch_mean[:, None]) * factor[:, None] + shift[:, None], atol=1e-5)


@pytest.mark.parametrize("training", [0, 1])
def test_half_precision_with_statistics_in_single(tmp_path: Path, training: int) -> None:
    x, statistics = (300 + 10 * normal(8, 2, 64)).astype(np.float16), _statistics(2)
    options = {"opset": 15, "outputs": 3 if training else 1, "training_mode": training}
    path, feeds = single(tmp_path, "BatchNormalization", x, *statistics, **options)
    found = run(import_model(path), tmp_path, feeds)
    path, feeds = single(tmp_path, "BatchNormalization", x.astype(np.float32), *statistics, **options)
    assert found[0].dtype == np.float16
    for a, b in zip(found, run(import_model(path), tmp_path, feeds), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-3)


def test_statistics_that_do_not_fit(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "BatchNormalization", normal(1, 3, 3), *_statistics(2), opset=15)
    with pytest.raises(ConfigError, match="channels and their statistics: 2 and 3 differ"):
        import_model(path)
    path, _ = single(tmp_path, "BatchNormalization", normal(1, 3, 3), *_statistics(1, 3), opset=15)
    with pytest.raises(ConfigError, match=r"scale \[1, 3\] for an input"):
        import_model(path)
