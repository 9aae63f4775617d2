"""Models of opsets before those that import reads, brought to the first of them by ONNX's own converter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import onnx
from onnx import checker, version_converter

from tilec.importer.check import OPSETS, OWN_DOMAINS, opset_of
from tilec.importer.loader import Model

_INITIALIZERS_APART = 4
"""From this IR version on initializers need not be inputs, without which ONNX's converter does not know them."""


def modern(model: Model) -> Model:
    """The model as it is, or, when it is too old, as the first opset of `OPSETS` says the same.

    What the converter does not take stays as it is, and so does what it gets wrong: `PRelu`, whose slopes were
    channels' then, and bodies of branches and loops, which it does not read.
    """
    proto = model.proto
    if opset_of(proto) >= OPSETS.start or any(entry.domain not in OWN_DOMAINS for entry in proto.opset_import):
        return model
    if proto.ir_version >= _INITIALIZERS_APART and (model.initializers or model.foreign):
        return model
    if any(node.op_type == "PRelu" or any(a.type in _BODIES for a in node.attribute) for node in proto.graph.node):
        return model
    converted = _converted(proto)
    if converted is None or _ports(converted) != _ports(proto) or converted.graph.initializer:
        return model
    return replace(model, proto=converted)


_BODIES = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)


def _converted(proto: Any) -> Any | None:
    try:
        checker.check_model(proto)
        converted = version_converter.convert_version(proto, OPSETS.start)
        checker.check_model(converted)
        return converted
    except (checker.ValidationError, version_converter.ConvertError, RuntimeError, ValueError, IndexError):
        return None


def _ports(proto: onnx.ModelProto) -> tuple[list[str], list[str]]:
    return [info.name for info in proto.graph.input], [info.name for info in proto.graph.output]
