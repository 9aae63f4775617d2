"""Values that a model tells apart: constants with which it compares an integer input.

A model that takes a sampling rate or a mode as an input accepts a few values only, and compares it with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, helper, numpy_helper

from tilec.verify.inputs import Array, Choices
from tilec.verify.model_structure import model_structure

_ALIASES = frozenset({"Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
"""Operators whose result has the values of their first input."""

_GRAPHS = frozenset({AttributeProto.GRAPH, AttributeProto.GRAPHS})

_INTEGERS = frozenset({TensorProto.INT32, TensorProto.INT64, TensorProto.INT16, TensorProto.UINT16})


def compared_values(model: Path) -> Choices:
    """(integer input, constants that it is compared with by Equal), here or in an inner graph: (name, values) pairs.

    Inputs that are only compared with 0 and 1, as masks are, are left out.
    """
    graph = model_structure(model).graph
    inputs = {port.name for port in graph.input if port.type.tensor_type.elem_type in _INTEGERS}
    if not inputs:
        return ()
    source = {name: name for name in inputs}
    constants: dict[str, int] = {}
    found: dict[str, set[int]] = {}
    for each in nested_graphs(graph):
        constants |= _scalars(each)
        for node in each.node:
            read = list(node.input)
            if node.op_type in _ALIASES and read and read[0] in source:
                source[node.output[0]] = source[read[0]]
            elif node.op_type in _ALIASES and read and read[0] in constants:
                constants[node.output[0]] = constants[read[0]]
            elif node.op_type == "Equal":
                for one, other in (read, read[::-1]):
                    if one in source and other in constants:
                        found.setdefault(source[one], set()).add(constants[other])
    return tuple((name, tuple(sorted(values))) for name, values in sorted(found.items()) if not values <= {0, 1})


def nested_graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """The graph and those inside its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs) if attribute.type in _GRAPHS else ():
                yield from nested_graphs(inner)


def _scalars(graph: GraphProto) -> Mapping[str, int]:
    """Integer constants of one element by name."""
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer if _small(tensor)}
    arrays |= {node.output[0]: array for node in graph.node if (array := _constant(node)) is not None}
    return {name: int(array.item()) for name, array in arrays.items() if array.size == 1 and array.dtype.kind in "iu"}


def _small(tensor: TensorProto) -> bool:
    return int(np.prod(tensor.dims)) == 1 and tensor.data_location != TensorProto.EXTERNAL


def _constant(node: NodeProto) -> Array | None:
    if node.op_type != "Constant":
        return None
    values = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    if "value" in values:
        return numpy_helper.to_array(values["value"]) if _small(values["value"]) else None
    return np.asarray(values["value_int"]) if "value_int" in values else None
