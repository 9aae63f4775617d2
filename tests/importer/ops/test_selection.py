"""Compress, NonZero and Unique where what decides the shape is known, and their refusal elsewhere."""

from pathlib import Path

import numpy as np
import pytest

from tests.importer.reference import check, compare, helper, normal, save, single
from tilec.errors import UnsupportedError
from tilec.importer import import_model


@pytest.mark.parametrize("condition", [[True, False, True], [False, True], [False, False, False], [True] * 9])
def test_compress(tmp_path: Path, condition: list[bool]) -> None:
    for options in ({}, {"axis": 0}, {"axis": -1}):
        check(tmp_path, "Compress", normal(3, 4), np.array(condition), known=[1], **options)


@pytest.mark.parametrize("x", [[[1, 0, 3], [0, 0, 2]], 3, 0, [True, False], [[-2, 0]]])
def test_non_zero_of_a_constant(tmp_path: Path, x: object) -> None:
    check(tmp_path, "NonZero", np.array(x, np.float32) if not isinstance(x, list) else np.array(x), known=[0])


@pytest.mark.feature("B06")
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_non_zero_of_the_same_value_everywhere(tmp_path: Path, value: float) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("ConstantOfShape", ["s"], ["c"], value=helper.make_tensor("v", 1, [1], [value])),
        helper.make_node("NonZero", ["c"], ["y"]),
    ]
    path = save(tmp_path / "m.onnx", nodes, {"x": ("float32", ["n", 3])}, ["y"])
    compare(path, {"x": normal(4, 3)}, {"n": 4})


@pytest.mark.parametrize("ordered", [0, 1])
def test_unique_of_a_constant(tmp_path: Path, ordered: int) -> None:
    options = {"known": [0], "outputs": 4, "sorted": ordered}
    check(tmp_path, "Unique", np.array([3, 1, 2, 1, 3.0]), **options)
    check(tmp_path, "Unique", np.array([[3, 1], [3, 0]]), **options)
    check(tmp_path, "Unique", np.array([[3, 1], [2, 2], [3, 1]], np.float32), axis=0, **options)
    check(tmp_path, "Unique", np.array([[3, 2, 3], [1, 2, 1]], np.float32), axis=-1, **options)
    check(tmp_path, "Unique", np.zeros(0, np.float32), **options)


@pytest.mark.parametrize(
    ("kind", "arrays"),
    [
        ("Compress", [normal(3), np.array([True])]),
        ("NonZero", [normal(3)]),
        ("Unique", [normal(3)]),
        ("NonMaxSuppression", [normal(1, 6, 4), normal(1, 2, 6)]),
    ],
)
def test_shapes_that_depend_on_the_data_are_refused(tmp_path: Path, kind: str, arrays: list[np.ndarray]) -> None:
    path, _ = single(tmp_path, kind, *arrays)
    with pytest.raises(UnsupportedError, match="its output's shape depends on the data"):
        import_model(path)
