"""Softmax and its kin: against onnxruntime, and against float64 where the values are awkward."""

from pathlib import Path

import numpy as np
import pytest

from tests.importer.reference import check, normal, onnxruntime, run, single
from tilec.importer import import_model
from tilec.ir.text import tensor_text


@pytest.mark.parametrize("kind", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.feature("A04")
def test_softmax(tmp_path: Path, kind: str, axis: int) -> None:
    check(tmp_path, kind, normal(3, 4, 5), axis=axis)
    check(tmp_path, kind, normal(3, 4, 5), axis=axis, opset=11)


def test_old_softmax_takes_the_rest_as_one_axis_without_flattening(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "Softmax", normal(2, 3, 4), opset=11)
    graph = import_model(path).graph
    assert [len(node.expr.shape) for node in graph.nodes] == [3] * 4
    assert tensor_text(graph.nodes[0].expr) == "y0_max[i, j, k] = max(r, s, x0[i, r, s])"


def test_hardmax(tmp_path: Path) -> None:
    check(tmp_path, "Hardmax", np.round(normal(3, 6)))
    check(tmp_path, "Hardmax", np.round(normal(3, 6)), axis=0)


@pytest.mark.parametrize("shape", [(2, 3, 4), (4,), (1, 1), (0, 3), (2, 1, 3, 2)])
@pytest.mark.parametrize("kind", ["Softmax", "LogSoftmax", "Hardmax"])
def test_axes_taken_as_one_before_opset_13(tmp_path: Path, kind: str, shape: tuple[int, ...]) -> None:
    x = np.round(normal(*shape))
    if len(shape) > 1:
        check(tmp_path, kind, x, opset=11)
    for axis in range(-len(shape), len(shape)):
        check(tmp_path, kind, x, opset=11, axis=axis)


def test_a_nan_is_no_maximum(tmp_path: Path) -> None:
    check(tmp_path, "Hardmax", np.array([[1, 3, np.nan, 2], [-np.inf] * 4], np.float32))


def test_rows_of_one_and_of_nothing(tmp_path: Path) -> None:
    check(tmp_path, "Softmax", normal(3, 1))
    check(tmp_path, "Softmax", normal(0, 4))


@pytest.mark.parametrize(("kind", "expected"), [("Softmax", 1 / 70000), ("LogSoftmax", -np.log(70000))])
def test_half_precision_is_summed_in_single(tmp_path: Path, kind: str, expected: float) -> None:
    path, feeds = single(tmp_path, kind, np.zeros((1, 70000), np.float16))
    (found,) = run(import_model(path), tmp_path, feeds)
    np.testing.assert_array_equal(found, np.full((1, 70000), expected, np.float16))


@pytest.mark.parametrize("kind", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("offset", [1e3, -1e3, 0.0])
def test_error_is_within_twice_the_references(tmp_path: Path, kind: str, offset: float) -> None:
    x = (offset + (0.1 if offset else 1.0) * normal(16, 128)).astype(np.float32)
    if not offset:
        x[:, ::7], x[:, ::5] = 88.0, -88.0
    path, feeds = single(tmp_path, kind, x)
    wide = x.astype(np.float64)
    wide = wide - wide.max(-1, keepdims=True)
    exact = np.exp(wide) / np.exp(wide).sum(-1, keepdims=True)
    exact = np.log(exact) if kind == "LogSoftmax" else exact
    (found,), (reference,) = run(import_model(path), tmp_path, feeds), onnxruntime(path, feeds)
    error, allowed = (np.abs(y - exact).max() for y in (found, reference))
    assert error <= 2 * allowed + 1e-7 * np.abs(exact).max()


@pytest.mark.parametrize("kind", ["Softmax", "LogSoftmax"])
def test_a_fully_masked_row_is_as_the_reference_has_it(tmp_path: Path, kind: str) -> None:
    x = normal(3, 4)
    x[1] = -np.inf
    x[2, :3] = -np.inf
    check(tmp_path, kind, x)
