"""TopK in its forms, by counting and by repeated maxima, with ties, infinities and NaN."""

from pathlib import Path

import numpy as np
import pytest

from tests.importer.reference import check, normal, run, single
from tilec.errors import ConfigError, UnsupportedError
from tilec.importer import import_model

LONG = 200
"""More elements than are ranked by counting when few are asked for."""


@pytest.mark.parametrize("largest", [1, 0])
@pytest.mark.parametrize(("shape", "axis", "k"), [((5,), 0, 5), ((3, 7, 2), 1, 3), ((4, 1), -1, 1), ((LONG, 2), 0, 4)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
def test_top_k(tmp_path: Path, largest: int, shape: tuple[int, ...], axis: int, k: int, dtype: str) -> None:
    x = (3 * normal(*shape)).round().astype(dtype)
    check(tmp_path, "TopK", x, np.array([k]), known=[1], outputs=2, axis=axis, largest=largest)


@pytest.mark.parametrize("n", [9, LONG])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_the_ends_of_the_integers(tmp_path: Path, n: int, dtype: type) -> None:
    limits = np.iinfo(dtype)
    x = np.resize(np.array([limits.min, limits.max, limits.min, 3, limits.max], dtype), n)
    for largest in (0, 1):
        check(tmp_path, "TopK", x, np.array([9]), known=[1], outputs=2, largest=largest)


@pytest.mark.parametrize("n", [8, LONG])
def test_of_equal_elements_the_first_comes_first(tmp_path: Path, n: int) -> None:
    x = np.resize(np.array([1.0, -0.0, 0.0, np.inf, np.inf, -np.inf, 1.0, -np.inf], np.float32), n)
    for largest in (0, 1):
        check(tmp_path, "TopK", x, np.array([8]), known=[1], outputs=2, largest=largest)
        check(tmp_path, "TopK", np.zeros(n, np.float32), np.array([6]), known=[1], outputs=2, largest=largest)


@pytest.mark.parametrize("n", [4, LONG])
@pytest.mark.parametrize(("largest", "first"), [(1, [1, 3]), (0, [2, 0])])
def test_nan_counts_as_the_largest(tmp_path: Path, n: int, largest: int, first: list[int]) -> None:
    x = np.full(n, 5, np.float32)
    x[:4] = [2, np.nan, 1, np.nan]
    path, feeds = single(tmp_path, "TopK", x, np.array([2]), known=[1], outputs=2, largest=largest)
    values, indices = run(import_model(path), tmp_path, feeds)
    assert indices.tolist() == first
    np.testing.assert_array_equal(values, x[first])


@pytest.mark.parametrize("shape", [(3, 0), (3, 4), (3, LONG)])
def test_none_of_them(tmp_path: Path, shape: tuple[int, ...]) -> None:
    check(tmp_path, "TopK", normal(*shape), np.array([0]), known=[1], outputs=2)


def test_older_forms(tmp_path: Path) -> None:
    check(tmp_path, "TopK", normal(3, 4), outputs=2, k=2, axis=0, opset=9)
    check(tmp_path, "TopK", normal(3, 4), np.array([2]), known=[1], outputs=2, opset=10)


def test_few_results_take_no_quadratic_work(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "TopK", np.zeros((1, 1 << 15), np.float32), np.array([5]), known=[1], outputs=2)
    assert import_model(path).graph.nodes


def test_sorting_a_long_row_is_refused(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "TopK", np.zeros((1, 1 << 15), np.float32), np.array([1 << 15]), known=[1], outputs=2)
    with pytest.raises(UnsupportedError, match="would take 1073741824 operations"):
        import_model(path)


def test_more_than_there_are_is_an_error(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "TopK", normal(4), np.array([5]), known=[1], outputs=2)
    with pytest.raises(ConfigError, match="k is 5 of an axis of 4 elements"):
        import_model(path)
