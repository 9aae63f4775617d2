"""Scatters against onnxruntime and NumPy: all reductions, duplicates, negative and known indices."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.importer.reference import check, compare, normal, run, save, single
from tilec.errors import ConfigError, UnsupportedError
from tilec.importer import import_model
from tilec.ir.expr import operands
from tilec.ir.text import tensor_text

REDUCTIONS = ("none", "add", "mul", "max", "min")
ELEMENTS = np.array([[0, -1, 1], [2, 2, 1]])
"""Two rows that hit the last of three columns, and one of them twice."""


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("known", [[], [1]])
@pytest.mark.parametrize("dtype", ["float32", "int64", "int32", "float64"])
def test_scatter_elements(tmp_path: Path, reduction: str, known: list[int], dtype: str) -> None:
    x, updates = (10 * normal(3, 3)).astype(dtype), (10 * normal(2, 3)).astype(dtype)
    for axis in (0, 1):
        check(tmp_path, "ScatterElements", x, ELEMENTS, updates, known=known, axis=axis, reduction=reduction)


@pytest.mark.parametrize("known", [[], [1]])
def test_the_last_of_several_updates_wins(tmp_path: Path, known: list[int]) -> None:
    indices = np.array([[1, 1, -2, 0, 1]])
    updates = np.arange(5, dtype=np.float32).reshape(1, 5)
    path, feeds = single(
        tmp_path, "ScatterElements", np.full((1, 3), 9, np.float32), indices, updates, known=known, axis=1
    )
    (y,) = run(import_model(path), tmp_path, feeds)
    assert y.tolist() == [[3, 4, 9]]


@pytest.mark.parametrize("known", [[], [1]])
def test_scatter_of_fewer_rows_and_no_rows(tmp_path: Path, known: list[int]) -> None:
    x = normal(4, 5, 3)
    for reduction in REDUCTIONS:
        nothing = np.zeros((2, 0), np.int64)
        check(
            tmp_path, "ScatterElements", normal(2, 3), nothing, normal(2, 0), known=known, axis=1, reduction=reduction
        )
    check(tmp_path, "ScatterElements", x, np.array([[[3], [-1]]], np.int32), normal(1, 2, 1), axis=0, known=known)
    check(tmp_path, "ScatterElements", x, np.zeros((1, 0, 1), np.int64), normal(1, 0, 1), axis=1, known=known)
    check(tmp_path, "ScatterElements", normal(1), np.array([-1]), normal(1), reduction="add", opset=16, known=known)
    check(tmp_path, "Scatter", normal(3, 3), ELEMENTS, normal(2, 3), opset=10)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("known", [[], [1]])
@pytest.mark.parametrize(
    "indices", [[[1], [-1], [1]], [[0, 0], [-1, 3], [0, 0]], [[[2, 0], [2, 0]]], [1], [[2, 1, -1]]]
)
def test_scatter_nd(tmp_path: Path, reduction: str, known: list[int], indices: list[object]) -> None:
    at, x = np.array(indices, np.int64), normal(3, 4, 2)
    updates = normal(*at.shape[:-1], *x.shape[at.shape[-1] :])
    check(tmp_path, "ScatterND", x, at, updates, known=known, reduction=reduction)


def test_scatter_nd_of_nothing(tmp_path: Path) -> None:
    x = normal(3, 4)
    check(tmp_path, "ScatterND", x, np.zeros((0, 1), np.int64), normal(0, 4))
    check(tmp_path, "ScatterND", normal(3, 0), np.array([[1]]), normal(1, 0), opset=16)


@pytest.mark.parametrize("reduction", ["none", "add", "mul"])
def test_booleans_are_joined_by_logic(tmp_path: Path, reduction: str) -> None:
    x = np.array([True, False, True, False])
    indices, updates = np.array([0, 1, 1, 2, -1]), np.array([False, False, True, False, False])
    logic = {"add": np.logical_or, "mul": np.logical_and}
    expected = x.copy()
    if reduction == "none":
        expected[indices] = updates
    else:
        logic[reduction].at(expected, indices, updates)
    path, feeds = single(tmp_path, "ScatterElements", x, indices, updates, reduction=reduction, opset=18)
    assert run(import_model(path), tmp_path, feeds)[0].tolist() == expected.tolist()


def test_known_indices_need_no_search(tmp_path: Path) -> None:
    indices = np.random.default_rng(0).permutation(4000)[:2000].reshape(-1, 1)
    path, _ = single(
        tmp_path, "ScatterND", normal(4000, 2), indices, normal(2000, 2), known=[1], reduction="add", opset=18
    )
    (node,) = import_model(path).graph.nodes
    assert node.expr.reducer is None


def test_known_indices_outside_are_an_error(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "ScatterND", normal(4), np.array([[4]]), normal(1), known=[1])
    with pytest.raises(ConfigError, match="index 4 lies outside a dimension of extent 4"):
        import_model(path)


@pytest.mark.parametrize(("shape", "hits"), [((1 << 16,), 1 << 12), ((512, 512), 4096)])
def test_a_search_out_of_proportion_is_refused(tmp_path: Path, shape: tuple[int, ...], hits: int) -> None:
    indices = np.zeros((hits, len(shape)), np.int64)
    path, _ = single(tmp_path, "ScatterND", np.zeros(shape, np.float32), indices, np.zeros(hits, np.float32))
    with pytest.raises(UnsupportedError, match=r"would take \d+ operations"):
        import_model(path)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(
    "walks",
    [
        (range(3), range(4)),
        (range(1, 3), range(4)),
        (range(2, -1, -1), range(3, -1, -1)),
        (range(2), range(1, 4, 2)),
        (range(0, 3, 2), range(3, 0, -2)),
        (range(1), range(2, 3)),
        (range(-1, 0), range(-3, 0)),
    ],
)
def test_slices_are_index_algebra(tmp_path: Path, reduction: str, walks: tuple[range, range]) -> None:
    rows, columns = np.meshgrid(*walks, indexing="ij")
    x = normal(3, 4, 2)
    for at in (np.stack([rows, columns], -1), np.stack([rows.T, columns.T], -1)):
        updates = normal(*at.shape[:2], 2)
        graph = check(tmp_path, "ScatterND", x, at, updates, known=[1], reduction=reduction)
        (node,) = graph.nodes
        assert node.expr.reducer is None
        assert set(operands(node.expr)) <= {"x0", "x2"}


@pytest.mark.parametrize("reduction", ["none", "add"])
@pytest.mark.parametrize("walk", [[0, 1, 2], [2, 1, 0], [1, 3], [3], [3, 0], [-1, -3], [0, 1, 3], [1, 1], [2, 2, 2]])
def test_known_walks_along_an_axis(tmp_path: Path, reduction: str, walk: list[int]) -> None:
    at = np.tile(np.array(walk), (2, 1))
    for shape in (at.shape, (1, len(walk))):
        part = at[: shape[0]]
        check(tmp_path, "ScatterElements", normal(2, 4), part, normal(*shape), known=[1], axis=1, reduction=reduction)


def test_a_large_slice_needs_no_table(tmp_path: Path) -> None:
    at = np.arange(100, 3000).reshape(-1, 1)
    path, _ = single(tmp_path, "ScatterND", np.zeros((1 << 21, 1), np.float32), at, normal(2900, 1), known=[1])
    (node,) = import_model(path).graph.nodes
    assert tensor_text(node.expr) == "y0[i, j] = where(i - 100 >= 0 and i - 100 < 2900, x2[i - 100, j], x0[i, j])"


@pytest.mark.parametrize("start", ["zero", "one", "count", "minus"])
def test_slices_of_open_sizes_are_index_algebra(tmp_path: Path, start: str) -> None:
    """`x[:, start:start + n] = u` as PyTorch writes it: coordinates are ranges beside each other."""

    def made(kind: str, inputs: list[str], output: str, **attributes: object) -> onnx.NodeProto:
        return onnx.helper.make_node(kind, inputs, [output], **attributes)

    nodes = [
        made("Shape", ["u"], "shape"),
        *(made("Gather", ["shape", at], size) for at, size in (("zero", "rows"), ("one", "count"))),
        made("Add", [start, "count"], "end"),
        made("Range", ["zero", "rows", "one"], "i"),
        made("Range", [start, "end", "one"], "j"),
        made("Unsqueeze", ["i", "last"], "column"),
        made("Expand", ["column", "shape"], "all_rows"),
        made("Expand", ["j", "shape"], "all_columns"),
        *(made("Unsqueeze", [f"all_{each}", "last"], f"{each}_at") for each in ("rows", "columns")),
        made("Concat", ["rows_at", "columns_at"], "at", axis=-1),
        made("ScatterND", ["x", "at", "u"], "y"),
    ]
    weights = {"zero": np.int64(0), "one": np.int64(1), "minus": np.int64(-1), "last": np.array([-1])}
    inputs = {"x": ("float32", ["n", 9]), "u": ("float32", ["n", "m"])}
    path = save(tmp_path / "m.onnx", nodes, inputs, ["y"], weights)
    if start == "minus":  # some count from the end, and are searched
        with pytest.raises(UnsupportedError, match="would take"):
            import_model(path)
        return
    graph = compare(path, {"x": normal(3, 9), "u": normal(3, 4)}, {"n": 3, "m": 4})
    assert all(node.expr.reducer is None for node in graph.nodes)
    assert graph.symbol_ranges["m"].most == {"zero": 9, "one": 8, "count": 4}[start], "there is room for all"
