"""Models in half precision: all floats but those that operators want in f32."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.gpu_zoo.halves import as_halves


def test_weights_and_ports_are_halves_and_scales_of_resize_stay() -> None:
    scales = numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "scales")
    weight = numpy_helper.from_array(np.full((1, 1, 1, 1), 1.5, np.float32), "w")
    nodes = [
        helper.make_node("Cast", ["n"], ["x"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["x", "w"], ["p"]),
        helper.make_node("Resize", ["p", "", "scales"], ["y"], mode="nearest"),
    ]
    ports = [
        helper.make_tensor_value_info(n, t, [1, 1, s, s]) for n, t, s in (("n", 7, 2), ("y", TensorProto.FLOAT, 4))
    ]
    model = helper.make_model(helper.make_graph(nodes, "g", ports[:1], ports[1:], [scales, weight]))
    for element in (TensorProto.FLOAT16, TensorProto.BFLOAT16):
        copy = onnx.ModelProto.FromString(model.SerializeToString())
        half = as_halves(copy, element).graph
        assert [each.data_type for each in half.initializer] == [TensorProto.FLOAT, element]
        assert float(numpy_helper.to_array(half.initializer[1]).astype(np.float32).item()) == 1.5
        assert half.output[0].type.tensor_type.elem_type == element
        assert half.node[0].attribute[0].i == element
