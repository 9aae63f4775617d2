"""Nodes that break a rule of ONNX: operators, attributes, operands, names and order."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from tests.importer.broken.models import change, layer


@change(layer)
def node_dup_output(model: Any) -> None:
    model.graph.node.append(helper.make_node("Neg", ["x"], ["m"]))


@change(layer)
def node_twice_name(model: Any) -> None:
    model.graph.node[1].name = "mm"


@change(layer)
def node_same_out_twice(model: Any) -> None:
    model.graph.node.append(helper.make_node("Split", ["x"], ["s", "s"], num_outputs=2, axis=1, name="sp"))


@change(layer)
def node_writes_input(model: Any) -> None:
    model.graph.node.append(helper.make_node("Neg", ["m"], ["x"]))


@change(layer)
def node_without_output(model: Any) -> None:
    model.graph.node.append(helper.make_node("Neg", ["m"], []))


@change(layer)
def node_emptyout(model: Any) -> None:
    model.graph.node.append(helper.make_node("Neg", ["m"], [""]))


@change(layer)
def node_undefined_input(model: Any) -> None:
    model.graph.node[0].input[0] = "nope"


@change(layer)
def node_empty_required(model: Any) -> None:
    model.graph.node[1].input[1] = ""


@change(layer)
def node_too_many_in(model: Any) -> None:
    model.graph.node[2].input.append("b")


@change(layer)
def node_too_few_in(model: Any) -> None:
    del model.graph.node[1].input[1:]


@change(layer)
def node_too_many_out(model: Any) -> None:
    model.graph.node[2].output.append("yy")


@change(layer)
def node_unknown_op(model: Any) -> None:
    model.graph.node[2].op_type = "Relux"


@change(layer)
def node_unknown_domain(model: Any) -> None:
    model.graph.node[2].domain = "com.acme"


@change(layer)
def node_unknown_domain_imported(model: Any) -> None:
    model.graph.node[2].domain = "com.acme"
    model.opset_import.append(helper.make_opsetid("com.acme", 1))


@change(layer)
def node_contrib_no_import(model: Any) -> None:
    model.graph.node[2].op_type = "Gelu"
    model.graph.node[2].domain = "com.microsoft"


@change(layer)
def node_ms_unknown(model: Any) -> None:
    model.graph.node[2].op_type = "Nonsense"
    model.graph.node[2].domain = "com.microsoft"
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))


@change(layer)
def node_no_optype(model: Any) -> None:
    model.graph.node[2].op_type = ""


@change(layer)
def node_unknown_attr(model: Any) -> None:
    model.graph.node[2].attribute.append(helper.make_attribute("alpha", 1.0))


@change(layer)
def node_dup_attr(model: Any) -> None:
    model.graph.node[2].op_type = "Elu"
    model.graph.node[2].attribute.extend([helper.make_attribute("alpha", 1.0), helper.make_attribute("alpha", 2.0)])


@change(layer)
def node_attr_kind(model: Any) -> None:
    model.graph.node[2].op_type = "Elu"
    model.graph.node[2].attribute.append(helper.make_attribute("alpha", [1, 2]))


@change(layer)
def node_attr_missing(model: Any) -> None:
    model.graph.node[2].op_type = "Cast"


@change(layer)
def node_attr_badvalue(model: Any) -> None:
    model.graph.node[2].op_type = "Cast"
    model.graph.node[2].attribute.append(helper.make_attribute("to", 77))


@change(layer)
def node_axis_range(model: Any) -> None:
    model.graph.node[2].op_type = "Softmax"
    model.graph.node[2].attribute.append(helper.make_attribute("axis", 7))


@change(layer)
def node_perm(model: Any) -> None:
    model.graph.node[2].op_type = "Transpose"
    model.graph.node[2].attribute.append(helper.make_attribute("perm", [0, 0]))


@change(layer)
def node_order(model: Any) -> None:
    n = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend([n[2], n[0], n[1]])


@change(layer)
def cycle(model: Any) -> None:
    model.graph.node[0].input[0] = "y"


@change(layer)
def self_cycle(model: Any) -> None:
    model.graph.node[2].input[0] = "y"


@change(layer)
def add_types(model: Any) -> None:
    model.graph.initializer[1].CopyFrom(numpy_helper.from_array(np.zeros(3, "f8"), "b"))


@change(layer)
def add_shapes(model: Any) -> None:
    model.graph.initializer[1].CopyFrom(numpy_helper.from_array(np.zeros(5, "f4"), "b"))


@change(layer)
def matmul_shapes(model: Any) -> None:
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.zeros((5, 3), "f4"), "w"))


@change(layer)
def matmul_text(model: Any) -> None:
    model.graph.initializer[0].CopyFrom(helper.make_tensor("w", TensorProto.STRING, [4, 3], ["a"] * 12))
