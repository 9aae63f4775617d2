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


def test_states_of_a_recurrence_are_quantised_over_the_whole_batch(tmp_path):
    """Each of several threads of onnxruntime would take a part of the batch, and its own range."""
    steps, batch, hidden = 4, 6, 8
    generator = np.random.default_rng(0)
    weights = [generator.integers(-100, 100, (1, hidden, 4 * hidden), np.int8) for _ in "wr"]
    scales, zeros = np.full(1, 0.01, np.float32), np.zeros(1, np.int8)
    arrays = dict(zip(("w", "r", "s", "z", "t", "v"), (*weights, *[scales, zeros] * 2), strict=True))
    inputs = ["x", "w", "r", *[""] * 5, "s", "z", "t", "v"]
    node = helper.make_node("DynamicQuantizeLSTM", inputs, ["y"], domain="com.microsoft", hidden_size=hidden)
    ports = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [steps, batch, hidden])]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [steps, 1, batch, hidden])
    constants = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph([node], "g", ports, [result], constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), tmp_path / "m.onnx")
    x = generator.standard_normal((steps, batch, hidden)).astype(np.float32)
    one, several, told = (Reference(tmp_path / "m.onnx", threads).run({"x": x})["y"] for threads in (1, 3, None))
    assert np.abs(one - several).max() > 1e-4
    np.testing.assert_array_equal(told, one)
