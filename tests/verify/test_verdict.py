"""The verdict on outputs beyond their tolerance, and the reference where onnxruntime has no answer."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tilec.errors import TilecError
from tilec.progress import unseen
from tilec.spec.recipe import VerifyOptions
from tilec.verify import native, references, verdict
from tilec.verify.cases import cases_of
from tilec.verify.defined_model import DOMAIN, in_definitions
from tilec.verify.look_budget import numpy_operations
from tilec.verify.native import verify_native
from tilec.verify.remote import RemoteError
from tilec.verify.runners import DefinedReference, DoubleReference, OnnxReference
from tilec.verify.step_checks import StepChecks
from verify.builds import OPTIONS, compiled, generated, ill_conditioned, planned
from verify.here import Here
from verify.plans import node, plan_of, tensor
from verify.planted import planted, swallows_nan


@pytest.fixture(autouse=True)
def here(monkeypatch):
    for module in (native, verdict, references):
        monkeypatch.setattr(module, "Remote", Here)


def verified(folder, nodes, inputs, kind=TensorProto.FLOAT, weights=(), advance=unseen):
    """The outcome of a model of these nodes, whose output is `y`."""
    path, plan, kernels = compiled(folder, nodes, inputs, kind, weights)
    return verify_native(folder, plan, kernels, path, OPTIONS, advance)


def test_an_output_that_hangs_on_rounding_is_ill_conditioned(tmp_path):
    steps = []
    outcome = verified(tmp_path, *ill_conditioned(), lambda done, total, step="": steps.append((step, done / total)))
    assert outcome.failure is None
    for step in ("reference", "second looks", "compare outputs"):
        shares = [share for name, share in steps if name == step]
        assert len(shares) >= len(OPTIONS.seeds)
        assert shares[-1] == 1 or step == "second looks"
    assert outcome.report["outputs"]["y"]["verdict"] == "ill-conditioned"
    assert outcome.report["groups"]["verified"] == outcome.report["groups"]["total"]


def test_a_model_that_onnxruntime_cannot_load_has_another_reference(tmp_path):
    outcome = verified(tmp_path, [helper.make_node("Tan", ["x"], ["y"])], {"x": [7]}, TensorProto.DOUBLE)
    assert outcome.failure is None
    assert outcome.report["reference"] in ("onnx", "graph")
    assert "cannot load" in outcome.report["reference_because"]


def test_a_reference_that_rounds_nearly_all_that_is_allowed_is_none(tmp_path):
    """ONNX's reference evaluator adds bfloat16 in bfloat16: its sum stops growing, and a right one is far off."""
    nodes = [helper.make_node("ReduceL1", ["x"], ["y"])]
    outcome = verified(tmp_path, nodes, {"x": [128, 7]}, TensorProto.BFLOAT16)
    assert outcome.failure is None
    assert outcome.report["reference"] == "graph"


def test_inputs_that_onnxruntime_refuses_are_no_mismatch(tmp_path):
    """Integers divided by zeros, which one of the two draws of two elements has: the other keeps its reference."""
    outcome = verified(tmp_path, [helper.make_node("Div", ["a", "b"], ["y"])], {"a": [2], "b": [2]}, TensorProto.INT32)
    assert outcome.failure is None
    assert outcome.report["reference"] == "onnxruntime"
    (refused,) = outcome.report["refused"]
    assert refused["reference"] == "graph"
    assert "division" in refused["because"].lower()


class Dying(references.Reference):
    """A reference whose process ends, as one does that an abort ends, when it is asked for the third time."""

    asked = 0

    def attempted(self, feeds, names=None):
        Dying.asked += 1
        if Dying.asked % 3 == 0:
            raise RemoteError("onnxruntime was ended by signal SIGABRT")
        return super().attempted(feeds, names)


