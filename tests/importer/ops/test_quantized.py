"""Quantisation against onnxruntime: every granularity and type, ties, saturation, special values, no elements."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.importer.reference import check, compare, helper, normal, run, save, single
from tilec.errors import ConfigError
from tilec.importer import import_model
from tilec.ir.text import tensor_text

X = np.concatenate([[np.nan, np.inf, -np.inf, 0.185, 0.555, -0.185, 1e30, -0.0], 50 * normal(25)]).astype(np.float32)
X = np.stack([X, -X[::-1], 9 * X])
FINITE = np.nan_to_num(X).clip(-900, 900)


def _points(ttype: str, *shape: int) -> NDArray[Any]:
    limits = np.iinfo(ttype)
    return np.random.default_rng(shape).integers(limits.min, limits.max, shape, ttype, endpoint=True)


def _scales(*shape: int) -> NDArray[Any]:
    return (np.abs(normal(*shape)) + 0.05).astype(np.float32)


@pytest.mark.parametrize(("ttype", "opset"), [("uint8", 10), ("int8", 13), ("int8", 21), ("uint16", 21), ("int16", 25)])
@pytest.mark.parametrize("known", [(), (1, 2)])
def test_quantize_one_scale(tmp_path: Path, ttype: str, opset: int, known: tuple[int, ...]) -> None:
    scale = np.float32(0.37 if ttype.endswith("8") else 0.0011)
    for zero in (0, 3, np.iinfo(ttype).max):
        points = np.array(zero, ttype)
        check(tmp_path, "QuantizeLinear", X, scale, points, known=known, opset=opset, rtol=0, atol=0)


@pytest.mark.parametrize("ttype", ["uint8", "int8"])
def test_quantize_a_scale_for_each_index_or_block(tmp_path: Path, ttype: str) -> None:
    check(tmp_path, "QuantizeLinear", X, _scales(33), _points(ttype, 33), rtol=0, atol=0)
    check(tmp_path, "QuantizeLinear", X, _scales(3), _points(ttype, 3), axis=-2, known=[1, 2], rtol=0, atol=0)
    blocks = {"opset": 21, "rtol": 0, "atol": 0}
    check(tmp_path, "QuantizeLinear", FINITE, _scales(3, 5), _points(ttype, 3, 5), block_size=8, **blocks)
    check(tmp_path, "QuantizeLinear", FINITE, _scales(2, 33), _points(ttype, 2, 33), axis=0, block_size=2, **blocks)


def test_quantize_without_a_zero_point(tmp_path: Path) -> None:
    check(tmp_path, "QuantizeLinear", X, np.float32(0.3), rtol=0, atol=0)
    check(tmp_path, "QuantizeLinear", X, np.float32(0.3), opset=21, output_dtype=5, rtol=0, atol=0)
    check(tmp_path, "QuantizeLinear", X[:, :0], np.float32(0.3), rtol=0, atol=0)
    check(tmp_path, "QuantizeLinear", X[0, 3], np.float32(0.3), np.array([5], np.int8), rtol=0, atol=0)


def test_quantize_half_precision_and_integers(tmp_path: Path) -> None:
    finite = FINITE.astype(np.float16)
    check(tmp_path, "QuantizeLinear", finite, np.float16(0.37), np.array(3, np.int8), opset=21, rtol=0, atol=0)
    numbers = np.array([-700, -3, -1, 0, 1, 3, 700], np.int32)
    path, feeds = single(tmp_path, "QuantizeLinear", numbers, np.float32(2), np.array(1, np.int8), opset=13)
    (found,) = run(import_model(path), tmp_path, feeds)
    np.testing.assert_array_equal(found, np.array([-128, -1, 1, 1, 1, 3, 127], np.int8))


def test_the_quotient_has_the_precision_asked_for(tmp_path: Path) -> None:
    x = np.array([2049.0, 2051.0, 10.0], np.float32)
    arrays = (x, np.float32(1), np.array(0, np.uint16))
    path, feeds = single(tmp_path, "QuantizeLinear", *arrays, opset=23, precision=10)
    (found,) = run(import_model(path), tmp_path, feeds)
    np.testing.assert_array_equal(found, np.array([2048, 2052, 10], np.uint16))


@pytest.mark.parametrize(
    ("ttype", "opset"), [("uint8", 10), ("int8", 13), ("int8", 19), ("uint16", 21), ("int16", 25), ("int32", 13)]
)
def test_dequantize(tmp_path: Path, ttype: str, opset: int) -> None:
    exact = {"opset": opset, "rtol": 0, "atol": 0}
    q, whole = _points(ttype, 5, 7), ttype == "int32"
    check(tmp_path, "DequantizeLinear", q, np.float32(0.37), **exact)
    check(tmp_path, "DequantizeLinear", q, np.float32(0.37), None if whole else _points(ttype), **exact)
    check(tmp_path, "DequantizeLinear", q[:0], np.float32(0.37), **exact)
    if opset >= 13:
        check(tmp_path, "DequantizeLinear", q, _scales(5), None if whole else _points(ttype, 5), axis=0, **exact)
    if opset >= 21:
        check(tmp_path, "DequantizeLinear", q, _scales(5, 3), _points(ttype, 5, 3), block_size=3, **exact)


def test_dequantize_to_half_precision(tmp_path: Path) -> None:
    q, scale = _points("int8", 5, 7), _scales(5).astype(np.float16)
    check(tmp_path, "DequantizeLinear", q, scale, _points("int8", 5), axis=0, opset=21, rtol=0, atol=0)
    check(tmp_path, "DequantizeLinear", q, np.float32(0.3), opset=23, output_dtype=10, rtol=0, atol=0)


def test_constants_stay_codes(tmp_path: Path) -> None:
    """Readers dequantise them; one number is a literal, whatever type it had."""
    path, _ = single(tmp_path, "DequantizeLinear", np.array([1, 5], np.int8), np.float32(0.5), known=[0, 1])
    graph = import_model(path).graph
    assert [tensor_text(node.expr) for node in graph.nodes] == ["y0[i] = f32(i32(x0[i])) * 0.5"]


@pytest.mark.parametrize("x", [FINITE, np.abs(FINITE), -np.abs(FINITE), 0 * FINITE, FINITE[:, :0], FINITE[0, 9]])
def test_dynamic_quantization(tmp_path: Path, x: NDArray[Any]) -> None:
    check(tmp_path, "DynamicQuantizeLinear", x, outputs=3, rtol=0, atol=0)


def test_a_layer_between_quantisations_is_exact(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("Relu", ["d"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "t", "z"], ["y"]),
    ]
    weights = {"s": np.float32(0.3), "t": np.float32(0.2), "z": np.array(7, np.int8)}
    path = save(tmp_path / "m.onnx", nodes, {"x": ("float32", [3, "n"])}, ["y"], weights)
    (found,) = run(import_model(path), tmp_path, {"x": FINITE}, {"n": 33})
    q = np.clip(np.rint(FINITE / weights["s"]) + 7, -128, 127) - 7
    real = np.maximum(q.astype(np.float32) * weights["s"], 0)
    np.testing.assert_array_equal(found, np.clip(np.rint(real / weights["t"]) + 7, -128, 127).astype(np.int8))


def _quantized_pair(name: str, scale: str, zero: str) -> list[Any]:
    return [
        helper.make_node("QuantizeLinear", [name, scale, zero], [f"{name}_q"]),
        helper.make_node("DequantizeLinear", [f"{name}_q", scale, zero], [f"{name}_d"]),
    ]


@pytest.mark.parametrize("ttype", ["uint8", "int8"])
def test_a_quantized_convolution_is_the_references_within_one_unit(tmp_path: Path, ttype: str) -> None:
    nodes = [
        *_quantized_pair("x", "s", "z"),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["w_d"], axis=0),
        helper.make_node("DequantizeLinear", ["b", "bs", "bz"], ["b_d"], axis=0),
        helper.make_node("Conv", ["x_d", "w_d", "b_d"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        *_quantized_pair("r", "t", "z"),
    ]
    weights = {
        "s": np.float32(0.02),
        "t": np.float32(0.03),
        "z": np.array(17, ttype),
        "w": _points("int8", 4, 3, 3, 3),
        "ws": 0.003 * _scales(4),
        "wz": np.zeros(4, np.int8),
        "b": _points("int16", 4).astype(np.int32) // 64,
        "bs": np.float32(0.02) * np.float32(0.003) * _scales(4),
        "bz": np.zeros(4, np.int32),
    }
    path = save(tmp_path / "m.onnx", nodes, {"x": ("float32", [1, 3, 8, 9])}, ["r_d"], weights, opset=13)
    compare(path, {"x": normal(1, 3, 8, 9)}, atol=0.031)


@pytest.mark.parametrize(
    ("scale", "options", "message"),
    [
        (_scales(4), {}, r"scales \[4\] for axis 1 of \[3, 33\]: 4 and 33 differ"),
        (_scales(3, 4), {"block_size": 8}, "in blocks of 8: 4 and 5 differ"),
        (_scales(3, 5), {}, "with block_size 0"),
        (_scales(33), {"axis": 2}, "axis 2 of a tensor of rank 2"),
    ],
)
def test_scales_that_do_not_fit(tmp_path: Path, scale: Any, options: dict[str, int], message: str) -> None:
    path, _ = single(tmp_path, "QuantizeLinear", X, scale, opset=21, **options)
    with pytest.raises(ConfigError, match=message):
        import_model(path)


def test_types_that_quantisation_does_not_make(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "QuantizeLinear", X, np.float32(1), opset=23, output_dtype=1)
    with pytest.raises(ConfigError, match="quantisation to f32"):
        import_model(path)
    path, _ = single(tmp_path, "DequantizeLinear", _points("int8", 3), np.float32(1), opset=23, output_dtype=3)
    with pytest.raises(ConfigError, match="dequantisation to i8"):
        import_model(path)
