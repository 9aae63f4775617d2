"""A cross-section of ONNX's own node cases: each passes, and onnxruntime has no part in it."""

from functools import cache

import pytest

from tests.conformance.cases import Case, collect
from tests.conformance.judge import judged

CASES = [
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


@cache
def by_name() -> dict[str, Case]:
    """ONNX's cases, which take seconds to collect."""
    return {case.name: case for case in collect()}


@pytest.mark.parametrize("name", CASES)
def test_case_is_native(name):
    result = judged(by_name()[f"test_{name}"], "tilec")
    assert (result.status, result.native, result.reason) == ("passed", True, "")