@pytest.mark.parametrize(("seeds", "known"), [(4, 3), (9, 4)], ids=["once", "again and again"])
def test_a_reference_that_dies_has_no_answer_for_that_case_alone(tmp_path, monkeypatch, seeds, known):
    """The others' outputs stay those of onnxruntime, in a process of its own; after two deaths it is asked no more."""
    monkeypatch.setattr(references, "Reference", Dying)
    monkeypatch.setattr(Dying, "asked", 0)
    path, plan, _ = compiled(tmp_path, [helper.make_node("Exp", ["x"], ["y"])], {"x": [7]})
    cases = cases_of(plan, VerifyOptions(seeds=tuple(range(seeds))), path)
    expected = references.expected_outputs(tmp_path, path, cases)
    assert list(expected.references).count("onnxruntime") == known
    assert set(expected.references) == {"onnxruntime", "onnx"}
    assert all(each is not None for each in expected.outputs)
    assert {each["because"] for each in expected.report()["refused"]} == {"onnxruntime was ended by signal SIGABRT"}


def test_cases_without_onnxruntime_are_evaluated_within_a_budget(tmp_path, monkeypatch):
    """The first always is."""
    path, plan, _ = compiled(tmp_path, [helper.make_node("Tan", ["x"], ["y"])], {"x": [7]}, TensorProto.DOUBLE)
    cases = cases_of(plan, VerifyOptions(seeds=(0, 1, 2)), path)
    monkeypatch.setattr(references, "BUDGET", 2 * numpy_operations(plan))
    expected = references.expected_outputs(tmp_path, path, cases)
    assert [each is None for each in expected.outputs] == [False, False, True]
    assert expected.references[2] == "none"
    assert expected.reference != "none"


def test_conversions_that_onnx_leaves_undefined_are_no_mismatch(tmp_path):
    """Negative numbers as uint16: tilec saturates, onnxruntime wraps on x86."""
    cast = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.UINT16)
    outcome = verified(tmp_path, [cast], {"x": [40]}, TensorProto.FLOAT)
    assert outcome.failure is None
    assert outcome.report["outputs"]["y"]["verdict"] in ("exact", "ill-conditioned")


def test_double_precision_decides_where_single_precision_rounds_too_much(tmp_path):
    """onnxruntime's STFT of lengths other than powers of two errs by 1e-5 of the largest value; ONNX's reference
    evaluator has none of a signal `[batch, samples]`."""
    nodes = [
        helper.make_node("STFT", ["x", "step", "window"], ["image"]),
        helper.make_node("ReduceSumSquare", ["image", "last"], ["power"], keepdims=0),
        helper.make_node("Log", ["power"], ["y"]),
    ]
    arrays = {"step": np.array(60), "window": np.hanning(180).astype(np.float32), "last": np.array([-1])}
    weights = [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()]
    outcome = verified(tmp_path, nodes, {"x": [2, 900]}, weights=weights)
    assert outcome.failure is None
    assert outcome.report["outputs"]["y"]["against"] == "onnxruntime in double precision"


def test_definitions_decide_where_a_kernel_leaves_out_a_term(tmp_path):
    """onnxruntime divides the 0 of a constant row by 0, without 1e-9; ONNX's evaluator has no grouped ConvTranspose of
    two dilations."""
    weight = np.random.default_rng(0).standard_normal((5, 4, 1, 3)).astype(np.float32)
    nodes = [
        helper.make_node("MeanVarianceNormalization", ["x"], ["n"]),
        helper.make_node("ConvTranspose", ["n", "w"], ["y"], group=5, dilations=[2, 3], pads=[0, 0, 0, 2]),
    ]
    weights = [onnx.numpy_helper.from_array(weight, "w")]
    outcome = verified(tmp_path, nodes, {"x": [1, 5, 1, 1]}, weights=weights)
    assert outcome.failure is None
    assert outcome.report["outputs"]["y"]["against"] == "onnxruntime by ONNX's definitions"


