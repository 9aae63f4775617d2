"""Gathers against onnxruntime; known indices become affine again."""

from pathlib import Path

import numpy as np
import pytest

from tests.importer.reference import check, compare, helper, normal, save, single
from tilec.errors import ConfigError
from tilec.importer import import_model
from tilec.ir.text import tensor_text


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["int64", "int32"])
@pytest.mark.parametrize("known", [[], [1]])
@pytest.mark.feature("W05")
def test_gather(tmp_path: Path, axis: int, dtype: str, known: list[int]) -> None:
    x = normal(4, 5, 6)
    for indices in ([[0, 3], [-1, 2]], 2, [1], []):
        check(tmp_path, "Gather", x, np.array(indices, dtype), known=known, axis=axis)


@pytest.mark.parametrize(
    ("indices", "text"),
    [
        (2, "y0[i] = x0[2, i]"),
        (-1, "y0[i] = x0[3, i]"),
        ([1, 2, 3], "y0[i, j] = x0[i + 1, j]"),
        ([0, 2], "y0[i, j] = x0[i * 2, j]"),
    ],
)
def test_known_indices_are_affine(tmp_path: Path, indices: int | list[int], text: str) -> None:
    path, _ = single(tmp_path, "Gather", normal(4, 5), np.array(indices, np.int64), known=[1])
    graph = import_model(path).graph
    assert tensor_text(graph.nodes[0].expr) == text
    assert not graph.constants


def test_data_dependent_indices_stay_inside(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "Gather", normal(4, 5), np.array([1, 2], np.int64))
    (node,) = import_model(path).graph.nodes
    wrapped = "where(x1[i] < 0, x1[i] + 4, x1[i])"
    assert tensor_text(node.expr) == f"y0[i, j] = x0[maximum(minimum({wrapped}, 3), 0), j]"


def test_a_known_index_outside_is_an_error(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "Gather", normal(4, 5), np.array(4, np.int64), known=[1])
    with pytest.raises(ConfigError, match="index 4 lies outside a dimension of extent 4"):
        import_model(path)


@pytest.mark.feature("B08")
@pytest.mark.parametrize(("index", "least"), [(0, 1), (3, 4), (-2, 2), ([1, -5], 5)])
def test_known_indices_demand_as_many_elements(tmp_path: Path, index: int | list[int], least: int) -> None:
    nodes = [helper.make_node("Gather", ["x", "at"], ["y"], axis=1, name="token")]
    path = save(tmp_path / "m.onnx", nodes, {"x": ("float32", [2, "seq"])}, ["y"], {"at": np.array(index, np.int64)})
    known = import_model(path).graph.symbol_ranges["seq"]
    assert (known.low, known.origin) == (least, "node token (Gather)")
    compare(path, {"x": normal(2, 6)}, {"seq": 6})


@pytest.mark.feature("B06")
def test_positions_of_a_symbolic_sequence_are_affine(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"], start=0, end=1),
        helper.make_node("Slice", ["positions", "zero", "s", "one"], ["p"]),
        helper.make_node("Gather", ["table", "p"], ["rows"]),
        helper.make_node("Add", ["rows", "x"], ["y"]),
    ]
    weights = {
        "positions": np.arange(16).reshape(1, 16),
        "table": normal(16, 3),
        "zero": np.array([0], np.int64),
        "one": np.array([1], np.int64),
    }
    path = save(tmp_path / "m.onnx", nodes, {"x": ("float32", ["seq", 3])}, ["y"], weights)
    graph = compare(path, {"x": normal(5, 3)}, {"seq": 5})
    assert "table[minimum(15, j), k]" in tensor_text(graph.nodes[0].expr) or "table[j, k]" in tensor_text(
        graph.nodes[0].expr
    )


@pytest.mark.parametrize("axis", [0, 1])
def test_gather_elements(tmp_path: Path, axis: int) -> None:
    indices = np.array([[0, 1, -1], [2, 0, 1]], np.int64)
    check(tmp_path, "GatherElements", normal(3, 3), indices, axis=axis)
    check(tmp_path, "GatherElements", normal(3, 3), indices.astype(np.int32), axis=axis, known=[1])


@pytest.mark.parametrize(
    ("data", "indices", "shared"),
    [
        ((3, 4), [[0, 1], [2, -1]], 0),
        ((3, 4), [[0], [2]], 0),
        ((2, 3, 4), [[1], [0]], 1),
        ((2, 3, 4), [[[0, 1]], [[1, 2]]], 0),
    ],
)
def test_gather_nd(tmp_path: Path, data: tuple[int, ...], indices: list[object], shared: int) -> None:
    check(tmp_path, "GatherND", normal(*data), np.array(indices, np.int64), batch_dims=shared)


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [None, 0, 1, -2])
def test_trilu(tmp_path: Path, upper: int, k: int | None) -> None:
    diagonal = None if k is None else np.int64(k)
    check(tmp_path, "Trilu", normal(2, 4, 5), diagonal, known=[1], upper=upper)
    check(tmp_path, "Trilu", normal(2, 4, 5), diagonal, upper=upper)
    check(tmp_path, "Trilu", np.arange(12, dtype=np.int64).reshape(3, 4), diagonal, known=[1], upper=upper)
