"""A model in double precision: what its results are where single precision rounds too much to tell.

onnxruntime's kernels of single precision err, too, some far more than their operator demands. Its kernels of double
precision have the same meaning.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from tilec.verify.input_choices import nested_graphs

_TYPES = frozenset({"to", "dtype"})
"""Attributes that are the type of a result."""


def in_double(model: ModelProto) -> ModelProto:
    """The model with double precision in place of single: inputs, outputs, constants and casts."""
    result = ModelProto()
    result.CopyFrom(model)
    for graph in nested_graphs(result.graph):
        _widen(graph)
    for function in result.functions:
        for node in function.node:
            for graph in _graphs(node):
                for each in nested_graphs(graph):
                    _widen(each)
        _widen_nodes(function.node)
    return result


def _widen(graph: GraphProto) -> None:
    for port in (*graph.input, *graph.output, *graph.value_info):
        _widen_port(port)
    for tensor in graph.initializer:
        _widen_tensor(tensor)
    _widen_nodes(graph.node)


def _widen_port(port: ValueInfoProto) -> None:
    if port.type.WhichOneof("value") == "tensor_type" and port.type.tensor_type.elem_type == TensorProto.FLOAT:
        port.type.tensor_type.elem_type = TensorProto.DOUBLE


def _widen_tensor(tensor: TensorProto) -> None:
    if tensor.data_type == TensorProto.FLOAT:
        wide = numpy_helper.to_array(tensor).astype(np.float64)
        tensor.CopyFrom(numpy_helper.from_array(wide, tensor.name))


def _widen_nodes(nodes: Iterable[NodeProto]) -> None:
    for node in nodes:
        if node.op_type == "ConstantOfShape" and not node.attribute:
            node.attribute.append(helper.make_attribute("value", numpy_helper.from_array(np.zeros(1, np.float32))))
        for attribute in node.attribute:
            if attribute.type == AttributeProto.TENSOR:
                _widen_tensor(attribute.t)
            elif attribute.name in _TYPES and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.DOUBLE
            elif node.op_type == "Constant" and attribute.name in ("value_float", "value_floats"):
                value = helper.get_attribute_value(attribute)
                attribute.CopyFrom(
                    helper.make_attribute("value", numpy_helper.from_array(np.asarray(value, np.float64)))
                )


def _graphs(node: NodeProto) -> Iterable[GraphProto]:
    return (graph for attribute in node.attribute for graph in (attribute.g, *attribute.graphs))
