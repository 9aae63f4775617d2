"""Operators that ONNX never settled, which onnxruntime has up to opset 9."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from tests.importer.reference import check, normal, save, single
from tilec.errors import ConfigError
from tilec.importer import import_model

X = 3 * normal(2, 3, 5, 7)

CASES: list[tuple[str, dict[str, Any]]] = [
    ("Affine", {"alpha": 0.5, "beta": -1.0}),
    ("Affine", {"alpha": 2.0, "beta": 0.0}),
    ("ImageScaler", {"scale": 0.25, "bias": [1.0, -2.0, 3.0]}),
    ("ScaledTanh", {"alpha": 1.7, "beta": 0.6}),
    ("ParametricSoftplus", {"alpha": 1.5, "beta": 2.0}),
    ("Scale", {"scale": -0.5}),
    ("Crop", {"border": [1, 0, 2, 3]}),
    ("Crop", {"border": [1, 2, 0, 0], "scale": [2, 4]}),
    ("Crop", {"border": [3, 2, 4, 3]}),
]


@pytest.mark.parametrize("opset", [7, 9])
@pytest.mark.parametrize(("kind", "attributes"), CASES)
def test_operators_of_early_opsets(tmp_path: Path, kind: str, attributes: dict[str, Any], opset: int) -> None:
    check(tmp_path, kind, X, opset=opset, **attributes)


@pytest.mark.parametrize(
    ("kind", "attributes", "message"),
    [
        ("ScaledTanh", {"alpha": 1.0}, "the attribute 'beta' is missing"),
        ("Affine", {"alpha": 1, "beta": 0.0}, "the attribute 'alpha' is 1"),
        ("Crop", {}, "the attribute 'border' is missing"),
        ("Crop", {"border": [4, 0, 4, 0]}, "without 4 and 4"),
        ("Crop", {"border": [0, 0]}, "a border of 2 numbers"),
        ("ImageScaler", {"bias": [1.0]}, "with 1 biases"),
    ],
)
def test_what_they_demand(tmp_path: Path, kind: str, attributes: dict[str, Any], message: str) -> None:
    path, _ = single(tmp_path, kind, X, opset=7, **attributes)
    with pytest.raises(ConfigError, match=message) as found:
        import_model(path)
    assert found.value.hint


def test_open_sizes_are_cropped(tmp_path: Path) -> None:
    node = helper.make_node("Crop", ["x"], ["y"], border=[1, 1, 1, 1])
    graph = import_model(save(tmp_path / "m.onnx", [node], {"x": (np.float32, ["n", 3, "h", "w"])}, ["y"], {}, 7)).graph
    assert {name: entry.least for name, entry in graph.symbol_ranges.items()} == {"h": 2, "w": 2}


def test_later_opsets_have_none_of_them(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "Affine", X, opset=10, alpha=1.0, beta=0.0)
    with pytest.raises(Exception, match="ONNX has no operator 'Affine'"):
        import_model(path)
