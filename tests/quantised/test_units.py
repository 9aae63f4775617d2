"""Products by compute units on processors: the same integers with every unit, and with none."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto as T
from onnx import helper

from quantised.compile import compiled
from quantised.test_few_bits import written
from tilec import load

H, C, F, R = 7, 6, 9, 3


def quantised(path: Path) -> Path:
    """A convolution of 6 channels, padded by the zero point, and a product: no word of the first is full."""
    rng = np.random.default_rng(3)
    arrays = {
        "w": rng.integers(-128, 128, (F, C, R, R)).astype(np.int8),
        "v": rng.integers(0, 256, (F * H * H, 5)).astype(np.uint8),
        "zx": np.array(251, np.uint8),
        "zw": np.array(0, np.int8),
        "zv": np.array(3, np.uint8),
        "shape": np.array([1, -1], np.int64),
        "low": np.array(0, np.int32),
        "high": np.array(255, np.int32),
        "cut": np.array(997, np.int32),
    }
    nodes = [
        helper.make_node("ConvInteger", ["x", "w", "zx", "zw"], ["y1"], pads=[1, 1, 1, 1]),
        helper.make_node("Div", ["y1", "cut"], ["a"]),
        helper.make_node("Clip", ["a", "low", "high"], ["b"]),
        helper.make_node("Cast", ["b"], ["c"], to=T.UINT8),
        helper.make_node("Reshape", ["c", "shape"], ["d"]),
        helper.make_node("MatMulInteger", ["d", "v", "zx", "zv"], ["y2"]),
    ]
    ports = {"x": (T.UINT8, [1, C, H, H]), "y1": (T.INT32, [1, F, H, H]), "y2": (T.INT32, [1, 5])}
    return written(path, nodes, arrays, ports)


@pytest.mark.slow
@pytest.mark.feature("L13", "L21")
def test_integers_are_the_same_on_every_processor(tmp_path: Path) -> None:
    """VNNI, products of i16 pairs, and the interpreter of ONNX."""
    path = quantised(tmp_path / "m.onnx")
    x = np.random.default_rng(4).integers(0, 256, (1, C, H, H)).astype(np.uint8)
    found = []
    for device in ("host", "avx2"):
        result = compiled(path, "--device", device)
        assert (result.code, result.native, result.total) == (0, 6, 6), result.error
        found.append(load(path.with_suffix(".tilec")).run({"x": x}))
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    wanted = onnxruntime.InferenceSession(path, options).run(None, {"x": x})
    for outputs in found:
        for made, exact in zip(outputs.values(), wanted, strict=True):
            np.testing.assert_array_equal(made, exact)


@pytest.mark.feature("L21")
def test_products_of_bf16(tmp_path: Path) -> None:
    """Rounded once, at the end; 33 elements are 17 words."""
    rng = np.random.default_rng(5)
    w = rng.standard_normal((33, 40)).astype(ml_dtypes.bfloat16)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    path = written(tmp_path / "m.onnx", nodes, {"w": w}, {"x": (T.BFLOAT16, [3, 33]), "y": (T.BFLOAT16, [3, 40])})
    assert compiled(path).code == 0
    x = rng.standard_normal((3, 33)).astype(ml_dtypes.bfloat16)
    (made,) = load(path.with_suffix(".tilec")).run({"x": x}).values()
    exact = x.astype(np.float64) @ w.astype(np.float64)
    np.testing.assert_allclose(made.astype(np.float64), exact, rtol=2**-8, atol=1e-4)
