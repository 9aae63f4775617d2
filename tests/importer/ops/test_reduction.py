"""Reductions against onnxruntime: axes by attribute and input, empty axes, zero-size tensors."""

from pathlib import Path

import numpy as np
import pytest

from tests.importer.reference import check, helper, normal, onnxruntime, run, save, single
from tilec.errors import ConfigError
from tilec.importer import import_model
from tilec.importer.ops.reduction import REDUCTIONS
from tilec.ir.sizes import SymbolRange
from tilec.ir.text import tensor_text

KINDS = sorted([*REDUCTIONS, "ReduceMean", "ReduceLogSumExp"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.feature("W01")
def test_reductions(tmp_path: Path, kind: str, keepdims: int) -> None:
    x = np.abs(normal(3, 4, 5)) if kind == "ReduceLogSum" else normal(3, 4, 5)
    for axes in ([1], [0, -1], [2, 1, 0]):
        check(tmp_path, kind, x, np.array(axes, np.int64), known=[1], keepdims=keepdims)
        check(tmp_path, kind, x, opset=11, axes=axes, keepdims=keepdims)
    check(tmp_path, kind, x, keepdims=keepdims)


@pytest.mark.parametrize("kind", KINDS)
def test_no_axes_and_noop(tmp_path: Path, kind: str) -> None:
    x = np.abs(normal(3, 4))
    check(tmp_path, kind, x, None, noop_with_empty_axes=0)
    graph = check(tmp_path, kind, x, np.array([], np.int64), known=[1], noop_with_empty_axes=1)
    assert all(node.expr.reducer is None for node in graph.nodes)


def test_reductions_of_integers(tmp_path: Path) -> None:
    x = np.arange(-6, 6, dtype=np.int64).reshape(3, 4)
    for kind in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd"):
        check(tmp_path, kind, x, np.array([1], np.int64), known=[1])
    check(tmp_path, "ReduceMean", x.astype(np.int32), np.array([1], np.int64), known=[1])


def test_reductions_of_nothing_and_of_one(tmp_path: Path) -> None:
    check(tmp_path, "ReduceSum", normal(3, 0), np.array([1], np.int64), known=[1])
    check(tmp_path, "ReduceSum", normal(0, 3), np.array([1], np.int64), known=[1])
    check(tmp_path, "ReduceMax", normal(3, 1), np.array([1], np.int64), known=[1])


def test_mean_is_a_plain_sum_and_one_division(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "ReduceMean", normal(3, 8), np.array([1], np.int64), known=[1])
    first, second = import_model(path).graph.nodes
    assert tensor_text(first.expr) == "y0_sum[i, j] = sum(r, x0[i, r])"
    assert tensor_text(second.expr) == "y0[i, j] = y0_sum[i, j] / 8.0"


def test_an_axis_that_does_not_exist(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "ReduceSum", normal(3, 8), np.array([2], np.int64), known=[1])
    with pytest.raises(ConfigError, match="axis 2 of a tensor of rank 2"):
        import_model(path)


@pytest.mark.parametrize("spread", [0.1, 88.0, 1e4])
@pytest.mark.feature("A04")
def test_log_sum_exp_of_large_values(tmp_path: Path, spread: float) -> None:
    check(tmp_path, "ReduceLogSumExp", (spread * normal(4, 6)).astype(np.float32), np.array([1], np.int64), known=[1])


@pytest.mark.parametrize("kind", ["ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean"])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_half_precision_is_summed_in_single(tmp_path: Path, kind: str, keepdims: int) -> None:
    """The sums lie beyond half precision, what becomes of them does not."""
    x = np.ones((2, 70000), np.float16)
    path, feeds = single(tmp_path, kind, x, np.array([1]), known=[1], keepdims=keepdims)
    (half,) = run(import_model(path), tmp_path, feeds)
    path, feeds = single(tmp_path, kind, x.astype(np.float32), np.array([1]), known=[1], keepdims=keepdims)
    (full,) = onnxruntime(path, feeds)
    np.testing.assert_array_equal(half, full.astype(np.float16))


@pytest.mark.parametrize("kind", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("attributes", [{}, {"axis": -1, "keepdims": 0}, {"axis": 1, "select_last_index": 1}])
def test_arg(tmp_path: Path, kind: str, attributes: dict[str, int]) -> None:
    check(tmp_path, kind, np.round(normal(3, 7)), **attributes)
    check(tmp_path, kind, np.array([[2, 1, 2], [0, 0, 3]], np.int32), **attributes)


@pytest.mark.parametrize("kind", ["ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean"])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_integers_are_truncated(tmp_path: Path, kind: str, keepdims: int) -> None:
    x = np.array([[3, 4, 1], [-3, 7, -2], [1, 1, 1]], np.int32)
    check(tmp_path, kind, x, np.array([1]), known=[1], keepdims=keepdims)
    check(tmp_path, kind, np.abs(x), np.zeros(0, np.int64), known=[1], noop_with_empty_axes=1)


@pytest.mark.parametrize("kind", [*REDUCTIONS, "ReduceMean", "ReduceLogSumExp"])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_reductions_of_nothing(tmp_path: Path, kind: str, dtype: str) -> None:
    for axis in (0, 1):
        check(tmp_path, kind, np.zeros((2, 0, 3), dtype), np.array([axis]), known=[1])
    check(tmp_path, kind, np.zeros((0, 2), dtype))


@pytest.mark.feature("B07")
def test_the_place_of_an_extremum_demands_an_element(tmp_path: Path) -> None:
    node = helper.make_node("ArgMax", ["x"], ["y"], axis=0)
    graph = import_model(save(tmp_path / "m.onnx", [node], {"x": ("float32", ["n", 3])}, ["y"])).graph
    assert graph.symbol_ranges == {"n": SymbolRange(1, origin="node ArgMax_0 (ArgMax)")}
