"""Pad against onnxruntime in all modes, with negative padding and symbols."""

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from tests.importer.reference import check, compare, normal, run, save, single
from tilec.errors import ConfigError, UsageError
from tilec.importer import import_model
from tilec.ir.bind import bind
from tilec.ir.sizes import SymbolRange
from tilec.ir.text import tensor_text


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize("pads", [[0, 2, 0, 1], [1, 0, 2, 3], [0, 0, 0, 0], [2, 3, 2, 3]])
def test_pad(tmp_path: Path, mode: str, pads: list[int]) -> None:
    check(tmp_path, "Pad", normal(3, 4), np.array(pads, np.int64), known=[1], mode=mode)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize("pads", [[-1, 2, 0, -3], [-1, -1, -1, -2], [1, 3, -2, -1], [-1, 0, 1, 0]])
def test_negative_padding_crops_first(tmp_path: Path, mode: str, pads: list[int]) -> None:
    check(tmp_path, "Pad", normal(5, 6), np.array(pads, np.int64), known=[1], mode=mode)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_padding_by_more_than_the_tensor(tmp_path: Path, size: int) -> None:
    """The reference refuses to reflect more than once; NumPy goes on."""
    x, pads = normal(size), np.array([9, 10], np.int64)
    for mode in ("reflect", "wrap"):
        path, feeds = single(tmp_path, "Pad", x, pads, known=[1], mode=mode)
        np.testing.assert_array_equal(run(import_model(path), tmp_path, feeds)[0], np.pad(x, (9, 10), mode))  # type: ignore[call-overload]


@pytest.mark.parametrize("dtype", ["float64", "float16", "int8", "uint8", "int32", "uint32", "int64", "uint64", "bool"])
def test_types(tmp_path: Path, dtype: str) -> None:
    x, pads = (np.arange(12).reshape(3, 4) % 5).astype(dtype), np.array([1, 2, 2, 1], np.int64)
    for mode in ("constant", "edge", "reflect", "wrap"):
        check(tmp_path, "Pad", x, pads, known=[1], mode=mode)
    check(tmp_path, "Pad", x, pads, np.ones((), dtype), known=[1, 2])
    check(tmp_path, "Pad", x, pads, np.ones((), dtype), known=[1])


def test_nothing_to_repeat(tmp_path: Path) -> None:
    pads = np.array([1, 1, 2, 0], np.int64)
    check(tmp_path, "Pad", np.zeros((0, 3), np.float32), pads, np.float32(3), known=[1, 2])
    path, _ = single(tmp_path, "Pad", np.zeros((0, 3), np.float32), pads, known=[1], mode="edge")
    with pytest.raises(ConfigError, match="nothing to repeat"):
        import_model(path)


@pytest.mark.feature("B07")
@pytest.mark.parametrize(("mode", "least"), [("reflect", 4), ("edge", 1), ("wrap", 1)])
def test_what_is_repeated_of_a_dimension_that_varies_is_there(tmp_path: Path, mode: str, least: int) -> None:
    """Reflected once, as the reference does it: the index is affine. Sizes that are bound may be smaller."""
    node = helper.make_node("Pad", ["x", "p"], ["y"], mode=mode)
    path = save(tmp_path / "m.onnx", [node], {"x": ("float32", ["n"])}, ["y"], {"p": np.array([2, 3], np.int64)})
    for n in (4, 9):
        graph = compare(path, {"x": normal(n)}, {"n": n})
    assert graph.symbol_ranges == {"n": SymbolRange(least, origin="node Pad_0 (Pad)")}
    assert ("%" in tensor_text(graph.nodes[0].expr)) == (mode == "wrap")
    with pytest.raises(UsageError, match=r"n=0 is none of \d\.\."):
        bind(graph, {"n": 0})


def test_padding_values_axes_and_attributes(tmp_path: Path) -> None:
    pads = np.array([1, 2], np.int64)
    check(tmp_path, "Pad", normal(3, 4), pads, np.float32(0.5), np.array([-1], np.int64), known=[1, 2, 3])
    check(tmp_path, "Pad", normal(3, 4), pads, np.float32(0.5), np.array([0], np.int64), known=[1, 3])
    check(tmp_path, "Pad", np.arange(6).reshape(2, 3), np.array([0, 1, 1, 0], np.int64), np.int64(7), known=[1, 2])
    check(tmp_path, "Pad", normal(3, 4), opset=10, pads=[0, 1, 2, 0], value=1.5)


def test_pad_is_a_guarded_access(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "Pad", normal(3, 4), np.array([0, 1, 0, 2], np.int64), known=[1])
    (node,) = import_model(path).graph.nodes
    assert tensor_text(node.expr) == "y0[i, j] = where(j - 1 >= 0 and j - 1 < 4, x0[i, j - 1], 0.0)"


def test_pad_by_a_computed_amount(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Mod", ["s", "four"], ["rest"]),
        helper.make_node("Concat", ["zero", "rest"], ["pads"], axis=0),
        helper.make_node("Pad", ["x", "pads"], ["y"]),
    ]
    weights = {"four": np.array([4], np.int64), "zero": np.array([0], np.int64)}
    path = save(tmp_path / "m.onnx", nodes, {"x": ("float32", ["n"])}, ["y"], weights)
    compare(path, {"x": normal(6)}, {"n": 6})
    compare(path, {"x": normal(8)}, {"n": 8})


def test_pad_that_does_not_fit(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "Pad", normal(3, 4), np.array([1, 1], np.int64), known=[1])
    with pytest.raises(ConfigError, match="2 paddings for 2 axes"):
        import_model(path)
    path, _ = single(tmp_path, "Pad", normal(3, 4), np.array([1, 1, 1, 1], np.int64), known=[1], mode="zero")
    with pytest.raises(ConfigError, match="mode is 'zero'"):
        import_model(path)
