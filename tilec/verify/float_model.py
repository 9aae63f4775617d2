"""The float model behind a quantised one: QuantizeLinear followed by DequantizeLinear only limits the range.

It is what quantised numbers are accurate to, or not; whether kernels compute these numbers is another question.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from tilec.verify.inputs import Array

_DOMAINS = ("", "ai.onnx", "com.microsoft")


def dequantises(model: ModelProto) -> bool:
    """Whether a node of the model dequantises, as each has that `without_rounding` replaces."""
    return any(_is(node, "DequantizeLinear") for node in model.graph.node)


def without_rounding(model: ModelProto, folder: Path) -> ModelProto | None:
    """The model with its pairs of QuantizeLinear and DequantizeLinear of equal parameters replaced by limits of the
    range, which some of them stand for a Relu with; None for a model without such pairs. `folder` holds its data."""
    constants = _constants(model, folder)
    nodes = {name: node for node in model.graph.node for name in node.output}
    replaced: dict[int, list[NodeProto]] = {}
    limits: list[TensorProto] = []
    for number, node in enumerate(model.graph.node):
        pair = nodes.get(node.input[0]) if _is(node, "DequantizeLinear") else None
        if pair is None or not _is(pair, "QuantizeLinear") or not _same(pair, node, constants):
            continue
        ends = _range(pair, constants)
        if ends is None:
            continue
        least, greatest = (f"{node.output[0]}_{each}" for each in ("least", "greatest"))
        limits += [numpy_helper.from_array(end, name) for end, name in zip(ends, (least, greatest), strict=True)]
        raised = f"{node.output[0]}_raised"
        replaced[number] = [
            helper.make_node("Max", [pair.input[0], least], [raised]),
            helper.make_node("Min", [raised, greatest], [node.output[0]]),
        ]
    if not replaced:
        return None
    result = ModelProto()
    result.CopyFrom(model)
    del result.graph.node[:]
    for number, node in enumerate(model.graph.node):
        result.graph.node.extend(replaced.get(number, [node]))
    result.graph.initializer.extend(limits)
    return result


def with_exact_products(model: ModelProto) -> ModelProto:
    """The model without leave to round the activations of products."""
    result = ModelProto()
    result.CopyFrom(model)
    for node in result.graph.node:
        kept = [each for each in node.attribute if each.name != "accuracy_level"]
        del node.attribute[:]
        node.attribute.extend(kept)
    return result


def _is(node: NodeProto, op: str) -> bool:
    return node.op_type == op and node.domain in _DOMAINS


def _constants(model: ModelProto, folder: Path) -> dict[str, Array]:
    """Scales and zero points of the model: constants that such nodes read."""
    wanted = {name for node in model.graph.node if _is(node, "QuantizeLinear") for name in node.input[1:]}
    wanted |= {name for node in model.graph.node if _is(node, "DequantizeLinear") for name in node.input[1:]}
    found = {t.name: numpy_helper.to_array(t, str(folder)) for t in model.graph.initializer if t.name in wanted}
    for node in model.graph.node:
        value = next((each.t for each in node.attribute if each.name == "value"), None)
        if node.op_type == "Constant" and value is not None and node.output[0] in wanted:
            found[node.output[0]] = numpy_helper.to_array(value, str(folder))
    return found


def _same(one: NodeProto, other: NodeProto, constants: Mapping[str, Array]) -> bool:
    """Whether two nodes have the same scale, zero point and axis."""
    for a, b in ((one.input[1], other.input[1]), (_zero(one), _zero(other))):
        if a != b and not (a in constants and b in constants and np.array_equal(constants[a], constants[b])):
            return False
    axes = [{each.name: each.i for each in node.attribute} for node in (one, other)]
    return axes[0].get("axis", 1) == axes[1].get("axis", 1) and not any(each.get("block_size") for each in axes)


def _zero(node: NodeProto) -> str:
    return node.input[2] if len(node.input) > 2 else ""


def _range(node: NodeProto, constants: Mapping[str, Array]) -> tuple[Array, Array] | None:
    """The least and the greatest value of a quantiser; None of several scales, and of parameters that are no
    constants."""
    scale, zero = constants.get(node.input[1]), constants.get(_zero(node))
    if scale is None or scale.size != 1 or (zero is None and _zero(node)):
        return None
    dtype = np.dtype(np.uint8) if zero is None else zero.dtype
    stored = next((each.i for each in node.attribute if each.name == "output_dtype"), 0)
    if zero is None and stored:
        dtype = helper.tensor_dtype_to_np_dtype(stored)
    kind: Any = ml_dtypes.finfo if "float" in dtype.name else ml_dtypes.iinfo
    codes = kind(dtype)
    offset = np.zeros(1) if zero is None else zero.astype(np.float64)
    ends = [(float(each) - offset) * scale.astype(np.float64) for each in (codes.min, codes.max)]
    return ends[0].reshape(()).astype(scale.dtype), ends[1].reshape(()).astype(scale.dtype)
