"""Functions: operators that a model or ONNX itself defines by other operators, and branches that are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx

from tilec.importer.value import Value
from tilec.importer.weights import ELEMENT_TYPES
from tilec.ir.expr import bound
from tilec.ir.text import text_of
from tilec.ir.types import TTYPES

_CODES = {ttype: code for code, ttype in ELEMENT_TYPES.items()}
assert set(_CODES) <= set(TTYPES)


def function_of(node: Any, opset: int, local: dict[tuple[str, str], Any], inputs: Sequence[Value | None]) -> Any | None:
    """The FunctionProto behind a node: one of the model's own, or ONNX's definition of it; None without one."""
    own = local.get((node.domain, node.op_type))
    if own is not None:
        return own
    try:
        schema: Any = onnx.defs.get_schema(node.op_type, opset, node.domain)
    except onnx.defs.SchemaError:
        return None
    if schema.has_function:
        return schema.function_body
    if schema.has_context_dependent_function:
        types = [_type_of(value).SerializeToString() for value in inputs]
        body = schema.get_context_dependent_function(node.SerializeToString(), types)
        function = onnx.FunctionProto()
        function.ParseFromString(body)
        return function if function.node else None
    return None


def _type_of(value: Value | None) -> Any:
    if value is None:
        return onnx.TypeProto()
    shape = [text_of(extent) if (size := bound(extent)) is None else size for extent in value.shape]
    return onnx.helper.make_tensor_type_proto(_CODES[value.ttype], shape)


def instantiated(function: Any, node: Any) -> list[Any]:
    """The function's nodes with references to its attributes replaced by the values that `node` gives."""
    values = {a.name: a for a in (*function.attribute_proto, *node.attribute)}
    if onnx.defs.has(node.op_type, node.domain):
        declared: Any = onnx.defs.get_schema(node.op_type, node.domain).attributes
        defaults = {name: a.default_value for name, a in declared.items() if a.default_value.name}
        values = {**defaults, **values}
    return [_with_attributes(inner, values) for inner in function.node]


def _with_attributes(node: Any, values: dict[str, Any]) -> Any:
    if not any(a.ref_attr_name for a in node.attribute):
        return node
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    del copy.attribute[:]
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            copy.attribute.append(attribute)
        elif attribute.ref_attr_name in values:
            value = copy.attribute.add()
            value.CopyFrom(values[attribute.ref_attr_name])
            value.name = attribute.name
    return copy


def function_opset(function: Any, opset: int) -> int:
    """The opset of ONNX's own domain that a function's nodes are written for."""
    found = [entry.version for entry in function.opset_import if entry.domain in ("", "ai.onnx")]
    return int(found[0]) if found else opset
