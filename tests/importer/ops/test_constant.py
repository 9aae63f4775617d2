"""Constants and shape arithmetic."""

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.importer.reference import check, compare, normal, save, single
from tilec.errors import ConfigError, UnsupportedError
from tilec.importer import import_model
from tilec.ir.graph import Inline
from tilec.ir.text import tensor_text, text_of


@pytest.mark.parametrize(
    "attribute",
    [
        {"value": numpy_helper.from_array(normal(3, 2))},
        {"value": numpy_helper.from_array(normal(20, 10))},
        {"value_float": 0.1},
        {"value_floats": [0.1, 0.2]},
        {"value_int": 3},
        {"value_ints": [3, 4]},
    ],
)
def test_constant(tmp_path: Path, attribute: dict[str, object]) -> None:
    path = save(tmp_path / "m.onnx", [helper.make_node("Constant", [], ["y"], **attribute)], {}, ["y"])
    compare(path, {})


def test_strings_are_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "m.onnx", [helper.make_node("Constant", [], ["y"], value_string="a")], {}, ["y"])
    with pytest.raises(UnsupportedError, match="a constant given as value_string"):
        import_model(path)


@pytest.mark.parametrize("shape", [[2, 3], [0, 4], [], [300, 300]])
def test_constant_of_shape(tmp_path: Path, shape: list[int]) -> None:
    value = helper.make_tensor("v", TensorProto.FLOAT, [1], [0.3])
    check(tmp_path, "ConstantOfShape", np.array(shape, np.int64), known=[0], value=value)
    check(tmp_path, "ConstantOfShape", np.array(shape, np.int64), known=[0])


@pytest.mark.feature("B04")
def test_shape_of_symbols_is_an_expression(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Shape", ["x"], ["last"], start=-1),
        helper.make_node("Gather", ["s", "zero"], ["batch"], axis=0),
        helper.make_node("Mul", ["batch", "two"], ["twice"]),
        helper.make_node("Unsqueeze", ["twice", "zeros"], ["rows"]),
        helper.make_node("Concat", ["rows", "last", "s"], ["y"], axis=0),
        helper.make_node("Size", ["x"], ["n"]),
    ]
    weights = {"zero": np.int64(0), "two": np.int64(2), "zeros": np.array([0], np.int64)}
    path = save(tmp_path / "m.onnx", nodes, {"x": ("float32", ["batch", 3, "seq"])}, ["y", "n"], weights)
    graph = compare(path, {"x": normal(5, 3, 2)}, {"batch": 5, "seq": 2})
    assert graph.symbols == ("batch", "seq")
    y, n = graph.nodes
    assert text_of(n.expr.body) == "batch * seq * 3"
    assert text_of(y.expr.body).startswith("where(i == 0, batch * 2, where(i == 1, seq, ")
    assert not graph.constants


def test_known_extents_are_constants(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "Shape", normal(2, 3))
    graph = import_model(path).graph
    (constant,) = graph.constants.values()
    assert constant == Inline((2, 3))


@pytest.mark.parametrize(("start", "limit", "delta"), [(0, 5, 1), (3, -4, -2), (2, 2, 1), (1, 10, 4), (5, 1, 1)])
def test_range(tmp_path: Path, start: int, limit: int, delta: int) -> None:
    for dtype in ("int64", "int32", "float32"):
        check(tmp_path, "Range", *(np.array(v, dtype) for v in (start, limit, delta)), known=[0, 1, 2])


def test_range_of_symbols(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Size", ["x"], ["n"]),
        helper.make_node("Range", ["one", "n", "two"], ["r"]),
        helper.make_node("Cast", ["r"], ["y"], to=TensorProto.FLOAT),
    ]
    weights = {"one": np.int64(1), "two": np.int64(2)}
    path = save(tmp_path / "m.onnx", nodes, {"x": ("float32", ["n"])}, ["y"], weights)
    graph = compare(path, {"x": normal(6)}, {"n": 6})
    (node,) = graph.nodes
    assert tensor_text(node.expr) == "y[i] = f32(i * 2 + 1)"
    compare(path, {"x": normal(7)}, {"n": 7})


@pytest.mark.parametrize("k", [0, 1, -2])
def test_eye_like(tmp_path: Path, k: int) -> None:
    check(tmp_path, "EyeLike", normal(3, 4), k=k)
    check(tmp_path, "EyeLike", normal(3, 4), k=k, dtype=TensorProto.INT64)


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_hot(tmp_path: Path, axis: int) -> None:
    indices = np.array([[0, 3], [-1, 2]], np.int64)
    values = np.array([0.5, 2.0], np.float32)
    check(tmp_path, "OneHot", indices, np.int64(4), values, known=[1, 2], axis=axis)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_one_hot_of_other_types_and_places_outside(tmp_path: Path, dtype: str) -> None:
    indices = np.array([1, -1, 3, -4, 0]).astype(dtype)
    values = np.array([0, 1], np.float32)
    check(tmp_path, "OneHot", indices, np.array([3.0], np.float32), values, known=[1])
    check(tmp_path, "OneHot", indices[:0], np.float32(2), values, known=[1])


@pytest.mark.parametrize("bounds", [(0, 1, 0.1), (0, 1, 0.3), (0.1, 0.8, 0.1), (10, 1, -0.7), (0, -1, 1)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ranges_of_floats_end_where_the_reference_ends(tmp_path: Path, bounds: tuple[float, ...], dtype: str) -> None:
    check(tmp_path, "Range", *(np.array(v, dtype) for v in bounds), known=[0, 1, 2])


@pytest.mark.parametrize("bounds", [(0, 1, 0), (0, np.inf, 1), (np.nan, 1, 1)])
def test_a_range_without_an_end_is_an_error(tmp_path: Path, bounds: tuple[float, ...]) -> None:
    path, _ = single(tmp_path, "Range", *(np.float32(v) for v in bounds), known=[0, 1, 2])
    with pytest.raises(ConfigError, match=r"from .* by .*"):
        import_model(path)


def test_dropout_changes_nothing(tmp_path: Path) -> None:
    check(tmp_path, "Dropout", normal(3), outputs=2)
    check(tmp_path, "Dropout", normal(3), np.float32(0.5), outputs=2, known=[1])
    path, _ = single(tmp_path, "Dropout", normal(3), np.float32(0.5), np.bool_(True), known=[1, 2])
    with pytest.raises(UnsupportedError, match="dropout in training mode"):
        import_model(path)
