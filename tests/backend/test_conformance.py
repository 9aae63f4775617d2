"""Some of ONNX's cases, and their runner: crashes, hangs and wrong answers are results, and tables count them."""

import os
import signal
import sys
import time
from collections import Counter

import numpy as np
import pytest

from tests.conformance.cases import FAMILIES, Case, collect
from tests.conformance.judge import Result, ended, judged
from tests.conformance.pool import run_with
from tests.conformance.table import by_family, by_operator, by_reason
from tilec.errors import UnsupportedError

NATIVE = [
    "abs",
    "add_bcast",
    "and_bcast3v1d",
    "argmax_keepdims_example",
    "averagepool_2d_pads",
    "batchnorm_example",
    "bitwise_and_i16_3d",
    "castlike_FLOAT_to_FLOAT16",
    "castlike_FLOAT_to_BFLOAT16",
    "ceil",
    "clip",
    "concat_3d_axis_negative_2",
    "constantofshape_float_ones",
    "conv_with_strides_padding",
    "convtranspose_dilations",
    "cumsum_2d_axis_1",
    "attention_4d",
    "attention_4d_with_qk_matmul",
    "gridsample_bilinear",
    "resize_downsample_scales_cubic",
    "div_int8",
    "dropout_default",
    "bitcast_float32_to_int32",
    "equal_bcast",
    "erf",
    "expand_dim_changed",
    "flatten_axis2",
    "gather_negative_indices",
    "gather_elements_0",
    "gelu_tanh_1",
    "gemm_all_attributes",
    "globalaveragepool",
    "greater_equal_bcast",
    "group_normalization_epsilon",
    "hardswish",
    "instancenorm_example",
    "isnan",
    "layer_normalization_3d_axis1_epsilon",
    "leakyrelu",
    "lrn",
    "matmul_bcast",
    "max_int64",
    "maxpool_2d_ceil",
    "mean_example",
    "min_int8",
    "swish",
    "hardmax_one_hot",
    "constant_pad",
    "pow_types_int32_float32",
    "prelu_broadcast",
    "reduce_l2_do_not_keepdims_example",
    "reduce_prod_keepdims_random",
    "reshape_reordered_all_dims",
    "resize_upsample_sizes_nearest",
    "round",
    "shape",
    "slice_negative_axes",
    "softmax_axis_1",
    "softplus",
    "rotary_embedding",
    "split_variable_parts_2d_opset18",
    "squeeze_negative_axes",
    "sub_uint8",
    "sum_one_input",
    "tanh",
    "tile",
    "transpose_all_permutations_3",
    "tril",
    "unsqueeze_two_axes",
    "where_long_example",
    "xor3d",
]
"""A cross-section of ONNX's own node cases: each passes, and onnxruntime has no part in it."""


def some() -> list[Case]:
    """Five cases of one operator each."""
    return [case for case in collect() if case.name in ("test_abs", "test_add", "test_and2d", "test_ceil", "test_cos")]


def test_every_family_is_there_and_names_are_unique():
    cases = collect()
    assert {case.family for case in cases} == set(FAMILIES)
    assert len({case.name for case in cases}) == len(cases)
    counts = Counter(case.family for case in cases)
    assert counts["node"] >= 1500
    assert counts["light"] == 9
    expanded = next(case for case in cases if case.name == "test_clip_expanded")
    assert (expanded.operator, expanded.expanded) == ("Clip", True)


@pytest.mark.parametrize("family", FAMILIES)
def test_inputs_and_outputs_fit_the_model(family):
    case = next(case for case in collect() if case.family == family)
    model = case.model()
    stored = {tensor.name for tensor in model.graph.initializer}
    for inputs, outputs in case.data():
        assert len(inputs) == len([info for info in model.graph.input if info.name not in stored])
        assert len(outputs) == len(model.graph.output)


