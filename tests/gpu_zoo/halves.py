"""A model of floats in half precision."""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

FLOAT = TensorProto.FLOAT


def as_halves(model: onnx.ModelProto, element: int) -> onnx.ModelProto:
    """The model with inputs, outputs, weights and constants of a half type, all but those that an operator wants in
    f32, as Resize does its scales."""
    graph, opsets = model.graph, {each.domain: each.version for each in model.opset_import}
    single = {name for node in graph.node for name in _single(node, opsets)}
    for tensor in graph.initializer:
        if tensor.name not in single:
            _convert(tensor, element)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name == "to" and attribute.i == FLOAT:
                attribute.i = element
            elif attribute.name == "value" and not single.intersection(node.output):
                _convert(attribute.t, element)
    for port in (*graph.input, *graph.output, *graph.value_info):
        if port.type.tensor_type.elem_type == FLOAT and port.name not in single:
            port.type.tensor_type.elem_type = element
    return model


def _single(node: onnx.NodeProto, opsets: dict[str, int]) -> Iterator[str]:
    """Operands of a node that may not have a half type."""
    schema = onnx.defs.get_schema(node.op_type, opsets[node.domain], node.domain)
    for position, name in enumerate(node.input):
        slot = schema.inputs[min(position, len(schema.inputs) - 1)]
        if "tensor(float)" in slot.types and "tensor(float16)" not in slot.types:
            yield name


def _convert(tensor: onnx.TensorProto, element: int) -> None:
    if tensor.data_type != FLOAT:
        return
    values, kind = numpy_helper.to_array(tensor), np.float16 if element == TensorProto.FLOAT16 else ml_dtypes.bfloat16
    most = float(ml_dtypes.finfo(kind).max)
    half = np.where(np.isinf(values), values, np.clip(values, -most, most)).astype(kind)
    name = tensor.name
    tensor.CopyFrom(onnx.helper.make_tensor(name, element, values.shape, half.tobytes(), raw=True))
