"""Sizes of 0 (or 1) that a model's operators do not take: looked into where there is nothing, copied by Reshape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from tests.importer.reference import save
from tilec.importer import import_model
from tilec.ir.text import text_of

LAST = [("Shape", "x", {"start": 1, "end": 2}, "n"), ("Sub", "n one", {}, "last")]

CASES: dict[str, tuple[Any, ...]] = {
    "the last that sizes tell": ([*LAST, ("Gather", "x last", {"axis": 1}, "y")], {}, ["n >= 1"]),
    "the third from the end": (
        [*LAST, ("Sub", "last two", {}, "third"), ("Gather", "x third", {"axis": 1}, "y")],
        {},
        ["n >= 2"],
    ),
    "indices of the model": (
        [("Gather", "x i", {"axis": 1}, "y")],
        {"i": (np.int64, ["k"])},
        ["minimum(k, minimum(b, 1)) <= n"],
    ),
    "many sizes beside it": (
        [("Gather", "w i", {"axis": 2}, "y")],
        {"w": (np.float32, ["b", "c", "n", "width", "d0", "d1", "d2"]), "i": (np.int64, ["k", "l"])},
        [
            "".join(f"minimum({s}, " for s in ["d2", "d1", "d0", "width", "l", "k", "c"])
            + "minimum(b, 1)"
            + ")" * 7
            + " <= n"
        ],
    ),
    "indices beside the axis": (
        [("GatherElements", "x i", {"axis": 1}, "y")],
        {"i": (np.int64, [3, 2])},
        ["b >= 3", "n >= 1"],
    ),
    "enlarged": ([("Resize", "x none none sizes", {"mode": "nearest"}, "y")], {}, ["b >= 1", "n >= 1"]),
    "merged": (
        [("Size", "x", {}, "s"), ("Reshape", "s whole", {}, "t"), ("Reshape", "x t", {}, "y")],
        {},
        ["minimum(b, 1) <= b * n"],
    ),
    "another dimension": (
        [*LAST, ("Shape", "z", {}, "zs"), ("Concat", "n four", {"axis": 0}, "t"), ("Reshape", "z t", {}, "y")],
        {"z": (np.float32, [4, "n"])},
        ["n >= 1"],
    ),
    "its own dimension": (
        [
            ("Shape", "x", {"start": 0, "end": 1}, "b"),
            ("Concat", "b rest", {"axis": 0}, "t"),
            ("Reshape", "x t", {}, "y"),
        ],
        {},
        [],
    ),
    "nothing of 0 is copied": (
        [*LAST, ("Concat", "n four", {"axis": 0}, "t"), ("Reshape", "z t", {"allowzero": 1}, "y")],
        {"z": (np.float32, [4, "n"])},
        [],
    ),
    "channels": (
        [("Conv", "f k", {}, "y")],
        {"f": (np.float32, [1, "n", 8]), "k": (np.float32, [4, "n", 3])},
        ["n >= 1"],
    ),
    "channels of the output": (
        [("ConvTranspose", "f k", {}, "y")],
        {"f": (np.float32, [1, "n", 8]), "k": (np.float32, ["n", 4, 3])},
        ["n >= 1"],
    ),
    "a rank that sizes decide": ([("Squeeze", "x", {}, "y")], {}, ["b != 1", "n != 1"]),
    "elements alone": ([("Neg", "x", {}, "a"), ("ReduceSum", "a", {}, "y")], {}, []),
}


@pytest.mark.feature("B06")
@pytest.mark.parametrize("name", CASES)
def test_sizes_of_zero(tmp_path: Path, name: str) -> None:
    nodes, inputs, wanted = CASES[name]
    weights = {"one": np.array([1]), "two": np.array([2]), "four": np.array([4]), "rest": np.array([-1])}
    weights |= {"whole": np.array([1]), "sizes": np.array([5, 6])}
    made = [
        helper.make_node(kind, ["" if i == "none" else i for i in read.split()], [result], **attributes)
        for kind, read, attributes, result in nodes
    ]
    used = {i for node in made for i in node.input}
    kept = {n: np.asarray(w, np.int64) for n, w in weights.items() if n in used}
    inputs = {"x": (np.float32, ["b", "n"])} | inputs
    graph = import_model(save(tmp_path / "m.onnx", made, inputs, ["y"], kept, 21)).graph
    assert graph.calls == ()
    found = [f"{s} >= {entry.least}" for s, entry in graph.symbol_ranges.items() if entry.least]
    found += [text_of(each.holds) for each in graph.constraints]
    assert sorted(found) == wanted
