"""The judge and the reducer, tried on a compiler that is wrong on purpose."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from fuzz.check import check, read, reduced, save
from fuzz.draw import draw
from fuzz.reference import Array, Trace, evaluate
from fuzz.sketch import Model, model_of
from fuzz.worker import Outcome, Worker


class Negligent(Worker):
    """Computes everything with the judge's help but forgets `Neg`."""

    def __init__(self) -> None:
        pass

    def run(self, model: bytes, feeds: Mapping[str, Array]) -> Outcome:
        proto = onnx.ModelProto.FromString(model)
        for node in proto.graph.node:
            node.op_type = "Identity" if node.op_type == "Neg" else node.op_type
        trace = evaluate(proto, feeds)
        return Outcome([{port.name: trace[port.name] for port in proto.graph.output}])


def chain() -> Model:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Transpose", ["a"], ["b"], perm=[1, 0]),
        helper.make_node("Neg", ["b"], ["c"]),
        helper.make_node("Exp", ["c"], ["d"]),
        helper.make_node("Abs", ["a"], ["e"]),
    ]
    feeds = {"x": np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32)}
    return Model(model_of(nodes, feeds, {}, ["d", "e"], 20), feeds)


def test_a_failure_is_reduced_to_the_node_that_is_wrong() -> None:
    model, worker = chain(), Negligent()
    finding = check(model, worker)
    assert finding is not None
    assert finding.kind == "wrong"
    small, _ = reduced(model, finding, worker)
    assert [node.op_type for node in small.proto.graph.node] == ["Neg"]


def test_models_are_kept_with_their_inputs(tmp_path: Path) -> None:
    model = chain()
    save(model, tmp_path)
    again = read(tmp_path)
    assert again.proto == model.proto
    np.testing.assert_array_equal(again.feeds["x"], model.feeds["x"])


def test_the_same_numbers_draw_the_same_model() -> None:
    first, second = draw(3, 7, 8), draw(3, 7, 8)
    assert first.proto == second.proto
    assert first.proto != draw(3, 8, 8).proto


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_rounding_passes_and_mistakes_do_not(dtype: type) -> None:
    x = np.random.default_rng(1).standard_normal((4, 50)).astype(dtype)
    trace = Trace({"x": x}, 20)
    trace.run(helper.make_node("Softmax", ["x"], ["y"], axis=1))
    y = trace["y"]
    assert trace.difference("y", y) == ""
    assert trace.difference("y", np.nextafter(y, dtype(1))) == ""
    assert trace.difference("y", (y * dtype(1.1)).astype(dtype))
    assert trace.difference("y", np.where(np.arange(50) == 7, np.nan, y).astype(dtype))
    assert trace.difference("y", y[:, :-1])


def test_whole_numbers_are_exact() -> None:
    trace = Trace({"x": np.arange(5)}, 20)
    trace.run(helper.make_node("Add", ["x", "x"], ["y"]))
    assert trace.difference("y", trace["y"] + 1)
    assert trace.difference("y", trace["y"].astype(np.int32))