def test_a_model_of_definitions_means_the_same(tmp_path):
    """Attributes that a node leaves out have the values that ONNX gives them; inner graphs are defined, too."""
    inner = helper.make_graph(
        [helper.make_node("Shrink", ["x"], ["z"])], "g", [], [helper.make_tensor_value_info("z", 1, [4])]
    )
    nodes = [
        helper.make_node("Shrink", ["x"], ["shrunk"], lambd=1.5, bias=0.25),
        helper.make_node("If", ["b"], ["y"], then_branch=inner, else_branch=inner),
    ]
    inputs = [helper.make_tensor_value_info("x", 1, [4]), helper.make_tensor_value_info("b", 9, [])]
    outputs = [helper.make_tensor_value_info(name, 1, [4]) for name in ("shrunk", "y")]
    model = helper.make_model(
        helper.make_graph(nodes, "g", inputs, outputs), opset_imports=[helper.make_opsetid("", 18)], ir_version=8
    )
    assert {node.domain for node in in_definitions(model).graph.node} == {"", DOMAIN}
    onnx.save(model, tmp_path / "m.onnx")
    reference = DefinedReference(tmp_path / "m.onnx")
    feeds = {"x": np.float32([-2, -1, 0.5, 3]), "b": np.array(True)}
    for name, expected in (("shrunk", [-1.75, 0, 0, 2.75]), ("y", [-2, -1, 0, 3])):
        np.testing.assert_allclose(reference.output(name, feeds), expected, rtol=1e-6)


def test_a_model_in_double_precision_means_the_same(tmp_path):
    """Constants, casts, types of results and inner graphs are widened; what has no such kernel has no answer."""
    yes, no = (
        helper.make_graph([helper.make_node(op, ["z"], [op])], op, [], [helper.make_tensor_value_info(op, 1, [3])])
        for op in ("Sin", "Cos")
    )
    nodes = [
        helper.make_node("Cast", ["n"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Constant", [], ["third"], value_float=1 / 3),
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("ConstantOfShape", ["shape"], ["zeros"]),
        helper.make_node("Sum", ["x", "f", "third", "zeros", "w"], ["z"]),
        helper.make_node("If", ["b"], ["y"], then_branch=yes, else_branch=no),
        helper.make_node("Clip", ["z"], ["clipped"]),
        helper.make_node("Conv", ["image", "image"], ["other"]),
    ]
    inputs = [("x", 1, [3]), ("n", 7, [3]), ("b", 9, []), ("image", 1, [1, 1, 2, 2])]
    outputs = [("y", 1, [3]), ("clipped", 1, [3]), ("other", 1, [1, 1, 1, 1])]
    ports = [[helper.make_tensor_value_info(*each) for each in side] for side in (inputs, outputs)]
    weight = onnx.numpy_helper.from_array(np.float32([0.1, 0.2, 0.3]), "w")
    graph = helper.make_graph(nodes, "g", *ports, [weight])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), tmp_path / "m.onnx")
    feeds = {"x": np.float32([1, 2, 3]), "n": np.array([5, 6, 7]), "b": np.array(True)}
    feeds["image"] = np.ones((1, 1, 2, 2), np.float32)
    reference = DoubleReference(tmp_path / "m.onnx")
    wide = [v.astype(np.float64) for v in (feeds["x"], feeds["n"], np.float32(1 / 3), np.float32([0.1, 0.2, 0.3]))]
    z = sum(wide)
    for name, expected in (("y", np.sin(z)), ("clipped", z)):
        found = reference.output(name, feeds)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, expected.astype(np.float32))
    with pytest.raises(TilecError, match="cannot load"):
        reference.output("other", feeds)


def test_onnx_evaluates_only_what_an_output_depends_on(tmp_path):
    """It has no Gelu of onnxruntime's domain."""
    nodes = [helper.make_node("Gelu", ["x"], ["z"], domain="com.microsoft"), helper.make_node("Neg", ["x"], ["y"])]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xzy"]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:])
    domains = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=domains), tmp_path / "m.onnx")
    reference = OnnxReference(tmp_path / "m.onnx")
    feeds = {"x": np.float32([1, 2, 3])}
    np.testing.assert_array_equal(reference.output("y", feeds), -feeds["x"])
    for run in (lambda: reference.output("z", feeds), lambda: reference.run(feeds)):
        with pytest.raises(TilecError, match="cannot run"):
            run()


def test_groups_are_checked_where_they_stand(tmp_path):
    model, plan = planned(tmp_path, "host")
    kernels = generated(plan, tmp_path, "host").body
    right = verify_native(tmp_path, plan, kernels, model, OPTIONS, unseen)
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
    model, plan = planned(tmp_path, "host")
    kernels = generated(next(planted(plan, swallows_nan("h2"))), tmp_path, "host").body
    outcome = verify_native(tmp_path, plan, kernels, model, OPTIONS, unseen)
    assert "instead of nan" in str(outcome.failure)
