"""Pooling against onnxruntime, and what divides an average."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.importer.reference import check, compare, helper, normal, run, save, single
from tilec.errors import ConfigError
from tilec.importer import import_model
from tilec.ir.text import tensor_text

FRAMES: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((1, 2, 6, 7), {"kernel_shape": [2, 3]}),
    ((1, 2, 6, 7), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ((2, 1, 6, 7), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    ((1, 1, 7, 7), {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [0, 1, 1, 0], "ceil_mode": 1}),
    # One more window would begin right behind the tensor.
    ((1, 1, 3, 3), {"kernel_shape": [2, 2], "strides": [3, 3], "pads": [0, 0, 1, 1], "ceil_mode": 1}),
    ((1, 1, 7, 7), {"kernel_shape": [3, 2], "strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    ((1, 1, 7, 7), {"kernel_shape": [3, 2], "strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    ((1, 2, 9), {"kernel_shape": [3], "strides": [2]}),
    ((1, 1, 4, 5, 6), {"kernel_shape": [2, 3, 2], "pads": [0, 1, 0, 1, 1, 1]}),
]


@pytest.mark.parametrize(("shape", "attributes"), FRAMES)
def test_max_pool(tmp_path: Path, shape: tuple[int, ...], attributes: dict[str, Any]) -> None:
    check(tmp_path, "MaxPool", normal(*shape), **attributes)


def test_max_pool_of_bytes_and_with_dilation(tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(0, 255, (1, 1, 5, 5)).astype(np.uint8)
    check(tmp_path, "MaxPool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    check(tmp_path, "MaxPool", x.astype(np.int8), kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    check(tmp_path, "MaxPool", normal(1, 1, 7, 7), kernel_shape=[2, 2], dilations=[2, 3])


@pytest.mark.parametrize(("shape", "attributes"), [*FRAMES, ((2, 3, 1, 1), {"kernel_shape": [1, 1]})])
@pytest.mark.parametrize("order", [0, 1])
def test_indices_of_maxima(tmp_path: Path, shape: tuple[int, ...], attributes: dict[str, Any], order: int) -> None:
    """The first of equal elements counts, in row-major order even where columns are numbered first."""
    x = np.random.default_rng(0).integers(0, 5, shape).astype(np.float32)
    check(tmp_path, "MaxPool", x, outputs=2, storage_order=order, **attributes)


def test_indices_of_bytes_and_of_what_is_not_finite(tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(0, 5, (1, 2, 5, 5)).astype(np.uint8)
    check(tmp_path, "MaxPool", x, outputs=2, kernel_shape=[2, 2], dilations=[2, 1])
    nan = normal(1, 1, 4, 4)
    nan[0, 0, :2, :2], nan[0, 0, 2:, 2:] = np.nan, -np.inf
    path, feeds = single(tmp_path, "MaxPool", nan, outputs=2, kernel_shape=[2, 2], strides=[2, 2])
    assert run(import_model(path), tmp_path, feeds)[1].ravel()[[0, 3]].tolist() == [0, 10]


def test_storage_orders_that_do_not_exist(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "MaxPool", normal(1, 1, 4, 4), outputs=2, kernel_shape=[2, 2], storage_order=2)
    with pytest.raises(ConfigError, match="storage_order is 2"):
        import_model(path)


@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool", "LpPool"])
def test_dilation_with_a_last_window_that_reaches_out(tmp_path: Path, kind: str) -> None:
    frame = {"kernel_shape": [3, 3], "dilations": [2, 2], "pads": [1, 1, 2, 2], "strides": [2, 3], "ceil_mode": 1}
    check(tmp_path, kind, normal(1, 2, 9, 10), opset=22, **frame)
    if kind == "AveragePool":
        check(tmp_path, kind, normal(1, 2, 9, 10), opset=22, count_include_pad=1, **frame)


@pytest.mark.parametrize(("shape", "attributes"), FRAMES)
@pytest.mark.parametrize("padded", [0, 1])
def test_average_pool(tmp_path: Path, shape: tuple[int, ...], attributes: dict[str, Any], padded: int) -> None:
    check(tmp_path, "AveragePool", normal(*shape), count_include_pad=padded, **attributes)


def test_average_without_padding_divides_by_a_literal(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "AveragePool", normal(1, 2, 6, 6), kernel_shape=[2, 3])
    graph = import_model(path).graph
    assert tensor_text(graph.nodes[-1].expr) == "y0[i, j, k, l] = y0_sum[i, j, k, l] / 6.0"
    assert not graph.constants


def test_average_pool_of_a_symbolic_image(tmp_path: Path) -> None:
    node = helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    path = save(tmp_path / "m.onnx", [node], {"x": ("float32", [1, 1, "h", "w"])}, ["y"])
    compare(path, {"x": normal(1, 1, 5, 6)}, {"h": 5, "w": 6})


@pytest.mark.feature("B01")
@pytest.mark.parametrize("stride", [2, 3, 5])
def test_ceil_mode_over_a_symbol(tmp_path: Path, stride: int) -> None:
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[3, 3], strides=[stride, 2], ceil_mode=1)
    path = save(tmp_path / "m.onnx", [node], {"x": ("float32", [1, 1, "h", 8])}, ["y"])
    for h in range(3, 14):
        compare(path, {"x": normal(1, 1, h, 8)}, {"h": h})


@pytest.mark.parametrize("kind", ["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (1, 2, 7), (1, 1, 1, 1)])
def test_global_pools(tmp_path: Path, kind: str, shape: tuple[int, ...]) -> None:
    check(tmp_path, kind, normal(*shape))


@pytest.mark.parametrize("p", [1, 2, 3])
def test_lp_pool(tmp_path: Path, p: int) -> None:
    check(tmp_path, "LpPool", normal(1, 2, 6, 6), kernel_shape=[2, 3], p=p, pads=[1, 1, 0, 1])


@pytest.mark.parametrize("size", [1, 3, 5])
def test_lrn(tmp_path: Path, size: int) -> None:
    check(tmp_path, "LRN", normal(1, 6, 3, 3), size=size, alpha=0.2, beta=0.7, bias=1.5)


@pytest.mark.parametrize("p", [1, 2])
def test_lp_normalization(tmp_path: Path, p: int) -> None:
    x = normal(3, 4)
    x[1] = 0
    check(tmp_path, "LpNormalization", x, p=p, axis=1)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("AveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 0, 0]}),
        ("LpPool", {"kernel_shape": [3, 3], "p": 1}),
        ("LpPool", {"kernel_shape": [3, 3]}),
        ("GlobalLpPool", {}),
        ("GlobalAveragePool", {}),
        ("LRN", {"size": 3}),
        ("LpNormalization", {}),
    ],
)
def test_half_precision_is_summed_in_single(tmp_path: Path, kind: str, options: dict[str, Any]) -> None:
    """Sums of 20000 and squares of it lie beyond half precision."""
    x = np.full((1, 2, 4, 5), 20000, np.float16)
    path, feeds = single(tmp_path, kind, x, **options)
    (half,) = run(import_model(path), tmp_path, feeds)
    path, feeds = single(tmp_path, kind, x.astype(np.float32), **options)
    (full,) = run(import_model(path), tmp_path, feeds)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(half, full.astype(np.float16))


def test_pool_of_a_matrix(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "MaxPool", normal(3, 4), kernel_shape=[2])
    with pytest.raises(ConfigError, match="without spatial dimensions"):
        import_model(path)
