"""A model without the bytes of its weights answers questions about its nodes."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tilec.verify import model_structure as module
from tilec.verify.input_choices import compared_values
from tilec.verify.integer_weights import has_int8_weights
from tilec.verify.model_structure import model_structure


def test_all_but_the_bytes_of_weights_is_as_onnx_reads_it(tmp_path):
    path = tmp_path / "m.onnx"
    weights = {"w": np.ones((64, 64), np.int8), "rate": np.int64(8000), "words": np.float32([1, 2])}
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    nodes = [helper.make_node("Equal", ["r", "rate"], ["y"]), helper.make_node("Cast", ["w"], ["z"], to=1)]
    ports = [
        helper.make_tensor_value_info("r", TensorProto.INT64, []),
        helper.make_tensor_value_info("y", TensorProto.BOOL, []),
    ]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), str(path))
    found, whole = model_structure(path), onnx.load(str(path))
    assert not found.graph.initializer[0].raw_data
    assert len(path.read_bytes()) > module.SMALL
    found.graph.initializer[0].raw_data = whole.graph.initializer[0].raw_data
    assert found == whole
    assert has_int8_weights(path)
    assert compared_values(path) == (("r", (8000,)),)
