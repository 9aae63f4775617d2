"""A type of 5 bits of one's own, told in three ways, is the same on processors and on the tile machine."""

import json
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto as T
from onnx import helper

from quantised.compile import SLOW_MEMORY, compiled
from quantised.test_few_bits import written
from tilec import load
from tilec.ir.words import pack_codes

K, N = 96, 24
TYPE = "code<5 float: f32(i32(code)) * 0.5 - 7.0>"
FILE = """kind: type
description: halves from -7 to 8.5
bits: 5
numbers: float
decode: f32(i32(code)) * 0.5 - 7.0
group: column
"""
CODES = np.random.default_rng(8).integers(0, 29, (K, N))
CODES[0] = 0  # -7, the largest magnitude of both signs: scales are 1


def weights() -> np.ndarray:
    return (CODES * 0.5 - 7.0).astype(np.float32)


def by_recipe(folder: Path) -> tuple[Path, list[str]]:
    (folder / "recipe.yaml").write_text(f'types:\n  "w": "{TYPE}[column]*f32"\n')
    return plain(folder), ["--recipe", str(folder / "recipe.yaml")]


def by_file(folder: Path) -> tuple[Path, list[str]]:
    (folder / "half5.yaml").write_text(FILE)
    (folder / "recipe.yaml").write_text('types:\n  "w": half5.yaml\n')
    return plain(folder), ["--recipe", str(folder / "recipe.yaml")]


def plain(folder: Path) -> Path:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    return written(folder / "m.onnx", nodes, {"w": weights()}, {"x": (T.FLOAT, [3, K]), "y": (T.FLOAT, [3, N])})


def by_attribute(folder: Path) -> tuple[Path, list[str]]:
    nodes = [
        helper.make_node("Decode", ["q"], ["d"], domain="ai.tilec", ttype=TYPE, size=K),
        helper.make_node("Transpose", ["d"], ["w"]),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    words = pack_codes(CODES.T, TYPE)
    return written(folder / "m.onnx", nodes, {"q": words}, {"x": (T.FLOAT, [3, K]), "y": (T.FLOAT, [3, N])}), []


@pytest.mark.quick_cases("by_recipe")
@pytest.mark.feature("L02", "L20", "L25")
@pytest.mark.parametrize("told", [by_recipe, by_file, by_attribute])
def test_a_type_of_ones_own(tmp_path: Path, told) -> None:
    model, options = told(tmp_path)
    x = np.random.default_rng(9).integers(-4, 5, (3, K)).astype(np.float32)
    result = compiled(model, "--no-bounds", "--device", SLOW_MEMORY, *options)
    assert (result.code, result.native) == (0, result.total), result.error
    (made,) = load(model.with_suffix(".tilec")).run({"x": x}).values()
    np.testing.assert_array_equal(made, x @ weights())
    (packed,) = model.with_suffix(".tilec").glob("weights-*.safetensors")
    assert packed.stat().st_size < K * N * 5 / 8 * 1.3 + 800  # six codes a word, and a header

    result = compiled(model, "--no-bounds", "--device", "ipu-mk2", *options)
    assert result.code == 0, result.error
    assert json.loads((model.with_suffix(".tilec") / "4-report.json").read_text())["verified_on"] == "tile machine"
