"""What stands behind a node that is unsupported because of one inside of it is read as if that were not there."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.importer.reference import save
from tilec.importer import import_model
from tilec.ir.text import text_of


def imported(path: Path, nodes: Any, inputs: Any, outputs: Any, weights: Any = None) -> Any:
    return import_model(save(path / "m.onnx", nodes, inputs, outputs, weights or {}, 21), fallback="allow").graph


def demands(graph: onnx.GraphProto) -> list[str]:
    found = [f"{s} >= {entry.least}" for s, entry in graph.symbol_ranges.items() if entry.least]
    found += [f"{s} == {text_of(each.value)}" for s, each in graph.symbol_values.items()]
    return sorted([*found, *(text_of(each.holds) for each in graph.constraints)])


X = {"x": (np.float32, ["b", "n"])}
BEHIND = [
    helper.make_node("Size", ["x"], ["s"]),
    helper.make_node("Reshape", ["s", "whole"], ["t"]),
    helper.make_node("Reshape", ["x", "t"], ["y"]),
]
WHOLE = {"whole": np.array([1], np.int64)}


def test_nodes_behind_a_branch_demand_what_they_need(tmp_path: Path) -> None:
    inner = [
        helper.make_node("Gather", ["x", "i"], ["g"], axis=1),
        helper.make_node("Unique", ["g"], ["u"], name="inside"),
    ]
    result = helper.make_tensor_value_info("u", TensorProto.FLOAT, ["k"])
    branch = helper.make_graph(inner, "b", [], [result])
    choice = helper.make_node("If", ["c"], ["v"], name="choice", then_branch=branch, else_branch=branch)
    inputs = {**X, "c": (np.bool_, []), "i": (np.int64, ["m"])}
    graph = imported(tmp_path, [choice, *BEHIND], inputs, ["v", "y"], WHOLE)
    assert [(each.op, each.node) for each in graph.placement.fallback] == [("If", "choice")]
    assert demands(graph) == ["minimum(b, 1) <= b * n"]
    assert not graph.ranges


def test_nodes_behind_a_function_of_onnx_demand_what_they_need(tmp_path: Path) -> None:
    crop = helper.make_node("CenterCropPad", ["x", "shape"], ["v"], name="crop")
    inputs = {**X, "shape": (np.int64, [2])}
    graph = imported(tmp_path, [crop, *BEHIND], inputs, ["v", "y"], WHOLE)
    assert [(each.op, each.node) for each in graph.placement.fallback] == [("CenterCropPad", "crop")]
    assert demands(graph) == ["minimum(b, 1) <= b * n"]
