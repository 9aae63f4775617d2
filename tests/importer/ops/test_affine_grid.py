"""AffineGrid against the reference."""

from pathlib import Path

import numpy as np
import pytest

from tests.importer.reference import check, compare, helper, normal, save
from tilec.errors import ConfigError
from tilec.importer import import_model


@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("size", [[2, 3, 4, 5], [2, 1, 1, 3], [2, 1, 3, 1], [2, 3, 2, 1, 4]])
def test_images(tmp_path: Path, size: list[int], corners: int) -> None:
    """A dimension of extent 1 has its point at 1 when corners are aligned."""
    rank = len(size) - 2
    check(tmp_path, "AffineGrid", normal(2, rank, rank + 1), np.array(size), known=[1], align_corners=corners)


@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("n", [1, 4])
def test_symbolic_sizes(tmp_path: Path, n: int, corners: int) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["size"]),
        helper.make_node("AffineGrid", ["theta", "size"], ["y"], align_corners=corners),
    ]
    inputs = {"x": ("float32", [2, 3, "n", 4]), "theta": ("float32", [2, 2, 3])}
    path = save(tmp_path / "m.onnx", nodes, inputs, ["y"])
    compare(path, {"x": normal(2, 3, n, 4), "theta": normal(2, 2, 3)}, {"n": n})


def test_double_precision(tmp_path: Path) -> None:
    theta, size = normal(2, 2, 3, dtype="float64"), np.array([2, 1, 3, 4])
    check(tmp_path, "AffineGrid", theta, size, known=[1])


def test_a_map_that_does_not_fit(tmp_path: Path) -> None:
    nodes = [helper.make_node("AffineGrid", ["theta", "size"], ["y"])]
    path = save(tmp_path / "m.onnx", nodes, {"theta": ("float32", [2, 2, 3])}, ["y"], {"size": np.array([3, 1, 4, 5])})
    with pytest.raises(ConfigError, match="affine map .2, 2, 3. for an image .3, 1, 4, 5."):
        import_model(path)
