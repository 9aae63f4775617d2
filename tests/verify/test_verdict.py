"""The verdict on outputs beyond their tolerance, and the reference where onnxruntime has no answer."""

import numpy as np
import onnx
import pytest
from cli import models
from onnx import TensorProto, helper

from tilec.importer import import_model
from tilec.ir.expr import Call, Const
from tilec.scheduler import schedule
from tilec.spec.recipe import ScheduleOptions
from tilec.spec.resolve import resolve_device
from tilec.verify import native, references, verdict
from tilec.verify.native import verify_native
from tilec.verify.step_checks import StepChecks
from verify.builds import OPTIONS, generated, planned
from verify.here import Here
from verify.plans import node, plan_of, tensor
from verify.planted import planted


@pytest.fixture(autouse=True)
def here(monkeypatch):
    for module in (native, verdict, references):
        monkeypatch.setattr(module, "Remote", Here)


def verified(folder, nodes, inputs, kind=TensorProto.FLOAT, weights=()):
    """The outcome of a model of these nodes, whose output is `y`."""
    ports = [helper.make_tensor_value_info(name, kind, shape) for name, shape in inputs.items()]
    path = models.save(folder / "m.onnx", nodes, ports, [onnx.ValueInfoProto(name="y")], weights, opset=22)
    imported = import_model(path)
    if imported.owned_file:
        (folder / imported.owned_file).write_bytes(b"".join(imported.weights))
    plan = schedule(imported.graph, resolve_device("host"), ScheduleOptions())
    kernels = generated(plan, folder, "host").body
    return verify_native(folder, plan, kernels, path, OPTIONS, lambda _done, _total: None)


def test_an_output_that_hangs_on_rounding_is_ill_conditioned(tmp_path):
    """The softmax of products of thousands: the last digits of its operands decide."""
    large = helper.make_node("Mul", ["x", "k"], ["l"])
    rows = [helper.make_node("MatMul", ["l", "w"], ["s"]), helper.make_node("Softmax", ["s"], ["p"])]
    last = helper.make_node("MatMul", ["p", "v"], ["y"])
    generator = np.random.default_rng(0)
    column = generator.standard_normal((256, 1)).astype(np.float32)
    alike = column + 1e-6 * generator.standard_normal((256, 8))
    weights = {"k": np.float32(3e4), "w": alike, "v": generator.standard_normal((8, 4))}
    tensors = [onnx.numpy_helper.from_array(np.asarray(v, np.float32), n) for n, v in weights.items()]
    outcome = verified(tmp_path, [large, *rows, last], {"x": [4, 256]}, weights=tensors)
    assert outcome.failure is None
    assert outcome.report["outputs"]["y"]["verdict"] == "ill-conditioned"
    assert outcome.report["groups"]["verified"] == outcome.report["groups"]["total"]


def test_a_model_that_onnxruntime_cannot_load_has_another_reference(tmp_path):
    outcome = verified(tmp_path, [helper.make_node("Tan", ["x"], ["y"])], {"x": [7]}, TensorProto.DOUBLE)
    assert outcome.failure is None
    assert outcome.report["reference"] in ("onnx", "graph")
    assert "cannot load" in outcome.report["reference_because"]


def test_inputs_that_onnxruntime_refuses_are_no_mismatch(tmp_path):
    """Integers divided by zeros."""
    outcome = verified(tmp_path, [helper.make_node("Div", ["a", "b"], ["y"])], {"a": [9], "b": [9]}, TensorProto.INT32)
    assert outcome.failure is None
    assert outcome.report["reference"] == "graph"


def test_groups_are_checked_where_they_stand(tmp_path):
    model, plan = planned(tmp_path, "host")
    kernels = generated(plan, tmp_path, "host").body
    right = verify_native(tmp_path, plan, kernels, model, OPTIONS, lambda _done, _total: None)
    assert (right.failure, right.report["groups"]) == (None, {"total": 2, "verified": 2})
    assert right.report["outputs"]["y"]["verdict"] in ("exact", "within rounding")


def test_an_operand_that_another_group_overwrites_is_found():
    """The memory of h changes between the group that stores it and the one that reads it."""
    nodes = [node("h[i] = x[i] * 2.0", {"i": 4}), node("y[i] = h[i] + 1.0", {"i": 4})]
    plan = plan_of(nodes, {"x": tensor("f32", 4)}, ["y"])
    checks = StepChecks(plan, {name: name for name in "xhy"}, {}, ())
    memory = {name: np.zeros(4, np.float32) for name in "xhy"}
    checks.before(plan.groups[0].name, memory.get)
    checks.after(plan.groups[0].name, memory.get)
    memory["h"][2] = 1
    checks.before(plan.groups[1].name, memory.get)
    assert (checks.stale.group, checks.stale.tensor) == (plan.groups[1].name, "h")


def test_a_kernel_that_swallows_nan_is_found(tmp_path):
    def swallow(value, each):
        return Call("where", (Call("isnan", (value,)), Const(0.0), value)) if each.name == "h2" else None

    model, plan = planned(tmp_path, "host")
    kernels = generated(next(planted(plan, swallow)), tmp_path, "host").body
    outcome = verify_native(tmp_path, plan, kernels, model, OPTIONS, lambda _done, _total: None)
    assert "instead of nan" in str(outcome.failure)
