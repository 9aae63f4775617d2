"""Stacks of any number of parts, along any axis."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx.helper import make_node

from tests.importer.reference import compare, save
from tilec.errors import ConfigError
from tilec.importer import import_model
from tilec.importer.control.unroll import MAX_STACKED
from tilec.ir.expr import Const, accesses


def stack(folder: Path, parts: int, axis: int, shape: list[int | str]) -> Path:
    """Rows of x, each read in its own way, stacked."""
    nodes = [
        make_node("SplitToSequence", ["x"], ["s"], axis=0, keepdims=0),
        make_node("ConcatFromSequence", ["s"], ["y"], axis=axis, new_axis=1),
    ]
    return save(folder / "m.onnx", nodes, {"x": ("float32", [parts, *shape])}, ["y"])


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("parts", [1, 2, 7, MAX_STACKED, MAX_STACKED + 1, MAX_STACKED**2, MAX_STACKED**2 + 1, 150])
def test_stacks(tmp_path: Path, parts: int, axis: int) -> None:
    x = np.arange(parts * 6, dtype=np.float32).reshape(parts, 2, 3)
    graph = compare(stack(tmp_path, parts, axis, [2, 3]), {"x": x})
    assert max(len(accesses(node.expr)) for node in graph.nodes) <= MAX_STACKED


def test_symbolic_extents(tmp_path: Path) -> None:
    compare(stack(tmp_path, 3, 1, ["n"]), {"x": np.arange(12, dtype=np.float32).reshape(3, 4)}, {"n": 4})


def test_parts_of_different_shapes(tmp_path: Path) -> None:
    nodes = [
        make_node("SequenceConstruct", ["x", "z"], ["s"]),
        make_node("ConcatFromSequence", ["s"], ["y"], axis=0, new_axis=1),
    ]
    path = save(tmp_path / "m.onnx", nodes, {"x": ("float32", [2]), "z": ("float32", [3])}, ["y"])
    with pytest.raises(ConfigError, match="dimension 0 of what the iterations give: 2 and 3 differ"):
        import_model(path)
    path = save(tmp_path / "m.onnx", nodes, {"x": ("float32", [2]), "z": ("float32", ["n"])}, ["y"])
    assert import_model(path).graph.symbol_values["n"].value == Const(2)
    path = save(tmp_path / "m.onnx", nodes, {"x": ("float32", [2]), "z": ("float32", [2, 2])}, ["y"])
    with pytest.raises(ConfigError, match="different types or ranks"):
        import_model(path)
