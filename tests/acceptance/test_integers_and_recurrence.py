"""Quantised layers and unrolled recurrence compile and give what onnxruntime gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from importer.ops.cells import OUTPUTS, operands
from importer.reference import single

from acceptance.building import check


def _numbers(ttype: str, *shape: int):
    limits = np.iinfo(ttype)
    return np.random.default_rng(shape).integers(limits.min, limits.max, shape, ttype, endpoint=True)


@pytest.mark.quick_cases("int8-1")
@pytest.mark.parametrize(
    ("ttype", "group"),
    [
        ("uint8", 4),
        ("int8", 1),
        pytest.param("uint8", 1, marks=pytest.mark.slow),
        pytest.param("int8", 4, marks=pytest.mark.slow),
    ],
)
def test_quantized_convolution(tmp_path: Path, ttype: str, group: int) -> None:
    zeros = np.array(100, ttype), np.zeros(12, np.int8), np.array(5, ttype)
    scales = np.float32(0.02), np.linspace(0.01, 0.05, 12, dtype=np.float32), np.float32(0.7)
    x, w = _numbers(ttype, 2, 4, 7, 9), _numbers("int8", 12, 4 // group, 3, 3) // 2
    bias = _numbers("int16", 12).astype(np.int32)
    arrays = (x, scales[0], zeros[0], w, scales[1], zeros[1], scales[2], zeros[2], bias)
    path, feeds = single(
        tmp_path, "QLinearConv", *arrays, known=range(1, 9), group=group, pads=[1, 1, 0, 1], strides=[2, 1]
    )
    check(path, feeds)


def test_quantized_product_and_dynamic_quantization(tmp_path: Path) -> None:
    zeros = np.array(9, np.uint8), np.zeros(19, np.int8), np.array(4, np.uint8)
    scales = np.float32(0.3), np.linspace(0.1, 0.9, 19, dtype=np.float32), np.float32(180)
    a, b = _numbers("uint8", 37, 65), _numbers("int8", 65, 19) // 2
    path, feeds = single(tmp_path, "QLinearMatMul", a, scales[0], zeros[0], b, scales[1], zeros[1], scales[2], zeros[2])
    check(path, feeds)
    x = np.random.default_rng(0).standard_normal((5, 33)).astype(np.float32)
    path, feeds = single(tmp_path, "DynamicQuantizeLinear", x, outputs=3)
    check(path, feeds, tolerance=0)


@pytest.mark.parametrize("kind", [pytest.param(k, marks=() if k == "LSTM" else pytest.mark.slow) for k in OUTPUTS])
def test_recurrence_in_both_directions(tmp_path: Path, kind: str) -> None:
    arrays = operands(kind, (3, 2, 5, 7), directions=2, lengths=(3, 1))
    options = {"hidden_size": 7, "direction": "bidirectional", "outputs": OUTPUTS[kind]}
    path, feeds = single(tmp_path, kind, *arrays, known=[1, 2, 3], **options)
    check(path, feeds)
