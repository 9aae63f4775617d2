"""Tensors computed from shapes alone are expressions of the symbols, never kernels (B05)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import helper

from tests.importer.reference import compare, normal, save
from tilec.importer import import_model
from tilec.ir.text import text_of


def node(kind: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    return helper.make_node(kind, inputs.split(), outputs.split(), name=outputs.split()[0], **attributes)


def ints(*values: int) -> NDArray[np.int64]:
    return np.array(values, np.int64)


WEIGHTS: dict[str, NDArray[Any]] = {
    "zero": ints(0),
    "one": ints(1),
    "two": ints(2),
    "three": ints(3),
    "minus": ints(-1),
    "at0": np.int64(0),
    "at1": np.int64(1),
    "at2": np.int64(2),
    "ones": ints(1, 1, 1),
    "negative": ints(-1, -1, -1),
    "half": np.float32(0.5),
    "third": np.float64(3),
    "nought": np.float32(0),
    "none": np.zeros(0, np.float32),
    "grow": np.array([1, 2, 1], np.float32),
}

SHAPES: dict[str, Sequence[Any]] = {
    "gather and concat": [
        node("Shape", "x", "s"),
        node("Gather", "s at0", "b"),
        node("Gather", "s at1", "n"),
        node("Mul", "b n", "bn"),
        node("Unsqueeze", "bn zero", "u"),
        node("Concat", "u minus", "target", axis=0),
        node("Reshape", "x target", "y"),
    ],
    "expand as exporters write it": [
        node("Shape", "x", "s"),
        node("Equal", "s negative", "e"),
        node("Where", "e ones s", "w"),
        node("ConstantOfShape", "w", "c"),
        node("Expand", "half w", "h"),
        node("Add", "c h", "d"),
        node("Add", "x d", "y"),
    ],
    "range and mask": [
        node("Shape", "x", "s"),
        node("Gather", "s at1", "n"),
        node("Range", "at0 n at1", "r"),
        node("Unsqueeze", "r zero", "row"),
        node("Unsqueeze", "r one", "column"),
        node("Less", "row column", "less"),
        node("Where", "less half mask", "m"),
        node("Transpose", "x", "t", perm=[0, 2, 1]),
        node("MatMul", "x t", "z"),
        node("Add", "z m", "y"),
    ],
    "min, max, product, 32 bits": [
        node("Shape", "x", "s"),
        node("Slice", "s zero two", "front"),
        node("ReduceProd", "front", "p", keepdims=1),
        node("Cast", "p", "p32", to=6),
        node("Cast", "p32", "p64", to=7),
        node("Max", "p64 one", "q"),
        node("Min", "q p64", "r"),
        node("Concat", "r minus", "target", axis=0),
        node("Reshape", "x target", "y"),
    ],
    "halves": [
        node("Shape", "x", "n", start=1, end=2),
        node("Div", "n two", "half_n"),
        node("Mod", "n two", "odd"),
        node("Add", "half_n odd", "more"),
        node("Slice", "x zero more one", "a"),
        node("Slice", "x half_n n one", "b"),
        node("Add", "a b", "y"),
    ],
    "size and tile": [
        node("Size", "x", "size"),
        node("Unsqueeze", "size zero", "u"),
        node("Reshape", "x u", "flat"),
        node("Shape", "x", "b", start=0, end=1),
        node("Tile", "flat b", "y"),
    ],
    "pads": [
        node("Shape", "x", "n", start=1, end=2),
        node("Sub", "n one", "less"),
        node("Concat", "zero less zero zero zero zero", "pads", axis=0),
        node("Pad", "x pads", "y"),
    ],
    "half of a float, rounded up": [
        node("Shape", "x", "s", start=1, end=2),
        node("Cast", "s", "f", to=1),
        node("Mul", "f half", "h"),
        node("Ceil", "h", "c"),
        node("Cast", "c", "k", to=7),
        node("Slice", "x zero k one", "y"),
    ],
    "a third of a double": [
        node("Shape", "x", "s", start=1, end=2),
        node("Cast", "s", "f", to=11),
        node("Div", "f third", "h"),
        node("Floor", "h", "c"),
        node("Cast", "c", "k", to=7),
        node("Concat", "k two", "t", axis=0),
        node("ConstantOfShape", "t", "y"),
    ],
    "a range of floats": [
        node("Shape", "x", "s", start=1, end=2),
        node("Squeeze", "s", "q"),
        node("Cast", "q", "f", to=1),
        node("Range", "nought f half", "r"),
        node("Shape", "r", "k"),
        node("ConstantOfShape", "k", "o"),
        node("Add", "o r", "y"),
    ],
    "scales that are quotients of sizes": [
        node("Shape", "x", "s"),
        node("Cast", "s", "f", to=1),
        node("Mul", "f grow", "g"),
        node("Floor", "g", "wanted"),
        node("Div", "wanted f", "scales"),
        node("Resize", "x none scales", "y", mode="nearest"),
    ],
    "a side of a square": [
        node("Shape", "x", "s", start=1, end=2),
        node("Cast", "s", "f", to=1),
        node("Mul", "f f", "square"),
        node("Sqrt", "square", "side"),
        node("Cast", "side", "k", to=7),
        node("Concat", "minus k", "t", axis=0),
        node("Reshape", "x t", "y"),
    ],
    "split and squeeze": [
        node("Shape", "x", "s"),
        node("Split", "s", "a b c", axis=0, num_outputs=3),
        node("Squeeze", "b zero", "n"),
        node("Unsqueeze", "n zero", "n1"),
        node("Concat", "a c n1", "target", axis=0),
        node("Reshape", "x target", "y"),
    ],
}


@pytest.mark.feature("B05")
@pytest.mark.parametrize("name", SHAPES)
def test_no_kernel_computes_a_shape(tmp_path: Path, name: str) -> None:
    weights = {**WEIGHTS, "mask": np.float32(0)}
    path = save(tmp_path / "m.onnx", SHAPES[name], {"x": ("float32", ("b", "n", 4))}, ["y"], weights)
    for b, n in ((1, 2), (3, 4), (2, 6), (2, 5)):
        if name != "halves" or n % 2 == 0:
            graph = compare(path, {"x": normal(b, n, 4)}, {"b": b, "n": n})
    assert [node.name for node in graph.nodes if graph.tensors[node.name].ttype in ("i64", "i32", "bool")] == []


def test_floats_count_exactly_as_far_as_import_demands(tmp_path: Path) -> None:
    nodes = SHAPES["half of a float, rounded up"]
    path = save(tmp_path / "m.onnx", nodes, {"x": ("float32", ("b", "n", 4))}, ["y"], WEIGHTS)
    graph = import_model(path).graph
    assert [text_of(each.holds) for each in graph.constraints] == ["n // 16777216 == 0"]
    assert [text_of(extent) for extent in graph.tensors["y"].shape] == ["b", "(n + 1) // 2", "4"]


def test_a_rounded_scale_may_lose_an_element_and_batch_and_channels_stay_open(tmp_path: Path) -> None:
    """49 times a 49th is a little less than 1 in f32, and truncated."""
    nodes = [
        node("Shape", "x", "s", start=2),
        node("Cast", "s", "f", to=1),
        node("Div", "one_ f", "scale"),
        node("Concat", "same scale", "scales", axis=0),
        node("Resize", "x none scales", "r", mode="nearest"),
        node("Relu", "r", "y"),
    ]
    weights = {"one_": np.float32(1), "same": np.ones(2, np.float32), "none": np.zeros(0, np.float32)}
    path = save(tmp_path / "m.onnx", nodes, {"x": ("float32", ("b", "c", "n"))}, ["y"], weights)
    graph = import_model(path, fallback="allow").graph
    (fallen,) = graph.placement.fallback
    assert fallen.reason == "a dimension times 1 / n, which is rounded before the product"
    assert [text_of(extent) for extent in graph.tensors[graph.outputs[0].tensor].shape] == ["b", "c", "resize_1"]
