"""The verdict on accuracy: told of every model with a float model behind it, judged where the recipe asks for it."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tilec.cli.summary import verified_line
from tilec.spec.recipe import AccuracyOptions, VerifyOptions
from tilec.verify.accuracy import distance, within_accuracy
from tilec.verify.float_model import without_rounding
from tilec.verify.outcome import Outcome
from tilec.verify.stage import verify
from verify.builds import generated
from verify.here import in_this_process
from verify.test_quantised_verdict import built, network


def pair(step, zero, shared=True, axis=None):
    """A product between two pairs of QuantizeLinear and DequantizeLinear."""
    weights = [numpy_helper.from_array(np.float32(step), "s"), numpy_helper.from_array(zero, "z")]
    weights += [numpy_helper.from_array(np.float32(step) * (1 if shared else 2), "t")]
    weights += [numpy_helper.from_array(np.eye(4, dtype=np.float32) * 3, "w")]
    more = {} if axis is None else {"axis": axis}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], **more),
        helper.make_node("DequantizeLinear", ["q", "t", "z"], ["d"], **more),
        helper.make_node("MatMul", ["d", "w"], ["y"]),
    ]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 4]) for name in "xy"]
    graph = helper.make_graph(nodes, "pair", ports[:1], ports[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


@pytest.mark.parametrize(
    ("zero", "least", "greatest"),
    [
        (np.uint8(0), 0, 255),
        (np.uint8(128), -128, 127),
        (np.int8(-3), -125, 130),
        (np.array(0).astype(ml_dtypes.float8_e5m2), -57344, 57344),
    ],
)
def test_pairs_limit_their_range_and_round_no_more(tmp_path, zero, least, greatest):
    x = np.float32([[-1e5, -1.234, 0.111, 3.333], [0, 1e5, 12.3456, np.nan]])
    floats = without_rounding(pair(0.5, zero), tmp_path)
    result = ReferenceEvaluator(floats).run(None, {"x": x})[0]
    np.testing.assert_allclose(result[0], np.clip(x[0], least / 2, greatest / 2) * 3, rtol=1e-6)
    assert np.isnan(result[1]).all()


def test_what_rounds_between_other_types_of_numbers_stays(tmp_path):
    zeros = np.zeros(4, np.uint8)
    for model in (
        pair(0.5, np.uint8(0), shared=False),
        pair(np.full(4, 0.5), zeros, axis=1),
        onnx.helper.make_model(helper.make_graph([], "empty", [], [])),
    ):
        assert without_rounding(model, tmp_path) is None


def test_distances_are_relative_to_the_float_model():
    exact = np.float32([3, 4, np.inf])
    assert distance(exact, exact).relative == 0.0
    assert distance(np.float32([3, 4.5, np.inf]), exact).json() == {"largest": 0.12, "relative": 0.1}
    assert distance(np.float32([3, 4, 1]), exact).relative == np.inf
    assert distance(np.zeros(0), np.zeros(0)).relative == 0.0
    assert distance(np.ones(1), np.zeros(1)).relative == np.inf


@pytest.mark.feature("W45")
def test_accuracy_is_told_and_judged_where_it_is_asked_for(tmp_path):
    model = network(tmp_path / "m.onnx")
    plan = built(tmp_path, model)
    kernels = generated(plan, tmp_path, "host").body

    def outcome(**options):
        with in_this_process():
            return verify(tmp_path, plan, kernels, model, VerifyOptions(seeds=(0,), **options))

    told = outcome()
    far = told.report["accuracy"]["outputs"]["y"]["relative"]
    assert told.failure is None
    assert 1e-3 < far < 0.1
    assert told.report["implementation"] == "pass"
    assert f"accuracy: y {far:.1e} from the float model" in verified_line(told.report)
    wide = outcome(accuracy=AccuracyOptions(relative=2 * far))
    assert (wide.failure, wide.report["accuracy"]["verdict"]) == (None, "pass")
    narrow = outcome(accuracy=AccuracyOptions(relative=far / 2))
    assert "from the float model" in narrow.failure
    verdicts = [narrow.report[key] for key in ("implementation", "verdict")]
    assert verdicts == ["pass", "mismatch"]


def test_accuracy_without_a_float_model_is_refused():
    outcome = Outcome({"verdict": "pass", "verified_on": "host"}, {})
    assert within_accuracy(outcome, None).report == outcome.report
    refused = within_accuracy(outcome, AccuracyOptions(relative=0.1))
    assert refused.report["verdict"] == "refused"
    assert "no float model" in refused.failure
