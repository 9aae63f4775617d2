"""Operators with a symbol for every dimension of their inputs: one import, beside onnxruntime at several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from tests.importer.reference import normal, onnxruntime, run, single
from tests.open_conformance.opened import opened
from tilec.errors import ConfigError
from tilec.importer import Imported, UnsupportedModelError, import_model

Operands = tuple[NDArray[Any], ...]


def whole(*shape: int, below: int = 7) -> NDArray[Any]:
    return np.random.default_rng(len(shape)).integers(0, below, shape)


def regions(images: int, count: int) -> Operands:
    corners = np.abs(normal(count, 2)) * 2
    return np.concatenate([corners, corners + 2.5], 1).astype(np.float32), whole(count, below=images)


def convolution(batch: int, channels: int, outputs: int, size: int, kernel: int) -> Operands:
    return normal(batch, channels, size, size + 1), normal(outputs, channels, kernel, kernel)


CASES: list[tuple[str, dict[str, Any], list[Operands]]] = [
    ("Conv", {}, [convolution(1, 2, 3, 5, 3), convolution(2, 1, 4, 4, 1), convolution(1, 3, 1, 7, 4)]),
    ("Conv", {"strides": [2, 2], "pads": [1, 0, 1, 2]}, [convolution(1, 2, 3, 5, 3), convolution(2, 1, 4, 6, 4)]),
    ("Conv", {"auto_pad": "SAME_UPPER", "strides": [2, 1]}, [convolution(1, 2, 3, 5, 3), convolution(1, 1, 1, 6, 2)]),
    ("Conv", {"group": 2}, [(normal(1, 4, 5), normal(6, 2, 3)), (normal(2, 2, 4), normal(4, 1, 2))]),
    (
        "ConvTranspose",
        {"strides": [2, 3], "group": 2},
        [(normal(1, 4, 3, 2), normal(4, 3, 3, 2)), (normal(2, 2, 1, 4), normal(2, 1, 1, 5))],
    ),
    (
        "ConvInteger",
        {},
        [
            (whole(1, 1, 3, 3).astype(np.uint8), whole(1, 1, 2, 2).astype(np.uint8), np.uint8(1).reshape(1)),
            (whole(2, 3, 4, 5).astype(np.uint8), whole(2, 3, 1, 3).astype(np.uint8), np.uint8(2).reshape(1)),
        ],
    ),
    (
        "ConvInteger",
        {},
        [
            (*(whole(*n).astype(np.uint8) for n in ((1, 1, 3, 3), (1, 1, 2, 2), (1,), (1,))),),
            (*(whole(*n).astype(np.uint8) for n in ((2, 3, 4, 5), (4, 3, 1, 3), (1,), (1,))),),
        ],
    ),
    (
        "DeformConv",
        {"pads": [1, 1, 1, 1]},
        [
            (normal(1, 2, 4, 4), normal(3, 2, 3, 3), normal(1, 18, 4, 4)),
            (normal(2, 1, 3, 5), normal(1, 1, 2, 1), normal(2, 4, 4, 7)),
        ],
    ),
    (
        "GridSample",
        {},
        [(normal(1, 2, 4, 5), normal(1, 3, 2, 2)), (normal(3, 1, 1, 7), normal(3, 1, 1, 2))],
    ),
    (
        "RoiAlign",
        {"sampling_ratio": 2, "output_height": 2, "output_width": 3},
        [(normal(2, 3, 7, 8), *regions(2, 4)), (normal(1, 1, 5, 5), *regions(1, 1))],
    ),
    ("MaxRoiPool", {"pooled_shape": [2, 2]}, [(normal(2, 3, 7, 8), np.float32([[0, 0, 0, 3, 4], [1, 2, 1, 6, 6]]))]),
    (
        "ScatterND",
        {},
        [
            (normal(5, 3), np.array([[0], [4], [2]]), normal(3, 3)),
            (normal(2, 1), np.array([[1]]), normal(1, 1)),
            (normal(3, 4), np.zeros((0, 1), np.int64), normal(0, 4)),
        ],
    ),
]


def imported(tmp_path: Path, kind: str, operands: Operands, attributes: dict[str, Any], **options: Any) -> Imported:
    """The operator with every dimension of its inputs open."""
    path, feeds = single(tmp_path, kind, *operands, **attributes)
    onnx.save(opened(onnx.load(path), feeds).model, path)
    return import_model(path, **options)


@pytest.mark.feature("B06")
@pytest.mark.parametrize(("kind", "attributes", "operands"), CASES)
def test_one_import_is_right_at_all_sizes(
    tmp_path: Path, kind: str, attributes: dict[str, Any], operands: list[Operands]
) -> None:
    once = imported(tmp_path, kind, operands[0], attributes)
    assert not once.graph.placement.fallback
    for each in operands:
        path, feeds = single(tmp_path, kind, *each, **attributes)
        case = opened(onnx.load(path), feeds)
        sizes = {symbol: case.sizes[symbol] for symbol in once.graph.symbols}
        expected = onnxruntime(path, feeds)
        for found, wanted in zip(run(once, tmp_path, feeds, sizes), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("length", "attributes", "parts"),
    [(6, {}, 1), (6, {}, 2), (5, {"inverse": 1}, 1), (5, {"inverse": 1}, 2), (4, {"inverse": 1, "onesided": 1}, 2)],
)
def test_signals_may_be_real_or_complex(tmp_path: Path, parts: int, length: int, attributes: dict[str, Any]) -> None:
    path, feeds = single(tmp_path, "DFT", normal(2, length, parts), opset=17, **attributes)
    expected = onnxruntime(path, feeds)[0]
    model = onnx.load(path)
    dims = model.graph.input[0].type.tensor_type.shape.dim
    dims[0].dim_param, dims[2].dim_param = "batch", "parts"
    onnx.save(model, path)
    once = import_model(path)
    assert once.graph.symbol_ranges["parts"].most == 2
    found = run(once, tmp_path, feeds, {"batch": 2, "parts": parts})[0]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "operands", "reason"),
    [
        ("GatherND", (normal(3, 4), np.array([[0], [2]])), "the size x1_d1 decides the rank of the result"),
        ("Det", (normal(3, 3),), "the size x0_d1 decides how many steps eliminate"),
        ("DFT", (normal(2, 6, 1),), "the size x0_d1 decides the factors of a transform"),
    ],
)
def test_a_size_that_decides_a_form_is_the_reason_to_fall_back(
    tmp_path: Path, kind: str, operands: Operands, reason: str
) -> None:
    with pytest.raises(UnsupportedModelError, match=reason):
        imported(tmp_path, kind, operands, {})
    (fallen,) = imported(tmp_path, kind, operands, {}, fallback="allow").graph.placement.fallback
    assert fallen.reason == reason


@pytest.mark.parametrize(
    ("kind", "operands", "message"),
    [
        ("GridSample", (normal(1, 1, 3, 3), normal(1, 2, 2, 3)), "coordinates: 3 and 2 differ"),
        ("RoiAlign", (normal(1, 1, 3, 3), normal(2, 5), whole(2, below=1)), "coordinates: 5 and 4 differ"),
        ("ScatterND", (normal(3, 3), np.array([[0, 1]]), normal(1, 3)), "coordinates: 2 and 1 differ"),
        ("Det", (normal(2, 3),), "no square matrix"),
        ("DFT", (normal(2, 6, 3),), "neither 1 .real. nor 2 .complex."),
    ],
)
def test_known_sizes_that_do_not_fit_are_invalid(tmp_path: Path, kind: str, operands: Operands, message: str) -> None:
    path, _ = single(tmp_path, kind, *operands)
    with pytest.raises(ConfigError, match=message):
        import_model(path)


def test_kernels_of_open_sizes_are_small(tmp_path: Path) -> None:
    graph = imported(tmp_path, "Conv", convolution(1, 2, 3, 5, 3), {}).graph
    assert [graph.symbol_ranges[each].likely for each in ("x1_d2", "x1_d3")] == [(3,), (3,)]
    assert {each for each, entry in graph.symbol_ranges.items() if entry.likely} == {"x1_d2", "x1_d3"}