@pytest.mark.slow_cases("attention_4d", "attention_4d_with_qk_matmul", "gridsample_bilinear")
@pytest.mark.parametrize("name", NATIVE)
def test_case_is_native(name):
    case = next(case for case in collect() if case.name == f"test_{name}")
    result = judged(case, "tilec")
    assert (result.status, result.native, result.reason) == ("passed", True, "")


def _judge(case):
    match case.name:
        case "test_abs":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "test_add":
            time.sleep(60)
        case "test_and2d":
            sys.exit(3)
        case "test_cos":
            print("what libraries print is dropped")
    return ended(case, "passed", True)


def test_workers_that_crash_or_hang_are_replaced(capfd):
    results = {result.name: result for result in run_with(some(), _judge, jobs=2, timeout=3)}
    assert {name: (r.status, r.reason) for name, r in results.items()} == {
        "test_abs": ("crashed", "SIGSEGV"),
        "test_add": ("timeout", "no result in 3 s"),
        "test_and2d": ("crashed", "exit code 3"),
        "test_ceil": ("passed", ""),
        "test_cos": ("passed", ""),
    }
    assert capfd.readouterr().out == ""


def test_a_wrong_answer_and_an_error_are_told_apart(monkeypatch):
    import tilec.backend

    class Wrong:
        def run(self, inputs):
            return [np.full_like(inputs[0], 7)]

    case = next(case for case in some() if case.name == "test_ceil")
    monkeypatch.setattr(tilec.backend, "prepare", lambda model: Wrong())
    assert judged(case, "tilec").status == "failed"
    monkeypatch.setattr(tilec.backend, "prepare", lambda model: 1 / 0)
    failed = judged(case, "tilec")
    assert (failed.status, failed.reason) == ("failed", "ZeroDivisionError: division by zero")

    def refuse(model):
        raise UnsupportedError("too wide")

    monkeypatch.setattr(tilec.backend, "prepare", refuse)
    refused = judged(case, "tilec")
    assert (refused.status, refused.reason) == ("refused", "UnsupportedError: too wide")


def test_the_peer_is_judged_in_the_same_way():
    result = judged(next(case for case in some() if case.name == "test_ceil"), "onnxruntime")
    assert (result.status, result.native) == ("passed", False)


RESULTS = [
    Result("a", "node", "Abs", False, "passed", True),
    Result("b", "node", "Abs", False, "passed", False, "Abs: axis 3 of 'x'; Neg: why"),
    Result("c", "node", "Add", True, "failed", False, "off by 0.25"),
    Result("d", "light", "d", False, "crashed", False, "SIGSEGV"),
]


def test_tables_count_by_family_operator_and_reason():
    assert by_family(RESULTS).splitlines()[2:] == [
        "| node | 2 | 2 | 1 | 0 | 0 | 0 | 0 |",
        "| node, expanded | 1 | 0 | 0 | 1 | 0 | 0 | 0 |",
        "| light | 1 | 0 | 0 | 0 | 0 | 1 | 0 |",
        "| all | 4 | 2 | 1 | 1 | 0 | 1 | 0 |",
    ]
    peer = {name: Result(name, "", "", False, "failed" if name == "d" else "passed") for name in "abcd"}
    assert [line.split(" | ")[-2:] for line in by_family(RESULTS, peer).splitlines()] == [
        ["peer", "native of these |"],
        ["|---" * 10 + "|"],
        ["2", "1 |"],
        ["1", "0 |"],
        ["0", "0 |"],
        ["3", "1 |"],
    ]
    assert by_operator(RESULTS).splitlines()[2:] == ["| Abs | 2 | 2 | 1 | 0 | 0 | 0 | 0 |"]
    assert set(by_reason(RESULTS).splitlines()[2:]) == {
        "| fallback | 1 | Abs: axis N of '...' |",
        "| fallback | 1 | Neg: why |",
        "| failed | 1 | off by N |",
        "| crashed | 1 | SIGSEGV |",
    }
