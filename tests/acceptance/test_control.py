"""Loops, scans, branches, sequences and functions compile, nothing falls back, and agree with onnxruntime."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from importer.control.test_scan import cell
from importer.reference import normal, onnxruntime, save
from onnx import TensorProto, helper
from onnx.helper import make_node

from acceptance.building import check, compiled

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def info(name: str, code: int = F32, shape: list[int] | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, code, shape)


def test_a_recurrent_network_written_as_a_scan(tmp_path: Path) -> None:
    nodes = cell()
    body = helper.make_graph(nodes, "cell", [info("h"), info("v")], [info("next"), info("given")])
    scan = make_node("Scan", ["start", "x"], ["last", "y"], body=body, num_scan_inputs=1, scan_input_directions=[1])
    weights = {"w": normal(24, 16) / 5, "r": normal(16, 16) / 4}
    inputs = {"start": ("float32", [3, 16]), "x": ("float32", [6, 3, 24])}
    path = save(tmp_path / "m.onnx", [scan], inputs, ["last", "y"], weights)
    check(path, {"start": normal(3, 16), "x": normal(6, 3, 24)})


@pytest.mark.parametrize("trips", [0, 1, 9])
def test_a_loop_with_a_condition_and_a_choice(tmp_path: Path, trips: int) -> None:
    """Stops after 7 iterations at the latest; every other one negates."""
    even, odd = (
        helper.make_graph([make_node(op, ["v"], [f"{op}_v"])], op, [], [info(f"{op}_v")]) for op in ("Neg", "Sin")
    )
    nodes = [
        make_node("Less", ["i", "six"], ["on"]),
        make_node("Mod", ["i", "two"], ["rest"]),
        make_node("Cast", ["rest"], ["is_odd"], to=BOOL),
        make_node("If", ["is_odd"], ["w"], then_branch=odd, else_branch=even),
        make_node("Gather", ["x", "i"], ["row"]),
        make_node("Add", ["w", "row"], ["next"]),
        make_node("ReduceSum", ["next"], ["sum"], keepdims=0),
    ]
    inputs = [info("i", I64, []), info("go", BOOL, []), info("v", F32, [20])]
    body = helper.make_graph(nodes, "body", inputs, [info("on", BOOL, []), info("next"), info("sum", F32, [])])
    loop = make_node("Loop", ["trips", "", "start"], ["last", "sums"], body=body)
    weights = {"trips": np.int64(trips), "six": np.int64(6), "two": np.int64(2)}
    path = save(
        tmp_path / "m.onnx", [loop], {"x": ("float32", [9, 20]), "start": ("float32", [20])}, ["last", "sums"], weights
    )
    check(path, {"x": normal(9, 20), "start": normal(20)})


def test_a_choice_at_run_time(tmp_path: Path) -> None:
    """One compiled model; the branch that is not taken divides by zero."""
    yes = helper.make_graph([make_node("Div", ["x", "y"], ["q"])], "yes", [], [info("q", I64)])
    no = helper.make_graph([make_node("Mul", ["x", "x"], ["p"])], "no", [], [info("p", I64)])
    node = make_node("If", ["c"], ["z"], then_branch=yes, else_branch=no)
    path = save(tmp_path / "m.onnx", [node], {"x": ("int64", [5]), "y": ("int64", [5]), "c": ("bool", [])}, ["z"])
    x, zeros = np.arange(5), np.zeros(5, np.int64)
    session = compiled(path)
    for y, c in ((np.arange(1, 6), True), (zeros, False), (np.arange(1, 6), False)):
        feeds = {"x": x, "y": y, "c": np.array(c)}
        np.testing.assert_array_equal(session.run(feeds)["z"], onnxruntime(path, feeds)[0])


def test_sequences_and_functions(tmp_path: Path) -> None:
    """Split into parts, softmax of each, joined the other way round, then a function."""
    body = helper.make_graph([make_node("Softmax", ["part"], ["done"])], "b", [info("part")], [info("done")])
    nodes = [
        make_node("SplitToSequence", ["x", "sizes"], ["parts"], axis=1),
        make_node("SequenceMap", ["parts"], ["mapped"], body=body),
        make_node("SequenceAt", ["mapped", "last"], ["z"]),
        make_node("SequenceErase", ["mapped"], ["rest"]),
        make_node("SequenceInsert", ["rest", "z", "first"], ["turned"]),
        make_node("ConcatFromSequence", ["turned"], ["joined"], axis=1),
        make_node("Own", ["joined"], ["y"], domain="own"),
    ]
    weights = {"sizes": np.array([3, 1, 4]), "last": np.int64(-1), "first": np.int64(0)}
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
    inner = [make_node("Exp", ["a"], ["b"]), make_node("Add", ["a", "b"], ["c"])]
    path = save(tmp_path / "m.onnx", nodes, {"x": ("float32", [6, 8])}, ["y"], weights)
    model = onnx.load(path)
    model.functions.append(helper.make_function("own", "Own", ["a"], ["c"], inner, opsets))
    model.opset_import.append(opsets[1])
    onnx.save(model, path)
    check(path, {"x": normal(6, 8)})
