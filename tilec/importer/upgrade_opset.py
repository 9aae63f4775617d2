"""Upgrade of models older than the supported opsets to the first supported one, by ONNX's own converter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import onnx
from onnx import checker, version_converter

from tilec.importer.check import OPSETS, OWN_DOMAINS, opset_of
from tilec.importer.loader import Model

_INITIALIZERS_APART = 4
"""The first IR version in which initializers need not be inputs; ONNX's converter does not see such ones."""


def modern(model: Model) -> Model:
    """The model unchanged or, when it is too old, converted to the first opset of `OPSETS`.

    A model that the converter does not accept, or converts wrongly, is returned unchanged.
    """
    proto = model.proto
    if opset_of(proto) >= OPSETS.start or any(entry.domain not in OWN_DOMAINS for entry in proto.opset_import):
        return model
    if proto.ir_version >= _INITIALIZERS_APART and (model.initializers or model.foreign):
        return model
    if any(_misread(node, proto.graph.input) for node in proto.graph.node):
        return model
    converted = _converted(proto)
    if converted is None or _ports(converted) != _ports(proto) or converted.graph.initializer:
        return model
    return replace(model, proto=converted)


def _misread(node: Any, inputs: Sequence[Any]) -> bool:
    """Whether the converter gets a node wrong: slopes of `PRelu`, which were per channel then, and nodes with
    bodies."""
    if any(attribute.type in _BODIES for attribute in node.attribute):
        return True
    known = {info.name: prod(dim.dim_value for dim in info.type.tensor_type.shape.dim) for info in inputs}
    return node.op_type == "PRelu" and any(known.get(slope) != 1 for slope in node.input[1:])


_BODIES = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)


def _converted(proto: Any) -> Any | None:
    try:
        if any(not info.type.tensor_type.HasField("shape") for info in proto.graph.output):
            proto = onnx.shape_inference.infer_shapes(proto)
        checker.check_model(proto)
        converted = version_converter.convert_version(proto, OPSETS.start)
        checker.check_model(converted)
        return converted
    except (checker.ValidationError, version_converter.ConvertError, RuntimeError, ValueError, IndexError):
        return None


def _ports(proto: onnx.ModelProto) -> tuple[list[str], list[str]]:
    return [info.name for info in proto.graph.input], [info.name for info in proto.graph.output]
