"""Some of ONNX's cases with every size open, and the sweep that runs them: what it proposes, judges and counts."""

from __future__ import annotations

import os
import signal

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.conformance.cases import Case, collect
from tests.conformance.judge import Result
from tests.open_conformance import judge
from tests.open_conformance.__main__ import sampled
from tests.open_conformance.judge import judged_open
from tests.open_conformance.opened import opened, resized
from tests.open_conformance.other_sizes import KINDS, other_sizes, repeated
from tests.open_conformance.references import References, in_child
from tests.open_conformance.table import behind, by_operator
from tilec.ir.graph import Placement

RUN = ["add_bcast", "concat_2d_axis_1", "gemm_beta"]
"""Cases that are compiled and run at all sizes."""

IMPORTED = [
    "argmax_keepdims_example",
    "averagepool_2d_pads",
    "batchnorm_example",
    "elu",
    "gru_batchwise",
    "split_equal_parts_1d_opset13",
    "flatten_axis2",
    "gather_elements_0",
    "layer_normalization_3d_axis1_epsilon",
    "lrn",
    "matmul_bcast",
    "pow_bcast_array",
    "lstm_defaults",
    "softmax_axis_1",
    "transpose_all_permutations_3",
    "where_example",
]


def case_of(name: str) -> Case:
    return next(case for case in collect() if case.name == f"test_{name}")


@pytest.mark.feature("B01")
@pytest.mark.parametrize("name", RUN)
def test_a_case_is_native_and_right_at_all_sizes(name: str) -> None:
    result = judged_open(case_of(name))
    assert (result.status, result.native, result.reason) == ("passed", True, "")


@pytest.mark.parametrize("name", IMPORTED)
def test_a_case_is_native_with_open_sizes(name: str) -> None:
    result = judged_open(case_of(name), import_only=True)
    assert (result.status, result.native, result.reason) == ("imported", True, "")


def product() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    shapes = {"a": (2, 3), "b": (3, 4)}
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, 4))
    graph = helper.make_graph([helper.make_node("MatMul", ["a", "b"], ["y"])], "g", inputs, [output])
    feeds = {name: np.arange(np.prod(shape), dtype=np.float32).reshape(shape) for name, shape in shapes.items()}
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), feeds


def test_every_dimension_of_an_input_is_a_symbol() -> None:
    model, feeds = product()
    case = opened(model, feeds)
    assert case.shapes == {"a": ("a_d0", "a_d1"), "b": ("b_d0", "b_d1")}
    assert case.sizes == {"a_d0": 2, "a_d1": 3, "b_d0": 3, "b_d1": 4}
    assert not case.model.graph.output[0].type.tensor_type.HasField("shape")
    grown = resized(feeds, case, {**case.sizes, "a_d0": 3})["a"]
    np.testing.assert_array_equal(grown, [[0, 1, 2], [3, 4, 5], [0, 1, 2]])


def test_sizes_change_together_where_they_are_equal() -> None:
    model, feeds = product()
    sizes = opened(model, feeds).sizes

    def legal(each: dict[str, int]) -> bool:
        return each["a_d1"] == each["b_d0"]

    found = other_sizes(sizes, legal)
    assert len(found) == len(KINDS)
    assert found[0] == dict.fromkeys(sizes, 1)
    assert found[1] == dict.fromkeys(sizes, 0)
    assert found[2] == {"a_d0": 5, "a_d1": 7, "b_d0": 7, "b_d1": 9}
    fixed = other_sizes(sizes, lambda each: legal(each) and each["a_d0"] == 2 and each["a_d1"] == 3)
    assert [each["b_d1"] for each in fixed] == [1, 0, 9, 16]


def test_a_wrong_answer_at_another_size_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    import tilec.backend.build

    class Wrong:
        """Right at the case's sizes alone."""

        inputs = ()
        placement = Placement(1, 1, ())

        @property
        def session(self) -> Wrong:
            return self

        def run(self, _feeds: object) -> dict[str, np.ndarray]:
            _, outputs = case.data()[0]
            return dict(zip([info.name for info in case.model().graph.output], outputs, strict=True))

    case = case_of("ceil")
    monkeypatch.setattr(tilec.backend.build, "compiled", lambda model, strict: Wrong())
    result = judged_open(case)
    assert (result.status, result.native) == ("failed", False)
    assert result.reason.endswith("at x_d0=1, x_d1=1, x_d2=1")


