"""Operators of classical machine learning that are plain indexing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import helper

from tests.importer.reference import normal, onnxruntime, run, save
from tilec.errors import ConfigError
from tilec.importer import import_model


def chosen(folder: Path, shape: list[int | str], indices: NDArray[np.int64] | None) -> Path:
    node = helper.make_node("ArrayFeatureExtractor", ["x", "i"], ["y"], domain="ai.onnx.ml")
    inputs: dict[str, tuple[str, list[int | str | None]]] = {"x": ("float32", [*shape])}
    if indices is None:
        inputs["i"] = ("int64", ["k"])
    return save(folder / "m.onnx", [node], inputs, ["y"], {} if indices is None else {"i": indices}, 18)


@pytest.mark.feature("B04")
@pytest.mark.parametrize(
    ("shape", "indices"),
    [
        ((4, 5), np.array(3)),
        ((4, 5), np.array([4, 0, 0])),
        ((2, 3, 5), np.array([[1, 2], [0, 4]])),
        ((5,), np.array([2, 1])),
        ((1, 1), np.array([0])),
    ],
    ids=str,
)
@pytest.mark.parametrize("opened", [False, True], ids=["fixed", "open"])
def test_features_of_rows(tmp_path: Path, shape: tuple[int, ...], indices: NDArray[np.int64], opened: bool) -> None:
    path = chosen(tmp_path, ["n", *shape[1:]] if opened else [*shape], indices)
    imported = import_model(path)
    assert imported.graph.calls == ()
    for rows in (shape[0], shape[0] + 3) if opened else shape[:1]:
        feeds = {"x": normal(rows, *shape[1:])}
        (found,) = run(imported, tmp_path, feeds, {"n": rows} if opened else {})
        np.testing.assert_array_equal(found, onnxruntime(path, feeds)[0])


def test_features_that_are_asked_for(tmp_path: Path) -> None:
    path = chosen(tmp_path, ["n", 5], None)
    feeds = {"x": normal(3, 5), "i": np.array([4, 1])}
    (found,) = run(import_model(path), tmp_path, feeds, {"n": 3, "k": 2})
    np.testing.assert_array_equal(found, onnxruntime(path, feeds)[0])


def test_a_feature_that_no_row_has(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="5"):
        import_model(chosen(tmp_path, ["n", 5], np.array([5])))
