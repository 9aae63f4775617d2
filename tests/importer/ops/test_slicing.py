"""Slices and splits against onnxruntime: negative steps, bounds outside, symbols."""

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from tests.importer.reference import check, compare, normal, save, single
from tilec.errors import ConfigError
from tilec.importer import import_model
from tilec.ir.sizes import SymbolRange
from tilec.ir.text import tensor_text

FAR = np.iinfo(np.int64).max


@pytest.mark.parametrize(
    ("start", "end", "step"),
    [
        (0, 3, 1),
        (1, FAR, 2),
        (-3, -1, 1),
        (5, 1, 1),
        (-100, 100, 3),
        (-1, -FAR, -1),
        (4, 0, -2),
        (100, -100, -3),
        (2, 5, -1),
        (-2, 0, -1),
        (-20, -100, -1),
        (-1, FAR, -2),
        (3, 2**31 - 1, -1),
        (20, FAR - 1, -1),
    ],
)
def test_slice(tmp_path: Path, start: int, end: int, step: int) -> None:
    bounds = [np.array([v], np.int64) for v in (start, end, 1, step)]
    check(tmp_path, "Slice", normal(2, 7), *bounds, known=[1, 2, 3, 4])


def test_slice_by_attributes_and_of_several_axes(tmp_path: Path) -> None:
    check(tmp_path, "Slice", normal(4, 5, 6), opset=9, starts=[1, -4], ends=[3, 100], axes=[0, 2])
    check(tmp_path, "Slice", normal(4, 5), np.array([1, 2], np.int64), np.array([4, 3], np.int64), known=[1, 2])


def test_slice_is_an_affine_access(tmp_path: Path) -> None:
    bounds = [np.array([v], np.int64) for v in (-1, -FAR, 1, -2)]
    path, _ = single(tmp_path, "Slice", normal(2, 7), *bounds, known=[1, 2, 3, 4])
    (node,) = import_model(path).graph.nodes
    assert tensor_text(node.expr) == "y0[i, j] = x0[i, 6 - j * 2]" or "* -2 + 6" in tensor_text(node.expr)


def test_a_step_of_zero(tmp_path: Path) -> None:
    bounds = [np.array([v], np.int64) for v in (0, 3, 1, 0)]
    path, _ = single(tmp_path, "Slice", normal(2, 7), *bounds, known=[1, 2, 3, 4])
    with pytest.raises(ConfigError, match="a step of 0"):
        import_model(path)


@pytest.mark.feature("B06")
def test_bounds_that_are_computed_from_shapes(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"], start=1, end=2),
        helper.make_node("Div", ["s", "two"], ["half"]),
        helper.make_node("Slice", ["x", "zero", "half", "one"], ["a"]),
        helper.make_node("Slice", ["x", "half", "s", "one"], ["b"]),
        helper.make_node("Sub", ["s", "one"], ["last"]),
        helper.make_node("Slice", ["x", "last", "s", "one"], ["c"]),
    ]
    weights = {"zero": np.array([0], np.int64), "one": np.array([1], np.int64), "two": np.array([2], np.int64)}
    path = save(tmp_path / "m.onnx", nodes, {"x": ("float32", [3, "n"])}, ["a", "b", "c"], weights)
    compare(path, {"x": normal(3, 8)}, {"n": 8})
    compare(path, {"x": normal(3, 1)}, {"n": 1})
    graph = compare(path, {"x": normal(3, 7)}, {"n": 7})
    assert [tensor_text(node.expr) for node in graph.nodes] == [
        "a[i, j] = x[i, j]",
        "b[i, j] = x[i, n // 2 + j]",
        "c[i, j] = x[i, j + maximum(0, n - 1)]",
    ] or len(graph.nodes) == 3


@pytest.mark.feature("B07")
def test_a_bound_of_unknown_sign_counts_from_the_front(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Sub", ["s", "five"], ["start"]),
        helper.make_node("Slice", ["x", "start", "s"], ["y"]),
    ]
    path = save(tmp_path / "m.onnx", nodes, {"x": ("float32", ["n"])}, ["y"], {"five": np.array([5], np.int64)})
    graph = compare(path, {"x": normal(9)}, {"n": 9})
    assert graph.symbol_ranges == {"n": SymbolRange(5, origin="node Slice_2 (Slice)")}
    assert len(import_model(path, sizes={"n": 9}).graph.nodes) == 1


@pytest.mark.parametrize("axis", [0, -1])
def test_split(tmp_path: Path, axis: int) -> None:
    x = normal(6, 6)
    check(tmp_path, "Split", x, np.array([1, 3, 2], np.int64), known=[1], outputs=3, axis=axis)
    check(tmp_path, "Split", x, outputs=3, axis=axis, num_outputs=3)
    check(tmp_path, "Split", normal(7, 7), outputs=4, axis=axis, num_outputs=4)
    check(tmp_path, "Split", x, outputs=2, axis=axis, opset=11)
    check(tmp_path, "Split", x, outputs=2, axis=axis, opset=11, split=[6, 0])


def test_split_whose_parts_do_not_fit(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "Split", normal(6), np.array([1, 3], np.int64), known=[1], outputs=2)
    with pytest.raises(ConfigError, match=r"the parts of axis 0 of \[6\]: 4 and 6 differ"):
        import_model(path)


def test_split_of_a_symbol_into_equal_parts(tmp_path: Path) -> None:
    node = helper.make_node("Split", ["x"], ["a", "b"], axis=0, num_outputs=2)
    path = save(tmp_path / "m.onnx", [node], {"x": ("float32", ["n"])}, ["a", "b"])
    assert compare(path, {"x": normal(7)}, {"n": 7}).symbol_ranges == {}  # the last part may be smaller
    node = helper.make_node("Split", ["x"], ["a", "b"], axis=0)
    path = save(tmp_path / "m.onnx", [node], {"x": ("float32", ["n"])}, ["a", "b"], opset=17)
    graph = compare(path, {"x": normal(6)}, {"n": 6})
    assert graph.symbol_ranges == {"n": SymbolRange(divisor=2, origin="node Split_0 (Split)")}


@pytest.mark.parametrize("step", [-1, -2, 1, 3])
def test_slices_of_nothing(tmp_path: Path, step: int) -> None:
    for start, end in ((0, FAR), (-1, -FAR), (5, 0)):
        check(tmp_path, "Slice", normal(0, 2), *(np.array([v]) for v in (start, end, 0, step)), known=[1, 2, 3, 4])