def test_a_case_that_is_not_native_with_its_sizes_is_left_out() -> None:
    assert judged_open(case_of("nonzero_example"), import_only=True).status == judge.LEFT_OUT


def test_the_table_counts_what_is_lost() -> None:
    results = [
        Result("a", "node", "Abs", False, "passed", True, seconds=1.5),
        Result("b", "node", "Abs", False, "passed", False, "Abs: the size n | m"),
        Result("c", "node", "Add", False, "failed"),
        Result("d", "node", "Add", False, "refused"),
        Result("e", "node", "Add", False, "timeout"),
        Result("f", "node", "Add", False, judge.LEFT_OUT),
    ]
    assert by_operator(results).splitlines()[2:] == [
        "| Abs | 2 | 1 | 1 | 0 | 0 | 0 | 1.5 |",
        "| Add | 3 | 0 | 0 | 1 | 1 | 1 | 0.0 |",
        "| all | 5 | 1 | 1 | 1 | 1 | 1 | 1.5 |",
    ]
    assert behind(results).splitlines()[2] == "| b | fallback | Abs: the size n / m |"
    assert len(behind(results).splitlines()) == 6


def test_a_peer_that_dies_accepts_nothing() -> None:
    assert in_child(lambda: [1]) == [1]
    assert in_child(lambda: os.kill(os.getpid(), signal.SIGKILL)) is None


def test_a_peer_rounds_to_16_bits_at_the_end_only() -> None:
    one = numpy_helper.from_array(np.float16(1), "one")
    nodes = [helper.make_node("Add", ["x", "one"], ["more"]), helper.make_node("Sub", ["more", "one"], ["y"])]
    ports = [[helper.make_tensor_value_info(name, TensorProto.FLOAT16, [2])] for name in "xy"]
    graph = helper.make_graph(nodes, "g", *ports, [one])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    x = np.float16([1e-4, 0.3])
    *rounded, single = References(model, {"x": x}, ["y"]).expected({"x": x})
    assert rounded[-1][0][0] == 0
    assert single[0].dtype == np.float16
    np.testing.assert_allclose(single[0], x, rtol=1e-3)


def test_nothing_is_empty_that_may_not_grow() -> None:
    """An operator without regions looks at no coordinates: their number is 4 all the same."""

    def legal(each: dict[str, int]) -> bool:
        return each["rois_d0"] == 0 or each["rois_d1"] == 4

    found = other_sizes({"rois_d0": 3, "rois_d1": 4}, legal)
    assert [each["rois_d1"] for each in found] == [4] * len(KINDS)
    assert [each["rois_d0"] for each in found] == [1, 0, 7, 12]


def test_an_operand_is_repeated_where_its_size_may_be_1_but_not_larger() -> None:
    def legal(each: dict[str, int]) -> bool:
        return each["bias_d0"] in (1, each["x_d1"])

    sizes = {"x_d0": 3, "x_d1": 4, "bias_d0": 4}
    assert other_sizes(sizes, legal)[-1] == {**sizes, "bias_d0": 1}
    assert repeated({"x_d0": 3, "x_d1": 4}, lambda _: True) is None


def test_samples_have_cases_of_every_operator_first() -> None:
    cases = [case for case in collect() if case.operator in ("Add", "Abs", "Where")]
    (whole, half) = (sampled(cases, count) for count in (1000, 1))
    assert {case.name for case in whole} == {case.name for case in cases}
    assert sorted(case.operator for case in half) == ["Abs", "Add", "Where"]
    assert [case.operator for case in sampled(cases, 2)][:3] == [case.operator for case in half]


def test_inputs_are_counted_at_any_sizes() -> None:
    case = case_of("gather_0")
    inputs, _ = case.data()[0]
    model = case.model()
    feeds = dict(zip([info.name for info in model.graph.input], inputs, strict=True))
    free = opened(model, feeds, {"data_d1"})
    assert free.elements(free.sizes) == max(each.size for each in inputs)
    assert free.elements({**free.sizes, "data_d0": 100}) == 100 * inputs[0].size // inputs[0].shape[0]
