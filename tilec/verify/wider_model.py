"""A model in wider types: what its results are where its own precision rounds too much to tell.

onnxruntime's kernels of single precision err, too, some far more than their operator demands. Its kernels of double
precision have the same meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from tilec.verify.input_choices import nested_graphs

_TYPES = frozenset({"to", "dtype"})
"""Attributes that are the type of a result."""


DOUBLE: Mapping[int, int] = {TensorProto.FLOAT: TensorProto.DOUBLE}
"""Double precision in place of single."""


def widened(model: ModelProto, wide: Mapping[int, int] = DOUBLE) -> ModelProto:
    """The model with wider types of elements, each in the place of one: inputs, outputs, constants and casts."""
    result = ModelProto()
    result.CopyFrom(model)
    for graph in nested_graphs(result.graph):
        _widen(graph, wide)
    for function in result.functions:
        for node in function.node:
            for graph in _graphs(node):
                for each in nested_graphs(graph):
                    _widen(each, wide)
        _widen_nodes(function.node, wide)
    return result


def _widen(graph: GraphProto, wide: Mapping[int, int]) -> None:
    for port in (*graph.input, *graph.output, *graph.value_info):
        _widen_port(port, wide)
    for tensor in graph.initializer:
        _widen_tensor(tensor, wide)
    _widen_nodes(graph.node, wide)


def _widen_port(port: ValueInfoProto, wide: Mapping[int, int]) -> None:
    if port.type.WhichOneof("value") == "tensor_type":
        tensor = port.type.tensor_type
        tensor.elem_type = wide.get(tensor.elem_type, tensor.elem_type)


def _widen_tensor(tensor: TensorProto, wide: Mapping[int, int]) -> None:
    if tensor.data_type in wide:
        values = numpy_helper.to_array(tensor).astype(helper.tensor_dtype_to_np_dtype(wide[tensor.data_type]))
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))


def _widen_nodes(nodes: Iterable[NodeProto], wide: Mapping[int, int]) -> None:
    for node in nodes:
        if node.op_type == "ConstantOfShape" and not node.attribute:
            node.attribute.append(helper.make_attribute("value", numpy_helper.from_array(np.zeros(1, np.float32))))
        for attribute in node.attribute:
            if attribute.type == AttributeProto.TENSOR:
                _widen_tensor(attribute.t, wide)
            elif attribute.name in _TYPES:
                attribute.i = wide.get(attribute.i, attribute.i)
            elif node.op_type == "Constant" and attribute.name in ("value_float", "value_floats"):
                values = numpy_helper.from_array(np.asarray(helper.get_attribute_value(attribute), np.float32))
                _widen_tensor(values, wide)
                attribute.CopyFrom(helper.make_attribute("value", values))


def _graphs(node: NodeProto) -> Iterable[GraphProto]:
    return (graph for attribute in node.attribute for graph in (attribute.g, *attribute.graphs))
