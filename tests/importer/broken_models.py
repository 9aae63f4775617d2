"""Small valid models, and changes that break a rule of ONNX in each of the ways that files are broken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Change = Callable[[Any], None]
Base = Callable[[], Any]

CHANGES: dict[str, tuple[Base, Change]] = {}
"""Name of a change -> the valid model that it is applied to, the change."""


def change(base: Base) -> Callable[[Change], Change]:
    """Record a change of a valid model under the name of its function."""

    def record(function: Change) -> Change:
        CHANGES[function.__name__] = (base, function)
        return function

    return record


def broken(name: str) -> Any:
    """The model that a change makes."""
    base, function = CHANGES[name]
    model = base()
    function(model)
    return model


def value(name: str, kind: int, shape: Any) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def model_of(nodes: list[Any], inputs: list[Any], outputs: list[Any], weights: list[Any] | None = None) -> Any:
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights or [])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def layer() -> Any:
    """y = relu(x w + b)."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"], name="mm"),
        helper.make_node("Add", ["m", "b"], ["a"], name="add"),
        helper.make_node("Relu", ["a"], ["y"], name="relu"),
    ]
    weights = [numpy_helper.from_array(np.ones((4, 3), "f4"), "w"), numpy_helper.from_array(np.zeros(3, "f4"), "b")]
    return model_of(nodes, [value("x", TensorProto.FLOAT, [2, 4])], [value("y", TensorProto.FLOAT, [2, 3])], weights)


def lookup() -> Any:
    """y = softmax(t[i])."""
    nodes = [
        helper.make_node("Gather", ["t", "i"], ["r"], name="g"),
        helper.make_node("Softmax", ["r"], ["y"], name="s", axis=-1),
    ]
    inputs = [value("t", TensorProto.FLOAT, [5, 4]), value("i", TensorProto.INT64, [3])]
    return model_of(nodes, inputs, [value("y", TensorProto.FLOAT, [3, 4])])


def branches() -> Any:
    """y = relu(x) if c else -x."""
    result = [TensorProto.FLOAT, [2, 4]]
    then = helper.make_graph([helper.make_node("Relu", ["x"], ["p"])], "then", [], [value("p", *result)])
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["q"])], "other", [], [value("q", *result)])
    node = helper.make_node("If", ["c"], ["y"], name="if", then_branch=then, else_branch=other)
    return model_of([node], [value("x", *result), value("c", TensorProto.BOOL, [])], [value("y", *result)])


def sequence() -> Any:
    """y = x and x, concatenated."""
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "x"], ["s"], name="sc"),
        helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0, name="cf"),
    ]
    return model_of(nodes, [value("x", TensorProto.FLOAT, [2, 4])], [value("y", TensorProto.FLOAT, [4, 4])])


@change(layer)
def output_type(model: Any) -> None:
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64


@change(layer)
def output_type_f16(model: Any) -> None:
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT16


@change(layer)
def output_rank(model: Any) -> None:
    model.graph.output[0].CopyFrom(value("y", TensorProto.FLOAT, [2, 3, 1]))


@change(layer)
def output_dim(model: Any) -> None:
    model.graph.output[0].CopyFrom(value("y", TensorProto.FLOAT, [2, 5]))


@change(layer)
def output_seq(model: Any) -> None:
    model.graph.output[0].CopyFrom(helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, None))


@change(layer)
def output_typeless(model: Any) -> None:
    model.graph.output[0].CopyFrom(onnx.ValueInfoProto(name="y"))


@change(layer)
def output_undefined(model: Any) -> None:
    model.graph.output[0].type.tensor_type.elem_type = 0


@change(layer)
def output_missing(model: Any) -> None:
    model.graph.output[0].name = "nowhere"


@change(layer)
def output_twice(model: Any) -> None:
    model.graph.output.append(model.graph.output[0])


@change(layer)
def output_none(model: Any) -> None:
    del model.graph.output[:]


@change(layer)
def output_nameless(model: Any) -> None:
    model.graph.output[0].name = ""


@change(layer)
def output_is_input(model: Any) -> None:
    model.graph.output.append(value("x", TensorProto.FLOAT, [2, 4]))


@change(layer)
def output_is_input_badtype(model: Any) -> None:
    model.graph.output.append(value("x", TensorProto.INT64, [2, 4]))


@change(layer)
def output_is_weight(model: Any) -> None:
    model.graph.output.append(value("w", TensorProto.FLOAT, [4, 3]))


@change(layer)
def input_negative(model: Any) -> None:
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -3


@change(layer)
def input_minus1(model: Any) -> None:
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1


@change(layer)
def input_twice(model: Any) -> None:
    model.graph.input.append(model.graph.input[0])


@change(layer)
def input_nameless(model: Any) -> None:
    model.graph.input.append(value("", TensorProto.FLOAT, [2]))


@change(layer)
def input_seq(model: Any) -> None:
    model.graph.input[0].CopyFrom(helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, None))


@change(layer)
def input_string(model: Any) -> None:
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.STRING


@change(layer)
def input_int(model: Any) -> None:
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.INT32


@change(layer)
def input_f64(model: Any) -> None:
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.DOUBLE


@change(layer)
def input_bool(model: Any) -> None:
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.BOOL


@change(layer)
def input_rank0(model: Any) -> None:
    model.graph.input[0].CopyFrom(value("x", TensorProto.FLOAT, []))


