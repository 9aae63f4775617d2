"""Models that grow are sound, and have as many nodes as their names say."""

from pathlib import Path

import onnx
import pytest

from tests.compile_times.growth import is_growing, write_growing


@pytest.mark.parametrize(("name", "nodes"), [("equal-3", 9), ("distinct-4", 12), ("chain-7", 7)])
def test_models_that_grow(tmp_path: Path, name: str, nodes: int) -> None:
    write_growing(name, tmp_path / "model.onnx")
    model = onnx.load(tmp_path / "model.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert is_growing(name)
    assert len(model.graph.node) == nodes


@pytest.mark.parametrize("name", ["bert-base", "equal-", "chain-x", "model.onnx"])
def test_other_names(name: str) -> None:
    assert not is_growing(name)
