"""Models with 8-bit integer weights, of which onnxruntime needs to be told that sums must not saturate.

On x86 without VNNI its products of uint8 activations and int8 weights add two terms in 16 bits, which saturate.
"""

from __future__ import annotations

from pathlib import Path

from onnx import AttributeProto, TensorProto

from tilec.verify.input_choices import nested_graphs
from tilec.verify.model_structure import model_structure


def has_int8_weights(model: Path) -> bool:
    """Whether the model or a graph in it has a constant of type int8."""
    graphs = list(nested_graphs(model_structure(model).graph))
    constants = [tensor for graph in graphs for tensor in graph.initializer]
    attributes = (a for graph in graphs for node in graph.node for a in node.attribute)
    constants += [attribute.t for attribute in attributes if attribute.type == AttributeProto.TENSOR]
    return any(tensor.data_type == TensorProto.INT8 for tensor in constants)
