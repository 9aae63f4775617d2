"""Cumulative sums and products: every direction, any length, few steps, errors that do not grow with the length."""

from pathlib import Path

import numpy as np
import pytest

from tests.importer.reference import check, compare, helper, normal, run, save, single
from tilec.errors import UnsupportedError
from tilec.importer import import_model
from tilec.ir.expr import constant_value


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize(
    ("shape", "axis"), [((1,), 0), ((3, 5), 1), ((3, 0), -1), ((0, 3), 1), ((2, 65, 2), 1), ((131,), 0)]
)
def test_cum_sum(tmp_path: Path, exclusive: int, reverse: int, shape: tuple[int, ...], axis: int) -> None:
    options = {"exclusive": exclusive, "reverse": reverse}
    check(tmp_path, "CumSum", normal(*shape), np.int64(axis), known=[1], atol=1e-5, **options)
    integers = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    check(tmp_path, "CumSum", integers, np.array([axis]), known=[1], **options)


def cumulated(x: np.ndarray, exclusive: int, reverse: int) -> np.ndarray:
    """The cumulative product along the last axis."""
    if reverse:
        return cumulated(x[..., ::-1], exclusive, 0)[..., ::-1]
    if exclusive:
        x = np.concatenate([np.ones_like(x[..., :1]), x[..., :-1]], -1)
    return np.cumprod(x, -1, dtype=x.dtype)


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("length", [1, 2, 70])
def test_cum_prod(tmp_path: Path, exclusive: int, reverse: int, length: int) -> None:
    options = {"exclusive": exclusive, "reverse": reverse}
    for x in (1 + normal(2, length) / 9, np.resize(np.array([1, -2, 1, 3]), (2, length))):
        path, feeds = single(tmp_path, "CumProd", x, np.int64(-1), known=[1], opset=26, **options)
        (y,) = run(import_model(path), tmp_path, feeds)
        np.testing.assert_allclose(y, cumulated(x, exclusive, reverse), rtol=1e-5)


def test_steps_grow_slower_than_the_square_and_so_do_errors(tmp_path: Path) -> None:
    x = np.full(10007, 0.1, np.float32)
    path, feeds = single(tmp_path, "CumSum", x, np.int64(0), known=[1])
    imported = import_model(path)
    extents = [[constant_value(e) or 0 for e in node.expr.extents] for node in imported.graph.nodes]
    assert sum(int(np.prod(e)) for e in extents) < 100 * x.size
    (y,) = run(imported, tmp_path, feeds)
    exact = x.astype(np.float64).cumsum()
    assert np.abs(y / exact - 1).max() < 1e-6


def test_halves_are_rounded_once(tmp_path: Path) -> None:
    x = np.full(3000, 1, np.float16)
    path, feeds = single(tmp_path, "CumSum", x, np.int64(0), known=[1])
    (y,) = run(import_model(path), tmp_path, feeds)
    np.testing.assert_array_equal(y, np.arange(1, 3001).astype(np.float16))


@pytest.mark.feature("B06")
def test_an_axis_of_unknown_length(tmp_path: Path) -> None:
    nodes = [helper.make_node("CumSum", ["x", "axis"], ["y"])]
    path = save(tmp_path / "m.onnx", nodes, {"x": ("int64", ["n"])}, ["y"], {"axis": np.int64(0)})
    for n in (1, 17, 300):
        compare(path, {"x": np.arange(n)}, {"n": n})


def test_an_axis_computed_by_the_model_is_refused(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "CumSum", normal(3), np.int64(0))
    with pytest.raises(UnsupportedError, match="input 1 must be known at compile time"):
        import_model(path)