@change(layer)
def input_dim(model: Any) -> None:
    model.graph.input[0].CopyFrom(value("x", TensorProto.FLOAT, [2, 5]))


@change(layer)
def input_optional(model: Any) -> None:
    model.graph.input[0].CopyFrom(
        helper.make_value_info(
            "x", helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2, 4]))
        )
    )


@change(layer)
def input_map(model: Any) -> None:
    t = onnx.TypeProto()
    t.map_type.key_type = TensorProto.INT64
    t.map_type.value_type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    model.graph.input[0].type.CopyFrom(t)


@change(layer)
def input_typeless(model: Any) -> None:
    model.graph.input[0].CopyFrom(onnx.ValueInfoProto(name="x"))


@change(layer)
def input_unknown_elem(model: Any) -> None:
    model.graph.input[0].type.tensor_type.elem_type = 99


@change(layer)
def unused_in_seq(model: Any) -> None:
    model.graph.input.append(helper.make_tensor_sequence_value_info("z", TensorProto.FLOAT, None))


@change(layer)
def initializer_type_vs_input(model: Any) -> None:
    model.graph.input.append(value("w", TensorProto.INT64, [4, 3]))


@change(layer)
def initializer_shape_vs_input(model: Any) -> None:
    model.graph.input.append(value("w", TensorProto.FLOAT, [4, 5]))


@change(layer)
def initializer_rank_vs_input(model: Any) -> None:
    model.graph.input.append(value("w", TensorProto.FLOAT, [12]))


@change(layer)
def initializer_input_ok(model: Any) -> None:
    model.graph.input.append(value("w", TensorProto.FLOAT, ["k", 3]))


@change(layer)
def initializer_input_noshape(model: Any) -> None:
    model.graph.input.append(helper.make_value_info("w", helper.make_tensor_type_proto(TensorProto.FLOAT, None)))


@change(layer)
def initializer_twice(model: Any) -> None:
    model.graph.initializer.append(model.graph.initializer[0])


@change(layer)
def initializer_trunc(model: Any) -> None:
    model.graph.initializer[0].raw_data = model.graph.initializer[0].raw_data[:-4]


@change(layer)
def initializer_long(model: Any) -> None:
    model.graph.initializer[0].raw_data += b"0000"


@change(layer)
def initializer_negdim(model: Any) -> None:
    model.graph.initializer[0].dims[0] = -4


@change(layer)
def initializer_type(model: Any) -> None:
    model.graph.initializer[0].data_type = TensorProto.INT32


@change(layer)
def initializer_type0(model: Any) -> None:
    model.graph.initializer[0].data_type = 0


@change(layer)
def initializer_nameless(model: Any) -> None:
    model.graph.initializer[0].name = ""


@change(layer)
def initializer_ext_missing(model: Any) -> None:
    t = model.graph.initializer[0]
    t.ClearField("raw_data")
    t.data_location = TensorProto.EXTERNAL
    e = t.external_data.add()
    e.key = "location"
    e.value = "gone.bin"


@change(layer)
def initializer_ext_outside(model: Any) -> None:
    t = model.graph.initializer[0]
    t.ClearField("raw_data")
    t.data_location = TensorProto.EXTERNAL
    e = t.external_data.add()
    e.key = "location"
    e.value = "../../etc/passwd"


@change(layer)
def initializer_is_node_output(model: Any) -> None:
    model.graph.initializer.append(numpy_helper.from_array(np.ones((2, 3), "f4"), "m"))


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


@change(layer)
def opset_none(model: Any) -> None:
    del model.opset_import[:]


@change(layer)
def opset_0(model: Any) -> None:
    model.opset_import[0].version = 0


@change(layer)
def opset_99(model: Any) -> None:
    model.opset_import[0].version = 99


@change(layer)
def opset_5(model: Any) -> None:
    model.opset_import[0].version = 5


@change(layer)
def opset_neg(model: Any) -> None:
    model.opset_import[0].version = -1


@change(layer)
def opset_twice(model: Any) -> None:
    model.opset_import.append(helper.make_opsetid("", 13))


@change(layer)
def ir_0(model: Any) -> None:
    model.ir_version = 0


@change(layer)
def ir_99(model: Any) -> None:
    model.ir_version = 99


@change(layer)
def ir_none(model: Any) -> None:
    model.ClearField("ir_version")


@change(layer)
def value_info_type(model: Any) -> None:
    model.graph.value_info.append(value("m", TensorProto.INT64, [2, 3]))


@change(layer)
def value_info_shape(model: Any) -> None:
    model.graph.value_info.append(value("m", TensorProto.FLOAT, [2, 9]))


@change(layer)
def value_info_rank(model: Any) -> None:
    model.graph.value_info.append(value("m", TensorProto.FLOAT, [2, 3, 1]))


@change(layer)
def value_info_unknown_name(model: Any) -> None:
    model.graph.value_info.append(value("zzz", TensorProto.FLOAT, [2, 9]))


@change(layer)
def value_info_twice(model: Any) -> None:
    model.graph.value_info.extend([value("m", TensorProto.FLOAT, [2, 3]), value("m", TensorProto.INT64, [2, 3])])


@change(layer)
def no_nodes(model: Any) -> None:
    del model.graph.node[:]


@change(layer)
def graph_nameless(model: Any) -> None:
    model.graph.name = ""


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
