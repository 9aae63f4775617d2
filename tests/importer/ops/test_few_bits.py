"""Elements of few bits beside onnxruntime: casts, quantisation and dequantisation, every code of every type."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto as T
from onnx import helper, numpy_helper

from tests.importer.reference import normal, onnxruntime, run
from tilec.errors import ConfigError, UnsupportedError
from tilec.importer import import_model
from tilec.importer.element_types import ELEMENT_TYPES
from tilec.ir.types import TTYPES, numpy_dtype

FLOATS = [T.FLOAT8E4M3FN, T.FLOAT8E4M3FNUZ, T.FLOAT8E5M2, T.FLOAT8E5M2FNUZ]
INTEGERS = [T.INT4, T.UINT4]
X = np.array([0, -0.0, 1, -1, 0.3, 3.5, -2.5, 447, 449, 464, 470, -1e6, 1e9, 2e-3, -1e-3, 1e-9], np.float32)
SPECIAL = np.concatenate([X, np.array([np.nan, np.inf, -np.inf], np.float32)])


def written(folder: Path, nodes: list[Any], arrays: dict[str, NDArray[Any]], x: NDArray[Any], opset: int = 23) -> Path:
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    inputs = [helper.make_tensor_value_info("x", kind, list(x.shape))]
    tensors = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, "g", inputs, [onnx.ValueInfoProto(name="y")], tensors)
    path = folder / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=11), path)
    return path


def same(path: Path, x: NDArray[Any]) -> None:
    """Demand bit-equal results, NaN for NaN."""
    (found,) = run(import_model(path), path.parent, {"x": x})
    (expected,) = onnxruntime(path, {"x": x})
    np.testing.assert_array_equal(found, expected)
    finite = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[finite]), np.signbit(expected[finite]))


def codes(code: int) -> NDArray[Any]:
    return np.arange(1 << TTYPES[ELEMENT_TYPES[code]].bits, dtype=np.uint8).view(numpy_dtype(ELEMENT_TYPES[code]))


@pytest.mark.feature("L12", "L18")
@pytest.mark.parametrize("code", [*FLOATS, *INTEGERS])
def test_every_code_becomes_the_number_of_onnxruntime(tmp_path: Path, code: int) -> None:
    nodes = [helper.make_node("Cast", ["q"], ["f"], to=T.FLOAT), helper.make_node("Add", ["f", "x"], ["y"])]
    same(written(tmp_path, nodes, {"q": codes(code)}, np.zeros(1, np.float32)), np.zeros(1, np.float32))


@pytest.mark.feature("L12")
@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("code", FLOATS)
def test_casts_to_floats_of_eight_bits_saturate_or_not(tmp_path: Path, code: int, saturate: int) -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["q"], to=code, saturate=saturate),
        helper.make_node("Cast", ["q"], ["y"], to=T.FLOAT),
    ]
    same(written(tmp_path, nodes, {}, SPECIAL), SPECIAL)


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("code", FLOATS)
def test_quantisation_to_floats(tmp_path: Path, code: int, saturate: int) -> None:
    zero = np.zeros((), numpy_dtype(ELEMENT_TYPES[code]))
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], saturate=saturate),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    same(written(tmp_path, nodes, {"s": np.float32(0.37), "z": zero}, X), X)


@pytest.mark.parametrize("code", INTEGERS)
def test_quantisation_to_four_bits_saturates(tmp_path: Path, code: int) -> None:
    x = np.concatenate([np.linspace(-20, 20, 81), SPECIAL[:-3]]).astype(np.float32)
    zero = np.array(3).astype(numpy_dtype(ELEMENT_TYPES[code]))
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    same(written(tmp_path, nodes, {"s": np.float32(0.5), "z": zero}, x), x)


@pytest.mark.feature("L19", "L27")
@pytest.mark.parametrize("shape", [(6, 5), (7, 4), (1, 1), (8, 33), (3, 0)])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("code", [*INTEGERS, T.INT8])
def test_scales_and_zero_points_of_blocks(tmp_path: Path, code: int, axis: int, shape: tuple[int, int]) -> None:
    dtype = numpy_dtype(ELEMENT_TYPES[code])
    blocks = [-(-n // 3) if d == axis else n for d, n in enumerate(shape)]
    draw = np.random.default_rng(shape)
    arrays = {
        "q": draw.integers(0, 256, shape).astype(dtype),
        "s": (np.abs(normal(*blocks)) + 0.1).astype(np.float32),
        "z": draw.integers(0, 256, blocks).astype(dtype),
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["f"], axis=axis, block_size=3),
        helper.make_node("Add", ["f", "x"], ["y"]),
    ]
    same(written(tmp_path, nodes, arrays, np.zeros(1, np.float32)), np.zeros(1, np.float32))


@pytest.mark.parametrize("code", [T.INT2, T.UINT2])
def test_two_bits(tmp_path: Path, code: int) -> None:
    q = np.resize(codes(code), (5, 7))
    nodes = [helper.make_node("DequantizeLinear", ["q", "s"], ["f"]), helper.make_node("Add", ["f", "x"], ["y"])]
    x = np.zeros(1, np.float32)
    path = written(tmp_path, nodes, {"q": q, "s": np.float32(0.5)}, x, opset=25)
    np.testing.assert_array_equal(run(import_model(path), tmp_path, {"x": x})[0], q.astype(np.float32) / 2)


@pytest.mark.parametrize(
    ("mode", "exponents"),
    [("up", [0, 1, 1, 2, 2, -126, 127]), ("down", [0, 0, 0, 1, 2, -126, 126]), ("nearest", [0, 0, 1, 2, 2, -126, 126])],
)
def test_powers_of_two_are_rounded_as_asked(tmp_path: Path, mode: str, exponents: list[int]) -> None:
    x = np.array([1, 1.1, 1.5, 3, 4, 2.0**-126, 2.0**126 * 1.01], np.float32)
    nodes = [
        helper.make_node("Cast", ["x"], ["q"], to=T.FLOAT8E8M0, round_mode=mode),
        helper.make_node("Cast", ["q"], ["y"], to=T.FLOAT),
    ]
    (found,) = run(import_model(written(tmp_path, nodes, {}, x, opset=25)), tmp_path, {"x": x})
    np.testing.assert_array_equal(found, np.ldexp(np.float32(1), exponents))


def test_what_computes_with_codes_and_zero_points_of_floats_are_refused(tmp_path: Path) -> None:
    nodes = [helper.make_node("Pad", ["q", "p"], ["r"]), helper.make_node("Cast", ["r"], ["y"], to=T.FLOAT)]
    path = written(tmp_path, nodes, {"q": codes(T.INT4), "p": np.array([1, 0])}, X, opset=24)
    with pytest.raises(UnsupportedError, match="nothing is computed with i4"):
        import_model(path)
    zero = np.ones((), ml_dtypes.float8_e5m2)
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]), helper.make_node("Cast", ["q"], ["y"], to=1)]
    with pytest.raises(ConfigError, match="a zero point of type e5m2"):
        import_model(written(tmp_path, nodes, {"s": np.float32(1), "z": zero}, X))
