"""Parameters and multiply-adds of every model at its real size, against what was published."""

import math
from functools import cache
from unittest import mock

import numpy as np
import onnx
import pytest

from tilec import zoo

PARAMETERS = {
    "mobilenet-v2": 3_504_872,
    "shufflenet-v2": 2_278_604,
    "resnet-50": 25_557_032,
    "vgg16": 138_357_544,
    "unet": 31_037_698,
    "bert-base": 109_482_240,
    "gpt2": 124_439_808,
    "vit-s32": 22_878_952,
    "vit-b16": 86_567_656,
    "swin-t": 28_288_354,
    "mobilevit-s": 5_578_632,
    "nafnet": 288_691,
    "restormer": 26_126_644,
    "bsrn": 352_400,
    "conformer": 34_940_928,
    "nerf-mlp": 24_768,
    "llama-layer-prefill": 44_044_288,
    "llama-layer-decode": 44_044_288,
}
"""Trained values of each model, as of the released networks or counted layer by layer."""

PUBLISHED = {
    "mobilenet-v2": (3.5e6, 0.05e6),  # torchvision; Sandler et al. 2018, Table 4, has 3.4 M
    "shufflenet-v2": (2.3e6, 0.05e6),  # Ma et al. 2018, Table 8
    "resnet-50": (25.6e6, 0.05e6),  # torchvision
    "vgg16": (138e6, 0.5e6),  # Simonyan and Zisserman 2014, Table 2
    "bert-base": (110e6, 1e6),  # Devlin et al. 2018, Section 3
    "gpt2": (124e6, 0.5e6),  # as released; Radford et al. 2019, Table 2, says 117 M
    "vit-b16": (86e6, 1e6),  # Dosovitskiy et al. 2020, Table 1
    "swin-t": (28.3e6, 0.05e6),  # Liu et al. 2021, Table 1, rounds to 29 M
    "mobilevit-s": (5.6e6, 0.05e6),  # Mehta and Rastegari 2021, Figure 6
    "restormer": (26.13e6, 0.005e6),  # Zamir et al. 2021, as released
    "bsrn": (352e3, 0.5e3),  # Li et al. 2022, Table 4
}
"""Parameters in papers, and what they were rounded by."""

OPERATIONS = {
    "mobilenet-v2": (0.30e9, 0.005e9),  # Sandler et al. 2018, Table 4
    "shufflenet-v2": (0.146e9, 0.002e9),  # Ma et al. 2018, Table 8
    "resnet-50": (4.09e9, 0.005e9),  # torchvision, stride in the 3x3
    "vgg16": (15.47e9, 0.005e9),  # torchvision
    "gpt2": (12 * (12 * 128 * 768**2 + 2 * 128**2 * 768), 0),
    "vit-b16": (17.56e9, 0.005e9),  # torchvision; DeiT's Table 5 has 17.6 G
    "swin-t": (4.5e9, 0.05e9),  # Liu et al. 2021, Table 1
    "mobilevit-s": (2.0e9, 0.05e9),  # Mehta and Rastegari 2022, Table 2
    "restormer": (140.99e9 + 13.892e9, 0.01e9),  # as released, and the products of attention, which that left out
    "conformer": (12 * 512 * (11 * 512**2 + 2 * 512 * 512 + 31 * 512), 0),
}
"""Multiply-adds as published, and what they were rounded by; by a formula where nothing was."""

DERIVED = ("constant_", "running_", "position_ids", "_cache", "causal_mask", "attn_mask", "relative_position_index")
"""Parts of the names of tensors that are not trained."""


def _weightless(name: str) -> onnx.ModelProto:
    """A model whose weights are inputs without values."""
    with mock.patch("tilec.zoo.weights.uniform", lambda *about, **_: np.zeros(about[2], np.float32)):
        model = zoo.build(name)
    for tensor in [t for t in model.graph.initializer if t.data_type == onnx.TensorProto.FLOAT]:
        model.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
        model.graph.initializer.remove(tensor)
    return model


def _trained(model: onnx.ModelProto) -> int:
    """Trained values of a model without weights, all in inputs with names as modules have."""
    weights = [value for value in model.graph.input if "." in value.name or value.name in ("cls_token", "pos_embed")]
    kept = [value for value in weights if not any(part in value.name for part in DERIVED)]
    return sum(math.prod(dim.dim_value for dim in value.type.tensor_type.shape.dim) for value in kept)


@cache
def operations(name: str) -> tuple[int, int]:
    """Multiply-adds of a model, and biases that its convolutions add."""
    graph = onnx.shape_inference.infer_shapes(_weightless(name), data_prop=True).graph
    shapes = {
        value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in [*graph.value_info, *graph.input, *graph.output]
    }
    products = [node for node in graph.node if node.op_type in ("Conv", "ConvTranspose", "Gemm", "MatMul")]
    biases = sum(math.prod(shapes[n.output[0]]) for n in products if n.op_type == "Conv" and len(n.input) == 3)
    return sum(_multiply_adds(node, shapes) for node in products), biases


def _multiply_adds(node: onnx.NodeProto, shapes: dict[str, list[int]]) -> int:
    left, right, result = shapes[node.input[0]], shapes[node.input[1]], shapes[node.output[0]]
    assert 0 not in result, node.name
    if node.op_type == "ConvTranspose":
        return math.prod(left) * math.prod(right[1:])
    each = math.prod(right[1:]) if node.op_type == "Conv" else left[-1]
    return math.prod(result) * each


@pytest.mark.slow_cases("bert-base", "gpt2", "vgg16")
@pytest.mark.parametrize("name", zoo.names())
def test_parameters(name: str) -> None:
    trained = _trained(_weightless(name))
    assert trained == PARAMETERS[name]
    published, rounding = PUBLISHED.get(name, (trained, 0))
    assert abs(trained - published) <= rounding


@pytest.mark.parametrize("name", OPERATIONS)
def test_multiply_adds(name: str) -> None:
    published, rounding = OPERATIONS[name]
    assert abs(operations(name)[0] - published) <= rounding


def test_multiply_adds_of_super_resolution() -> None:
    """Li et al. 2022, Table 4, for 320x180 pixels; biases count."""
    products, biases = operations("bsrn")
    assert (products + biases) * (320 * 180) / 256**2 == pytest.approx(19.4e9, abs=0.05e9)
