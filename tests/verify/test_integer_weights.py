"""onnxruntime as the reference of models with int8 weights, whose sums must not saturate."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tilec.verify.integer_weights import has_int8_weights
from tilec.verify.runners import Reference

A = np.full((2, 64), 255, np.uint8)
W = np.full((64, 3), 127, np.int8)


def product(folder, weights):
    node = helper.make_node("MatMulInteger", ["a", "w"], ["y"])
    ports = [helper.make_tensor_value_info("a", TensorProto.UINT8, A.shape)]
    result = helper.make_tensor_value_info("y", TensorProto.INT32, [2, 3])
    graph = helper.make_graph([node], "g", ports, [result], [numpy_helper.from_array(weights, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, folder / "m.onnx")
    return folder / "m.onnx"


def test_sums_of_the_reference_do_not_saturate(tmp_path):
    """255 * 127 + 255 * 127 is more than 16 bits hold."""
    model = product(tmp_path, W)
    assert has_int8_weights(model)
    np.testing.assert_array_equal(Reference(model).run({"a": A})["y"], A.astype(np.int64) @ W)


def test_other_models_keep_the_basic_optimisations(tmp_path):
    assert not has_int8_weights(product(tmp_path, W.astype(np.uint8)))
