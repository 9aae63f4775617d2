"""A model in which ONNX's operators are the functions that define them, where these are more than a name for a kernel.

onnxruntime's kernels of some operators leave out a term of the definition: of the mean and variance of a constant row
they make 0 / 0, for 0 / (0 + 1e-9).
"""

from __future__ import annotations

import onnx
from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto, helper

from tilec.verify.input_choices import nested_graphs

DOMAIN = "onnx.definitions"
"""The domain of the functions."""

_FUNCTIONS_SINCE = 8
"""The version of ONNX's format from which on a model has functions."""


def in_definitions(model: ModelProto) -> ModelProto:
    """The model with functions in the place of all operators of ONNX that one defines for every input alike."""
    result = ModelProto()
    result.CopyFrom(model)
    opset = next((each.version for each in model.opset_import if not each.domain), onnx.defs.onnx_opset_version())
    functions: dict[str, FunctionProto] = {}
    for graph in nested_graphs(result.graph):
        for node in graph.node:
            function = None if node.domain else _definition(node, opset)
            if function is not None:
                functions[node.op_type] = function
    if functions:
        result.functions.extend(functions.values())
        result.opset_import.append(helper.make_opsetid(DOMAIN, 1))
        result.ir_version = max(result.ir_version, _FUNCTIONS_SINCE)
    return result


def _definition(node: NodeProto, opset: int) -> FunctionProto | None:
    """The function of a node, which is changed into a call of it; None for a node that no function defines."""
    try:
        schema = onnx.defs.get_schema(node.op_type, opset, "")
    except onnx.defs.SchemaError:
        return None
    if not schema.function_body.node:
        return None
    function = FunctionProto()
    function.CopyFrom(schema.function_body)
    function.domain = node.domain = DOMAIN
    given = {attribute.name for attribute in node.attribute}
    defaults = (schema.attributes[name].default_value for name in function.attribute if name not in given)
    node.attribute.extend(each for each in defaults if each.type != AttributeProto.UNDEFINED)
    return function
