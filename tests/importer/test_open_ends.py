"""What counts from the end of a dimension whose size is open: indices below 0, slices, crops, last elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import helper

from tests.importer.reference import normal, onnxruntime, run, save
from tilec.importer import import_model
from tilec.ir.bind import bind
from tilec.ir.verify.graph import check_graph

SIZES = ({"b": 3, "n": 5}, {"b": 1, "n": 4}, {"b": 2, "n": 9})


def ints(*values: int) -> NDArray[np.int64]:
    return np.array(values, np.int64)


@dataclass(frozen=True)
class Case:
    """Operators over `x[b, n]`, the last of which makes `y`: kind, inputs, attributes; and weights."""

    nodes: Sequence[tuple[str, str, Mapping[str, Any]]]
    weights: Mapping[str, Any] = field(default_factory=dict)


def one(kind: str, inputs: str, attributes: Mapping[str, Any] | None = None, **weights: Any) -> Case:
    """One operator."""
    return Case([(kind, inputs, attributes or {})], weights)


def sliced(start: int, end: int, step: int = 1, axis: int = 1) -> Case:
    return one("Slice", "x s e a t", s=ints(start), e=ints(end), a=ints(axis), t=ints(step))


END, BEGIN = 2**63 - 1, -(2**63) + 1
LENGTH = [("Shape", "x", {"start": 1, "end": 2})]

CASES: dict[str, Case] = {
    "the last": one("Gather", "x i", {"axis": 1}, i=np.int64(-1)),
    "the last ones": one("Gather", "x i", {"axis": 1}, i=ints(-1, 0, -4, 3)),
    "a table of the last": one("Gather", "x i", {"axis": 1}, i=ints(-2, -1, 1, -3).reshape(2, 2)),
    "the last row": one("Gather", "x i", {"axis": 0}, i=np.int64(-1)),
    "the last of each row": one("GatherElements", "x i", {"axis": 0}, i=ints(-1, 0, -1, -1).reshape(1, 4)),
    "the last corner": one("GatherND", "x i", i=ints(-1, -1, 0, -2).reshape(2, 2)),
    "computed": Case([*LENGTH, ("Sub", "t0 one", {}), ("Gather", "x t1", {"axis": 1})], {"one": ints(1)}),
    "computed from the end": Case([*LENGTH, ("Neg", "t0", {}), ("Gather", "x t1", {"axis": 1})], {}),
    "computed half": Case([*LENGTH, ("Div", "t0 two", {}), ("Gather", "x t1", {"axis": 1})], {"two": ints(2)}),
    "to the last": sliced(0, -1),
    "from the last": sliced(-1, END),
    "between": sliced(-3, -1),
    "all": sliced(BEGIN, END),
    "reversed": sliced(-1, BEGIN, -1),
    "reversed without ends": sliced(-2, 0, -1),
    "every second from the end": sliced(-1, BEGIN, -2),
    "every third": sliced(0, END, 3),
    "every second of the first": sliced(1, -1, 2),
    "more than there are": sliced(-100, 3),
    "nothing": sliced(-1, 1),
    "reversed rows": sliced(END, BEGIN, -1, 0),
    "computed slice": Case(
        [*LENGTH, ("Div", "t0 two", {}), ("Slice", "x t1 t0 one", {})], {"two": ints(2), "one": ints(1)}
    ),
    "computed slice from the end": Case(
        [*LENGTH, ("Div", "t0 two", {}), ("Neg", "t1", {}), ("Slice", "x t2 t0 one", {})],
        {"two": ints(2), "one": ints(1)},
    ),
    "two halves": Case([("Split", "x", {"axis": 1, "num_outputs": 2})]),
    "cropped": one("Pad", "x p", p=ints(0, -1, 0, -2)),
    "cropped and padded": one("Pad", "x p", p=ints(0, -2, 1, 3)),
    "reflected": one("Pad", "x p", {"mode": "reflect"}, p=ints(0, 2, 0, 3)),
    "wrapped": one("Pad", "x p", {"mode": "wrap"}, p=ints(0, 3, 0, 2)),
    "repeated ends": one("Pad", "x p", {"mode": "edge"}, p=ints(1, 2, 1, 3)),
    "the last of the largest": Case([("ArgMax", "x", {"axis": 1, "select_last_index": 1, "keepdims": 0})]),
    "the last of the smallest": Case([("ArgMin", "x", {"axis": -2, "select_last_index": 1})]),
    "sums from the end": one("CumSum", "x a", {"reverse": 1}, a=np.int64(1)),
    "sums of what follows": one("CumSum", "x a", {"reverse": 1, "exclusive": 1}, a=np.int64(-2)),
    "upper triangle": one("Trilu", "x k", k=np.int64(-1)),
    "lower triangle": one("Trilu", "x k", {"upper": 0}, k=np.int64(2)),
    "triangle from the end": Case(
        [*LENGTH, ("Neg", "t0", {}), ("Add", "t1 two", {}), ("Squeeze", "t2", {}), ("Trilu", "x t3", {"upper": 0})],
        {"two": ints(2)},
    ),
    "the largest": Case([("TopK", "x k", {"axis": 1})], {"k": ints(3)}),
    "set at the end": one("ScatterElements", "x i u", {"axis": 1}, i=ints(-1, 0).reshape(1, 2), u=normal(1, 2)),
    "set at the last corner": one("ScatterND", "x i u", i=ints(-1, -1, 0, -2).reshape(2, 2), u=normal(2)),
    "set the last row": Case(
        [("Gather", "x first", {"axis": 0}), ("ScatterND", "x i t0", {})],
        {"first": ints(0), "i": ints(-1).reshape(1, 1)},
    ),
    "two ends": Case(
        [
            ("Slice", "x zero minus one", {}),
            ("Slice", "x minus end one", {}),
            ("Concat", "t1 t0 x", {"axis": 1}),
            ("Gather", "t2 minus", {"axis": 1}),
        ],
        {"zero": ints(0), "minus": ints(-1), "one": ints(1), "end": ints(END)},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_open_ends(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    nodes = []
    for number, (kind, inputs, attributes) in enumerate(case.nodes):
        count = attributes.get("num_outputs", 2 if kind == "TopK" else 1)
        outputs = ["y", "second"][:count] if number == len(case.nodes) - 1 else [f"t{number}"]
        nodes.append(helper.make_node(kind, inputs.split(), outputs, name=f"{kind}_{number}", **attributes))
    ports = {"x": (np.float32, ("b", "n"))}
    path = save(tmp_path / "m.onnx", nodes, ports, nodes[-1].output, dict(case.weights))
    imported = import_model(path)
    assert imported.graph.placement.compiled == len(nodes)
    assert check_graph(imported.graph) == ()
    for sizes in SIZES:
        feeds = {"x": normal(sizes["b"], sizes["n"])}
        assert check_graph(bind(imported.graph, sizes)) == ()
        for a, b in zip(run(imported, tmp_path, feeds, sizes), onnxruntime(path, feeds), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
            assert a.shape == b.shape
