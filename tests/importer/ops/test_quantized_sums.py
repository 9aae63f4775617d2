"""Integer products and convolutions against exact integers, and onnxruntime where it takes the form."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.importer.reference import check, normal, run, single
from tilec.errors import ConfigError
from tilec.importer import import_model
from tilec.ir.text import tensor_text


def _numbers(ttype: str, *shape: int, seed: int = 0) -> NDArray[Any]:
    limits = np.iinfo(ttype)
    return np.random.default_rng([seed, *shape]).integers(limits.min, limits.max, shape, ttype, endpoint=True)


def _scales(*shape: int) -> NDArray[Any]:
    return (np.abs(normal(*shape)) + 0.5).astype(np.float32)


SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((3, 5), (5, 4)),
    ((1, 1), (1, 1)),
    ((2, 3, 5), (5, 4)),
    ((2, 1, 3, 5), (4, 5, 7)),
    ((5,), (5, 4)),
    ((3, 5), (5,)),
    ((0, 5), (5, 4)),
]


@pytest.mark.parametrize(("a", "b"), SHAPES)
@pytest.mark.parametrize(("left", "right"), [("uint8", "int8"), ("int8", "int8"), ("uint8", "uint8")])
def test_matmul_integer(tmp_path: Path, a: tuple[int, ...], b: tuple[int, ...], left: str, right: str) -> None:
    x, y = _numbers(left, *a), _numbers(right, *b)
    zeros = np.array(11, left), np.array(7, right)
    path, feeds = single(tmp_path, "MatMulInteger", x, y, *zeros)
    (found,) = run(import_model(path), tmp_path, feeds)
    np.testing.assert_array_equal(found, np.matmul(x.astype(np.int32) - 11, y.astype(np.int32) - 7))
    path, feeds = single(tmp_path, "MatMulInteger", x, y)
    (found,) = run(import_model(path), tmp_path, feeds)
    np.testing.assert_array_equal(found, np.matmul(x.astype(np.int32), y.astype(np.int32)))


def test_matmul_integer_with_zero_points_of_rows_and_columns(tmp_path: Path) -> None:
    a, b = _numbers("uint8", 2, 3, 5), _numbers("int8", 2, 5, 4)
    wide, other = a.astype(np.int32), b.astype(np.int32)
    for rows, columns in (((3,), (4,)), ((2, 3, 1), (2, 1, 4)), ((3, 1), (1, 4)), ((1,), (1, 1, 4))):
        x, y = _numbers("uint8", *rows, seed=1), _numbers("int8", *columns, seed=1)
        path, feeds = single(tmp_path, "MatMulInteger", a, b, x, y)
        (found,) = run(import_model(path), tmp_path, feeds)
        down = x[:, None] if rows == (3,) else x
        np.testing.assert_array_equal(found, (wide - down.astype(np.int32)) @ (other - y.astype(np.int32)))
    # With AVX2 onnxruntime adds pairs of products in 16 bits: halves do not saturate.
    check(tmp_path, "MatMulInteger", a[0] // 2, b[0] // 2, np.array(3, np.uint8), _numbers("int8", 4))


def test_zero_points_that_do_not_fit(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "MatMulInteger", *(_numbers("int8", 3, 3) for _ in range(2)), _numbers("int8", 2))
    with pytest.raises(ConfigError, match=r"zero point \[2\]: 2 and 3 differ"):
        import_model(path)
    path, _ = single(tmp_path, "MatMulInteger", *(_numbers("int8", 3, 3) for _ in range(2)), _numbers("int8", 1, 3))
    with pytest.raises(ConfigError, match=r"zero point \[1, 3\]: 3 and 1 differ"):
        import_model(path)


@pytest.mark.parametrize(("a", "b"), SHAPES[:4])
@pytest.mark.parametrize(("left", "right"), [("uint8", "int8"), ("int8", "int8"), ("uint8", "uint8")])
def test_qlinear_matmul(tmp_path: Path, a: tuple[int, ...], b: tuple[int, ...], left: str, right: str) -> None:
    x, y = _numbers(left, *a) // 2, _numbers(right, *b) // 2
    zeros = np.array(11, left), np.array(7, right), np.array(5, left)
    scales = [np.float32(v) for v in (0.31, 0.17, 29.0)]
    arrays = (x, scales[0], zeros[0], y, scales[1], zeros[1], scales[2], zeros[2])
    check(tmp_path, "QLinearMatMul", *arrays, rtol=0, atol=0)
    check(tmp_path, "QLinearMatMul", *arrays, known=[1, 2, 4, 5, 6, 7], rtol=0, atol=0)


def test_qlinear_matmul_with_a_scale_for_each_column(tmp_path: Path) -> None:
    a, b, columns = _numbers("uint8", 3, 5), _numbers("int8", 5, 4) // 2, _scales(4)
    zeros = np.array(11, np.uint8), np.zeros(4, np.int8), np.array(5, np.uint8)
    check(
        tmp_path, "QLinearMatMul", a, np.float32(0.3), zeros[0], b, columns, zeros[1], np.float32(90), zeros[2], atol=0
    )


def test_qlinear_matmul_with_scales_of_rows_and_in_half_precision(tmp_path: Path) -> None:
    a, b = _numbers("int8", 2, 3, 5), _numbers("int8", 2, 5, 4)
    rows, columns = _scales(2, 3, 1).astype(np.float16), _scales(2, 1, 4).astype(np.float16)
    zero, out = np.zeros((), np.int8), np.float16(77)
    path, feeds = single(tmp_path, "QLinearMatMul", a, rows, zero, b, columns, zero, out, zero, opset=21)
    (found,) = run(import_model(path), tmp_path, feeds)
    real = (a * rows.astype(np.float64)) @ (b * columns.astype(np.float64)) / 77
    np.testing.assert_allclose(found, np.clip(real, -128, 127), atol=0.51)


def test_zero_points_of_zero_cost_nothing(tmp_path: Path) -> None:
    zeros = np.array(3, np.uint8), np.zeros(4, np.int8)
    path, _ = single(tmp_path, "MatMulInteger", _numbers("uint8", 3, 5), _numbers("int8", 5, 4), *zeros, known=[2, 3])
    (node,) = import_model(path).graph.nodes
    assert tensor_text(node.expr) == "y0[m, n] = sum(k, (i32(x0[m, k]) - 3) * i32(x1[k, n]))"


CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 3, 7, 9), (4, 3, 3, 3), {"pads": [1, 0, 1, 2], "strides": [2, 1]}),
    ((2, 4, 6, 6), (6, 2, 3, 3), {"group": 2, "dilations": [2, 1], "pads": [2, 0, 1, 1]}),
    ((1, 4, 5, 5), (4, 1, 3, 3), {"group": 4, "pads": [1, 1, 1, 1]}),
    ((1, 8, 5, 5), (3, 8, 1, 1), {}),
    ((1, 2, 9), (3, 2, 3), {"auto_pad": "SAME_UPPER"}),
    ((1, 1, 3, 4, 5), (2, 1, 2, 2, 2), {}),
    ((0, 3, 4, 4), (2, 3, 3, 3), {}),
]


@pytest.mark.parametrize(("x", "w", "options"), CONVOLUTIONS)
@pytest.mark.parametrize("signed", [False, True])
def test_conv_integer(
    tmp_path: Path, x: tuple[int, ...], w: tuple[int, ...], options: dict[str, Any], signed: bool
) -> None:
    values, weights = _numbers("uint8", *x), _numbers("int8" if signed else "uint8", *w)
    zeros = np.array(130, np.uint8), np.array(9, weights.dtype)
    for zero in ((), zeros[:1], zeros):
        path, feeds = single(tmp_path, "ConvInteger", values, weights, *zero, **options)
        (found,) = run(import_model(path), tmp_path, feeds)
        shifts = [int(z) for z in zero] + [0, 0]
        wide = values.astype(np.float32) - shifts[0], weights.astype(np.float32) - shifts[1]
        path, feeds = single(tmp_path, "Conv", *wide, **options)
        (exact,) = run(import_model(path), tmp_path, feeds)
        np.testing.assert_array_equal(found, exact)
    if not signed:
        check(tmp_path, "ConvInteger", values, weights, *zeros, **options)


@pytest.mark.parametrize(("x", "w", "options"), CONVOLUTIONS)
@pytest.mark.parametrize("left", ["uint8", "int8"])
def test_qlinear_conv(
    tmp_path: Path, x: tuple[int, ...], w: tuple[int, ...], options: dict[str, Any], left: str
) -> None:
    values, weights = _numbers(left, *x), _numbers("int8", *w) // 2
    zeros = np.array(100, left), np.array(0, np.int8), np.array(5, left)
    scales = np.float32(0.02), np.float32(0.03), np.float32(0.7)
    bias = _numbers("int16", w[0]).astype(np.int32)
    arrays = (values, scales[0], zeros[0], weights, scales[1], zeros[1], scales[2], zeros[2])
    check(tmp_path, "QLinearConv", *arrays, known=range(1, 8), rtol=0, atol=0, **options)
    check(tmp_path, "QLinearConv", *arrays, bias, known=range(1, 9), rtol=0, atol=0, **options)
    channels = (*arrays[:4], 0.03 * _scales(w[0]), np.zeros(w[0], np.int8), *arrays[6:], bias)
    check(tmp_path, "QLinearConv", *channels, known=range(1, 9), rtol=0, atol=0, **options)


def test_scales_that_are_not_one_for_each_channel(tmp_path: Path) -> None:
    scale, zero = np.float32(1), np.array(0, np.uint8)
    arrays = (_numbers("uint8", 1, 3, 5, 5), scale, zero, _numbers("uint8", 4, 3, 1, 1))
    path, _ = single(tmp_path, "QLinearConv", *arrays, _scales(3), zero, scale, zero)
    with pytest.raises(ConfigError, match="channels and their scales, zero points or bias: 3 and 4 differ"):
        import_model(path)
