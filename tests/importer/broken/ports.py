"""Inputs, outputs and initializers that break a rule of ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.importer.broken.models import change, layer, value


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
