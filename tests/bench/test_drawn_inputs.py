"""Inputs that depend on one another are drawn so that the model accepts them, or it is said which to give."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests import state_models
from tests.language_models import written
from tilec.bench.drawn_inputs import drawn_inputs
from tilec.errors import UsageError
from tilec.importer import import_model
from tilec.ir.bind_plan import plan_sizes
from tilec.ir.plan import Plan
from tilec.ir.scenarios import scenario_sizes
from tilec.scheduler.schedule import schedule
from tilec.spec.recipe import ScheduleOptions
from tilec.spec.resolve import resolve_device
from tilec.verify.inputs import Draw


def planned(path: Path) -> Plan:
    graph = import_model(path, fallback="allow").graph
    return schedule(graph, resolve_device("avx2"), ScheduleOptions(fusion="none", variants=1))


def with_mask(path: Path) -> Path:
    """A growing cache, of whose tokens a mask with columns of its own says which count."""
    model = onnx.load(state_models.growing(path))
    graph = model.graph
    del graph.node[-2:]  # softmax and what follows
    numbers = {"dim": 1, "none": 0, "one": 1}
    graph.initializer.extend(numpy_helper.from_array(np.array(value), name) for name, value in numbers.items())
    for node in (
        helper.make_node("Shape", ["present_k"], ["shape"]),
        helper.make_node("Gather", ["shape", "dim"], ["all"], axis=0),
        helper.make_node("Range", ["none", "all", "one"], ["tokens"]),
        helper.make_node("Gather", ["mask", "tokens"], ["counts"], axis=0),
        helper.make_node("Cast", ["counts"], ["factors"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["scores", "factors"], ["shares"]),
        helper.make_node("MatMul", ["shares", "present_v"], ["y"]),
    ):
        graph.node.append(node)
    graph.input.append(helper.make_tensor_value_info("mask", TensorProto.INT64, ["columns"]))
    onnx.save(model, path)
    return path


def test_a_mask_has_a_column_for_every_token_and_leaves_none_out(tmp_path: Path) -> None:
    path = with_mask(tmp_path / "m.onnx")
    plan = planned(path)
    drawn = drawn_inputs(plan, path, Draw(0), plan_sizes(plan), {})
    assert drawn.sizes["columns"] >= drawn.sizes["past"] + drawn.sizes["new"] == 512
    assert drawn.model_feeds["mask"].all()


def test_sizes_that_the_model_refuses_become_smaller_within_their_scenario(tmp_path: Path) -> None:
    path = written.merged(tmp_path / "m.onnx", taken=True)  # whose positions end at 64
    plan = planned(path)
    drawn = drawn_inputs(plan, path, Draw(0), scenario_sizes(plan, "prefill", {"batch": 2}), {"batch": 2})
    assert drawn.sizes == {"batch": 2, "new": 64, "past": 0}


def test_a_model_that_takes_none_of_them_says_which_to_give(tmp_path: Path) -> None:
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"]), helper.make_node("Neg", ["y"], ["z"])]
    inputs = [("x", TensorProto.FLOAT, [4, 6]), ("shape", TensorProto.INT64, [2])]
    infos = [helper.make_tensor_value_info(*each) for each in inputs]
    out = [helper.make_tensor_value_info("z", TensorProto.FLOAT, ["a", "b"])]
    opsets = [helper.make_opsetid("", 20)]
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", infos, out), opset_imports=opsets, ir_version=9), path)
    plan = planned(path)
    with pytest.raises(UsageError, match=r"accepts none of the inputs .*Reshape") as refused:
        drawn_inputs(plan, path, Draw(0), plan_sizes(plan), {})
    assert "Give shape and the rest in a file, --inputs FILE.npz; tried were x float32[4, 6], shape int64[2]" in str(
        refused.value
    )
