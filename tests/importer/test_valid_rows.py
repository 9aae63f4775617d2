"""States with room of which valid rows alone are read: what masks prove that, what is demanded, what is refused."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.importer.reference import run
from tilec.importer import import_model
from tilec.ir.codec import graph_from_json, graph_to_json
from tilec.ir.expr import Var
from tilec.ir.graph import Tensor
from tilec.ir.text import text_of
from tilec.ir.verify.graph import check_graph

ROOM, WIDTH = 8, 4
LEAST = float(np.finfo(np.float32).min)

SEEN = {
    "causal": [("LessOrEqual", "rows place", "seen")],
    "reversed": [("GreaterOrEqual", "place rows", "seen")],
    "window": [
        ("LessOrEqual", "rows place", "early"),
        ("Sub", "place three", "first"),
        ("Greater", "rows first", "late"),
        ("And", "early late", "seen"),
    ],
    "padded": [("LessOrEqual", "rows place", "early"), ("And", "early valid", "seen")],
    "ahead": [("Add", "place three", "end"), ("LessOrEqual", "rows end", "seen")],
    "none": [("LessOrEqual", "place place", "seen")],
}
"""Masks of rows of a state [room] and queries [b, s, 1]."""


def attention(path: Path, mask: str, fill: float, *more: tuple[str, str, str]) -> Path:
    """Queries over the rows of a state of fixed room, in which those of the call have been placed."""
    steps = [
        ("Slice", "positions zero one one", "firsts"),
        ("Squeeze", "firsts one", "start"),
        ("Unsqueeze", "positions two", "place"),
        *SEEN[mask],
        ("Where", "seen nought fill", "bias"),
        ("Transpose", "present", "columns"),
        ("MatMul", "x columns", "products"),
        ("Add", "products bias", "scores"),
        ("Softmax", "scores", "shares"),
        ("MatMul", "shares present", "y"),
        *more,
    ]
    nodes = [helper.make_node("TensorScatter", ["past", "x", "start"], ["present"], axis=1)]
    nodes += [helper.make_node(op, names.split(), [output]) for op, names, output in steps]
    for node in nodes:
        if node.op_type == "Transpose":
            node.attribute.append(helper.make_attribute("perm", [0, 2, 1]))
    constants = {"zero": [0], "one": [1], "two": [2], "three": 3, "rows": np.arange(ROOM)}
    stored = [numpy_helper.from_array(np.array(value, np.int64), name) for name, value in constants.items()]
    stored += [numpy_helper.from_array(np.float32(value), name) for name, value in (("nought", 0), ("fill", fill))]
    info = helper.make_tensor_value_info
    inputs = [info("x", 1, ["b", "s", WIDTH]), info("past", 1, ["b", ROOM, WIDTH]), info("positions", 7, ["b", "s"])]
    inputs += [info("valid", 9, ["b", 1, ROOM])] if mask == "padded" else []
    outputs = [onnx.ValueInfoProto(name=name) for name in ("y", "present", *(output for _, _, output in more))]
    nodes = [*nodes[1:3], nodes[0], *nodes[3:]]  # behind what it reads
    graph = helper.make_graph(nodes, "m", inputs, outputs, stored)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10), path)
    return path


@pytest.mark.parametrize("fill", [-np.inf, LEAST])
@pytest.mark.parametrize("mask", ["causal", "reversed", "window", "padded"])
def test_rows_behind_all_places_are_not_read(tmp_path, mask, fill):
    path = attention(tmp_path / "m.onnx", mask, fill)
    imported = import_model(path, state="in-place")
    graph = imported.graph
    if (mask, fill) == ("padded", LEAST):  # where it leaves no row, all count alike
        assert "past_rows" not in graph.symbols
        return
    assert check_graph(graph) == ()
    assert graph_from_json(graph_to_json(graph)) == graph
    told = graph.inputs[-1]
    assert (told.name, graph.tensors[told.tensor]) == ("past_rows", Tensor((Var("past_rows"),), "bool"))
    assert "past_rows + s <= 8" in [text_of(each.holds) for each in graph.constraints]
    extents = {node.name: [text_of(extent) for extent in node.expr.extents] for node in graph.nodes}
    assert "8" not in {extent for name, each in extents.items() if "rows" not in name for extent in each}
    assert [(text_of(r.extent), r.wraps) for r in graph.ranges if text_of(r.extent) == "past_rows + s"] == [
        ("past_rows + s", False)
    ]
    before, new = 3, 2
    generator = np.random.default_rng(0)
    x, past = (generator.standard_normal((2, rows, WIDTH)).astype("f4") for rows in (new, ROOM))
    feeds = {"x": x, "past": past, "positions": np.tile(np.arange(before, before + new), (2, 1))}
    if mask == "padded":
        feeds["valid"] = np.arange(ROOM)[None, None].repeat(2, 0) > 0
    expected = attended(feeds, mask)
    past = past.copy()
    past[:, before:] = np.nan
    sizes = {"b": 2, "s": new, "past_rows": before}
    given = {**feeds, "past": past, "past_rows": np.zeros(before, bool)}
    y, present = run(imported, tmp_path, given, sizes)
    np.testing.assert_allclose(y, expected, rtol=1e-5)
    np.testing.assert_array_equal(present[:, before : before + new], x)


def attended(feeds, mask):
    """What the attention is."""
    x, keys, places = feeds["x"], feeds["past"].copy(), feeds["positions"][..., None]
    keys[:, places[0, 0, 0] : places[0, 0, 0] + x.shape[1]] = x
    rows = np.arange(ROOM)
    seen = rows <= places
    if mask == "window":
        seen &= rows > places - 3
    if mask == "padded":
        seen &= feeds["valid"]
    scores = np.where(seen, x @ keys.transpose(0, 2, 1), -np.inf)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True) @ keys


@pytest.mark.parametrize(
    ("mask", "more"),
    [
        ("ahead", ()),
        ("none", ()),
        ("causal", (("ReduceSum", "present one", "sums"),)),
        ("causal", (("Neg", "shares", "told"),)),
    ],
)
def test_where_rows_may_count_all_are_read(tmp_path, mask, more):
    graph = import_model(attention(tmp_path / "m.onnx", mask, -np.inf, *more), state="in-place").graph
    assert [call.file for call in graph.calls] == ["state/present"]
    assert [port.name for port in graph.inputs] == ["x", "past", "positions"]


def test_states_of_one_shape_are_read_as_the_model_reads_them(tmp_path):
    graph = import_model(attention(tmp_path / "m.onnx", "causal", -np.inf), state="same-shape").graph
    assert (len(graph.calls), "past_rows" in graph.symbols) == (1, False)
