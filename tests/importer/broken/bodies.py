"""Lookups, branches and sequences that break a rule of ONNX."""

from __future__ import annotations

from typing import Any

from onnx import TensorProto, helper

from tests.importer.broken.models import branches, change, lookup, sequence, value


@change(lookup)
def lookup_float_index(model: Any) -> None:
    model.graph.input[1].type.tensor_type.elem_type = TensorProto.FLOAT


@change(lookup)
def lookup_int8_index(model: Any) -> None:
    model.graph.input[1].type.tensor_type.elem_type = TensorProto.INT8


@change(lookup)
def lookup_axis(model: Any) -> None:
    model.graph.node[0].attribute.append(helper.make_attribute("axis", 4))


@change(lookup)
def lookup_out_int(model: Any) -> None:
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64


@change(lookup)
def lookup_softmax_int(model: Any) -> None:
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.INT32
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT32


@change(lookup)
def lookup_string_table(model: Any) -> None:
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.STRING


@change(lookup)
def lookup_string_all(model: Any) -> None:
    del model.graph.node[1:]
    model.graph.node[0].output[0] = "y"
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.STRING
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.STRING


@change(lookup)
def lookup_string_all_badout(model: Any) -> None:
    del model.graph.node[1:]
    model.graph.node[0].output[0] = "y"
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.STRING


@change(branches)
def if_cond_float(model: Any) -> None:
    model.graph.input[1].type.tensor_type.elem_type = TensorProto.FLOAT


@change(branches)
def if_branch_type(model: Any) -> None:
    b = model.graph.node[0].attribute[1].g
    b.node[0].op_type = "IsNaN"
    b.output[0].type.tensor_type.elem_type = TensorProto.BOOL


@change(branches)
def if_branch_without_output(model: Any) -> None:
    del model.graph.node[0].attribute[1].g.output[:]


@change(branches)
def if_branch_undef(model: Any) -> None:
    model.graph.node[0].attribute[1].g.node[0].input[0] = "nah"


@change(branches)
def if_branch_out_type(model: Any) -> None:
    model.graph.node[0].attribute[1].g.output[0].type.tensor_type.elem_type = TensorProto.INT64


@change(branches)
def if_without_else(model: Any) -> None:
    del model.graph.node[0].attribute[1:]


@change(branches)
def if_out_type(model: Any) -> None:
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64


@change(branches)
def if_shadow(model: Any) -> None:
    model.graph.node[0].attribute[0].g.node[0].output[0] = "x"
    model.graph.node[0].attribute[0].g.output[0].name = "x"


@change(sequence)
def sequence_relu(model: Any) -> None:
    model.graph.node[1].op_type = "Relu"
    del model.graph.node[1].attribute[:]


@change(sequence)
def sequence_out_seq_as_tensor(model: Any) -> None:
    model.graph.output[0].name = "s"


@change(sequence)
def sequence_concat_tensor(model: Any) -> None:
    model.graph.node[1].input[0] = "x"


@change(sequence)
def sequence_mixed(model: Any) -> None:
    model.graph.input.append(value("z", TensorProto.INT64, [2, 4]))
    model.graph.node[0].input[1] = "z"


@change(sequence)
def sequence_in(model: Any) -> None:
    model.graph.input.append(helper.make_tensor_sequence_value_info("q", TensorProto.FLOAT, None))
    model.graph.node.append(helper.make_node("Relu", ["q"], ["r"], name="bad"))
    model.graph.output.append(value("r", TensorProto.FLOAT, None))


@change(sequence)
def sequence_add(model: Any) -> None:
    model.graph.node.append(helper.make_node("Add", ["s", "x"], ["r"], name="bad"))
    model.graph.output.append(value("r", TensorProto.FLOAT, None))
