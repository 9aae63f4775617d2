"""Recurrences of any number of steps, end to end: one compilation, the body of a loop for every step."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.acceptance.building import assert_close, build, folder_of, onnxruntime
from tests.importer.control.test_scan import running_sum
from tests.importer.ops.cells import OUTPUTS, operands
from tests.importer.ops.test_recurrent import with_symbolic_steps
from tests.importer.reference import normal, save, single
from tilec.artifact import read_artifact
from tilec.runtime import load

STEPS = (1, 2, 3, 65, 130)


@pytest.mark.slow_cases("GRU-bidirectional")
@pytest.mark.feature("B01")
@pytest.mark.parametrize(("kind", "direction"), [("LSTM", "forward"), ("GRU", "bidirectional"), ("RNN", "reverse")])
def test_one_compilation_runs_all_numbers_of_steps(tmp_path: Path, kind: str, direction: str) -> None:
    """Large enough that what the loop reads again would be overwritten in the arena, were it not held."""
    arrays = operands(kind, (130, 2, 5, 96), directions=2 if direction == "bidirectional" else 1)
    for weight in (1, 2):
        arrays[weight] = 0.2 * np.asarray(arrays[weight])
    options = {"hidden_size": 96, "outputs": OUTPUTS[kind], "direction": direction, "known": [1, 2, 3]}
    path, feeds = single(tmp_path, kind, *arrays, **options)
    path = with_symbolic_steps(path)
    build(path)
    folder = folder_of(path)
    assert read_artifact(folder / "1-graph.json", "graph").body["placement"] == {"compiled": 1, "total": 1}
    session = load(folder, threads=2)
    given = [{**feeds, "x0": feeds["x0"][:steps]} for steps in STEPS]
    names = [port.name for port in session.outputs]
    expected = [dict(zip(names, onnxruntime(path, each), strict=True)) for each in given]
    for each, outputs in zip(given, expected, strict=True):
        assert_close(session.run(each), outputs)
    with ThreadPoolExecutor(8) as pool:
        for found, outputs in zip(pool.map(session.run, given * 4), expected * 4, strict=True):
            assert_close(found, outputs)
    nothing = session.run({**feeds, "x0": feeds["x0"][:0]})
    states = [nothing[name] for name in names[1:]]
    for state, start in zip(states, (feeds["x5"], feeds.get("x6")), strict=False):
        np.testing.assert_array_equal(state, start)


@pytest.mark.feature("B01")
def test_scans_and_loops_of_symbolic_lengths(tmp_path: Path) -> None:
    """Two loops that follow each other: the second is over what the first stacks."""
    nodes = [
        helper.make_node("Scan", ["start", "x"], ["last", "sums", "minus"], body=running_sum(), num_scan_inputs=1),
        helper.make_node("Size", ["x"], ["trips"]),
        helper.make_node("Loop", ["trips", "", "last"], ["end", "kept"], body=decaying()),
        helper.make_node("MatMul", ["sums", "w"], ["y"]),
    ]
    inputs = {"start": ("float32", [3]), "x": ("float32", ["n", 3])}
    path = save(tmp_path / "m.onnx", nodes, inputs, ["last", "end", "kept", "y"], {"w": normal(3, 4)})
    build(path)
    session = load(folder_of(path))
    names = [port.name for port in session.outputs]
    nothing = session.run({"start": normal(3), "x": normal(0, 3)})  # onnxruntime fails
    assert [nothing[name].shape for name in names] == [(3,), (3,), (0, 3), (0, 4)]
    np.testing.assert_array_equal(nothing["last"], normal(3))
    np.testing.assert_array_equal(nothing["end"], normal(3))
    for n in (1, 2, 9, 40):
        feeds = {"start": normal(3), "x": normal(n, 3, seed=n)}
        assert_close(session.run(feeds), dict(zip(names, onnxruntime(path, feeds), strict=True)))


def decaying() -> onnx.GraphProto:
    """Halves a vector, adds the number of the iteration, and keeps it."""
    tensor = helper.make_tensor_value_info
    inputs = [
        tensor("i", TensorProto.INT64, []),
        tensor("go", TensorProto.BOOL, []),
        tensor("v", TensorProto.FLOAT, [3]),
    ]
    nodes = [
        helper.make_node("Cast", ["i"], ["f"], to=1),
        helper.make_node("Constant", [], ["half"], value_float=0.5),
        helper.make_node("Mul", ["v", "half"], ["h"]),
        helper.make_node("Add", ["h", "f"], ["next"]),
        helper.make_node("Identity", ["go"], ["on"]),
        helper.make_node("Neg", ["next"], ["out"]),
    ]
    outputs = [tensor("on", TensorProto.BOOL, []), *(tensor(n, TensorProto.FLOAT, [3]) for n in ("next", "out"))]
    return helper.make_graph(nodes, "b", inputs, outputs)
