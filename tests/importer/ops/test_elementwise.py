"""Elementwise operators against onnxruntime: types, broadcasting, awkward sizes, special values."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto

from tests.importer.reference import check, helper, normal, run, single
from tilec.errors import ConfigError
from tilec.importer import import_model
from tilec.importer.ops.elementwise import BINARY, UNARY
from tilec.ir.text import tensor_text
from tilec.ir.types import TTYPES, numpy_dtype

SPECIAL = np.array([0.0, -0.0, 1.0, -1.5, 2.5, np.inf, -np.inf, np.nan, 1e-30, 88.0], np.float32)
UNIT = np.linspace(-0.95, 0.95, 21, dtype=np.float32)
DOMAIN = {"Acosh": np.linspace(1.0, 5.0, 7, dtype=np.float32)}
LOGIC = ("And", "Or", "Xor")
BITWISE = ("BitwiseAnd", "BitwiseOr", "BitwiseXor")


@pytest.mark.parametrize("kind", sorted(set(UNARY) - {"Not", "BitwiseNot", "IsNaN"}))
@pytest.mark.feature("W01")
def test_unary(tmp_path: Path, kind: str) -> None:
    x = DOMAIN.get(kind, UNIT if kind[0] == "A" and kind != "Abs" else normal(3, 5))
    x = np.abs(x) if kind in ("Log", "Sqrt") else x
    check(tmp_path, kind, x)


@pytest.mark.parametrize("kind", ["Abs", "Ceil", "Exp", "Floor", "IsNaN", "Log", "Neg", "Reciprocal", "Sign", "Sqrt"])
def test_unary_of_special_values(tmp_path: Path, kind: str) -> None:
    check(tmp_path, kind, SPECIAL)


def test_not(tmp_path: Path) -> None:
    check(tmp_path, "Not", np.array([[True], [False]]))
    check(tmp_path, "BitwiseNot", np.array([0, 1, -7], np.int32))


@pytest.mark.parametrize("kind", sorted([*BINARY, "Sub"]))
@pytest.mark.parametrize("shapes", [((3, 4), (3, 4)), ((2, 1, 4), (3, 1)), ((1,), (0, 5)), ((), (2,))])
def test_binary_broadcasts(tmp_path: Path, kind: str, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    a, b = (np.asarray(normal(*s, seed=i)) for i, s in enumerate(shapes))
    if kind in LOGIC:
        a, b = np.asarray(a > 0), np.asarray(b > 0)
    elif kind in BITWISE:
        a, b = (10 * a).astype(np.int64), (10 * b).astype(np.int64)
    elif kind not in ("Add", "Sub", "Mul"):
        a, b = np.round(a), np.round(b)
    check(tmp_path, kind, a, b)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float64"])
def test_arithmetic_keeps_the_type(tmp_path: Path, dtype: str) -> None:
    a, b = np.array([7, -7, 5], dtype), np.array([2, 2, -3], dtype)
    for kind in ("Add", "Sub", "Mul", "Div"):
        check(tmp_path, kind, a, b)


def test_integers_divide_towards_zero(tmp_path: Path) -> None:
    graph = check(tmp_path, "Div", np.array([7, -7], np.int64), np.array([2, 2], np.int64))
    assert tensor_text(graph.nodes[0].expr) == "y0[i] = truncdiv(x0[i], x1[i])"


def test_mod(tmp_path: Path) -> None:
    a, b = np.array([7, -7, 5, -5], np.int64), np.array([3, 3, -3, -3], np.int64)
    check(tmp_path, "Mod", a, b)
    check(tmp_path, "Mod", a, b, fmod=1)
    check(tmp_path, "Mod", a.astype(np.float32) + 0.5, b.astype(np.float32), fmod=1)
    path, _ = single(tmp_path, "Mod", a.astype(np.float32), b.astype(np.float32))
    with pytest.raises(ConfigError, match="fmod=0 needs integers"):
        import_model(path)


@pytest.mark.parametrize("known", [(), (1,), (0, 1)])
def test_signed_rests_of_64_bits_are_exact(tmp_path: Path, known: tuple[int, ...]) -> None:
    """Where onnxruntime, which divides in f64, is wrong."""
    a = np.array([2**63 - 1, -(2**63), 2**53 + 1, -(2**53) - 1, 6179935712689188204, -7], np.int64)
    b = np.array([10, 7, 2, -2, 3, 2**63 - 1], np.int64)
    wide = np.array([2**64 - 1, 11275694190230452164, 2**63 + 1, 5], np.uint64)
    for x, y in ((a, b), (wide, np.array([10, 11, 2**63, 2**64 - 1], np.uint64))):
        path, feeds = single(tmp_path, "Mod", x, y, known=known, fmod=1)
        (found,) = run(import_model(path), tmp_path, feeds)
        exact = [abs(m) % abs(n) * (-1 if m < 0 else 1) for m, n in zip(x.tolist(), y.tolist(), strict=True)]
        assert found.tolist() == exact


@pytest.mark.parametrize("exponent", [-1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 1.7])
def test_constant_powers(tmp_path: Path, exponent: float) -> None:
    x = np.abs(normal(2, 3)) + np.float32(0.1)
    graph = check(tmp_path, "Pow", x, np.float32(exponent), known=[1])
    assert ("pow(" in tensor_text(graph.nodes[0].expr)) == (exponent in (0.0, 1.7))
    special = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, -1.0], np.float32)
    check(tmp_path, "Pow", special, np.float32(exponent), known=[1])


def test_power_of_integers_and_by_tensors(tmp_path: Path) -> None:
    check(tmp_path, "Pow", np.array([2, -3], np.int64), np.array([3, 2], np.int64))
    check(tmp_path, "Pow", np.array([2, -3], np.int32), np.float32(2), known=[1])
    check(tmp_path, "Pow", np.array([2.0, 3.0], np.float32), np.array([3, 2], np.int64))


@pytest.mark.parametrize(
    ("base", "exponent"),
    [("i32", "i64"), ("i32", "u32"), ("i64", "i8"), ("i64", "u64"), ("i32", "u64")],
)
def test_powers_wrap_and_exponents_do_not(tmp_path: Path, base: str, exponent: str) -> None:
    """Exact integers are the judge: onnxruntime goes through doubles."""
    low, high = (np.iinfo(numpy_dtype(base)).min, np.iinfo(numpy_dtype(base)).max)
    least, most = (np.iinfo(numpy_dtype(exponent)).min, np.iinfo(numpy_dtype(exponent)).max)
    powers = [0, 1, 33, 64, 65, most, most // 2 + 1, most // 2 + 2, max(-3, least)]
    a, b = zip(*product([low, 0, 1, 3, 7, high], powers), strict=True)
    feeds = single(tmp_path, "Pow", np.array(a, numpy_dtype(base)), np.array(b, numpy_dtype(exponent)))
    (found,) = run(import_model(feeds[0]), tmp_path, feeds[1])
    bits = TTYPES[base].bits

    def exact(m: int, n: int) -> int:
        return pow(m, n, 1 << bits) if n >= 0 else {1: 1, -1: 1 - 2 * (n % 2)}.get(m, 0) % (1 << bits)

    assert [each % (1 << bits) for each in found.tolist()] == [exact(m, n) for m, n in zip(a, b, strict=True)]
    check(tmp_path, "Pow", normal(3), np.full((2, 1), 2.0, np.float32), known=[1])


@pytest.mark.parametrize("kind", ["Max", "Min", "Sum", "Mean"])
@pytest.mark.parametrize("count", [1, 2, 4, 150])
def test_any_number_of_operands(tmp_path: Path, kind: str, count: int) -> None:
    check(tmp_path, kind, *(normal(3, *([4] if i else [1]), seed=i) for i in range(count)))


def test_max_and_min_of_integers(tmp_path: Path) -> None:
    check(tmp_path, "Max", np.array([1, 5], np.int64), np.array([3], np.int64))
    check(tmp_path, "Min", np.array([1, 5], np.int32), np.array([3], np.int32))


def test_shift(tmp_path: Path) -> None:
    a, b = np.array([16, 4, 1], np.uint8), np.array([1, 2, 3], np.uint8)
    check(tmp_path, "BitShift", a, b, direction="LEFT")
    check(tmp_path, "BitShift", a, b, direction="RIGHT")


@pytest.mark.parametrize("attributes", [{}, {"detect_negative": 0}, {"detect_positive": 0}])
def test_isinf(tmp_path: Path, attributes: dict[str, int]) -> None:
    check(tmp_path, "IsInf", SPECIAL, **attributes)


def test_where_broadcasts_all_operands(tmp_path: Path) -> None:
    check(tmp_path, "Where", normal(3, 1) > 0, normal(4), np.float32(0.5))


def test_clip_with_inputs_attributes_and_crossing_bounds(tmp_path: Path) -> None:
    x = 4 * normal(5, 3)
    check(tmp_path, "Clip", x, np.float32(-1), np.float32(2), known=[1, 2])
    check(tmp_path, "Clip", x, np.float32(-1), np.float32(2))
    check(tmp_path, "Clip", x, None, np.float32(1), known=[2])
    check(tmp_path, "Clip", x, np.float32(2), np.float32(-2), known=[1, 2])
    for dtype in ("float32", "float64", "float16"):
        check(tmp_path, "Clip", np.array([np.inf, -np.inf, np.nan, 3]).astype(dtype))
        check(tmp_path, "Clip", np.array([np.inf, -np.inf, np.nan, 3]).astype(dtype), np.array(0, dtype), known=[1])
    check(tmp_path, "Clip", x, opset=9, min=-1.0, max=1.5)
    check(tmp_path, "Clip", np.arange(9, dtype=np.int64), np.int64(2), np.int64(5), known=[1, 2])


@pytest.mark.parametrize("source", ["float32", "int64", "int32", "bool", "uint8", "float64"])
@pytest.mark.parametrize("target", ["float32", "int64", "int32", "bool", "uint8", "float64", "float16"])
def test_cast(tmp_path: Path, source: str, target: str) -> None:
    x = np.array([0, 1, 3, 1.5, 2], source)
    to = {n: getattr(TensorProto, c) for n, c in {"float32": "FLOAT", "int64": "INT64", "int32": "INT32"}.items()}
    to |= {"bool": TensorProto.BOOL, "uint8": TensorProto.UINT8, "float64": TensorProto.DOUBLE}
    to["float16"] = TensorProto.FLOAT16
    check(tmp_path, "Cast", x, to=to[target])


def test_literals_stand_in_the_body(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "Mul", normal(4, 5), np.array([[0.125]], np.float32), known=[1])
    (node,) = import_model(path).graph.nodes
    assert tensor_text(node.expr) == "y0[i, j] = x0[i, j] * 0.125"


def test_shapes_that_do_not_fit_are_an_error_of_the_model(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "Add", normal(2, 3), normal(4))
    with pytest.raises(ConfigError, match=r"shapes \[2, 3\] and \[4\] cannot be broadcast: 3 meets 4") as error:
        import_model(path)
    assert error.value.exit_code == 2
    assert error.value.place == "Add.onnx: node 'Add_0' (Add)"


@pytest.mark.parametrize(
    ("source", "target"),
    [
        *(("float32", "int32"), ("int64", "float64"), ("float16", "uint16"), ("int16", "float16")),
        *(("uint32", "int32"), ("bool", "uint8"), ("uint8", "bool"), ("int8", "int8")),
    ],
)
def test_bit_cast(tmp_path: Path, source: str, target: str) -> None:
    x = np.array([0, 1, -1, 0.5, 3] if source.startswith("float") else [0, 1, 1, 1, 0]).astype(source)
    code = helper.np_dtype_to_tensor_dtype(np.dtype(target))
    for known in ([], [0]):
        path, feeds = single(tmp_path, "BitCast", x, known=known, opset=26, to=code)
        (y,) = run(import_model(path), tmp_path, feeds)
        np.testing.assert_array_equal(y, x.view(target))


def test_a_bit_cast_to_another_width_is_an_error(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "BitCast", normal(3), opset=26, to=helper.np_dtype_to_tensor_dtype(np.dtype("int64")))
    with pytest.raises(ConfigError, match="the bits of f32 as i64"):
        import_model(path)
