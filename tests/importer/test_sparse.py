"""Sparse constants: both forms of indices, and indices that do not fit."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.importer.reference import compare
from tilec.errors import ConfigError
from tilec.importer import import_model


def model(path, indices, dims=(3, 4), values=(1.5, -2.0)):
    tensor = numpy_helper.from_array(np.array(values, np.float32), "w")
    sparse = helper.make_sparse_tensor(tensor, numpy_helper.from_array(np.array(indices, np.int64), "w_i"), list(dims))
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    ports = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, [3, 4])] for name in "xy"]
    graph = helper.make_graph(nodes, "g", *ports, sparse_initializer=[sparse])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=8), str(path))
    return path


@pytest.mark.parametrize("indices", [[1, 11], [[0, 1], [2, 3]]], ids=["linear", "coordinates"])
def test_elements_that_are_not_stored_are_zero(tmp_path, indices):
    compare(model(tmp_path / "m.onnx", indices), {"x": np.ones((3, 4), np.float32)})


@pytest.mark.parametrize("indices", [[1, 12], [-1, 2], [[0, 4], [0, 0]], [[0], [1]], [1], [[[1]], [[2]]]])
def test_indices_that_do_not_fit(tmp_path, indices):
    with pytest.raises(ConfigError, match="do not fit shape"):
        import_model(model(tmp_path / "m.onnx", indices))


@pytest.mark.parametrize("dims", [(1 << 40, 1 << 40), (-3, 4)])
def test_absurd_shapes(tmp_path, dims):
    with pytest.raises(ConfigError, match="absurd"):
        import_model(model(tmp_path / "m.onnx", [0, 1], dims))
