"""Both references open copies of a model whose external data stays where it is."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tilec.spec.recipe import VerifyOptions
from tilec.verify.accuracy import accuracy_report
from tilec.verify.cases import cases_of
from tilec.verify.runners import OnnxReference, Reference, inner_tensors, write_watched
from verify.here import in_this_process
from verify.test_quantised_verdict import built, network


def with_external_data(path):
    onnx.save(onnx.load(str(path)), str(path), save_as_external_data=True, location="data", size_threshold=0)
    return path


def test_a_copy_reads_the_data_beside_the_model(tmp_path):
    weight = numpy_helper.from_array(np.float32([[1, 2], [3, 4]]), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"], name="first"), helper.make_node("Relu", ["h"], ["y"])]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2]) for name in "xy"]
    model = helper.make_model(
        helper.make_graph(nodes, "g", ports[:1], ports[1:], [weight]),
        opset_imports=[helper.make_opsetid("", 20)],
        ir_version=9,
    )
    onnx.save(model, str(tmp_path / "m.onnx"))
    path, feeds = with_external_data(tmp_path / "m.onnx"), {"x": np.float32([[1, -1]])}
    copies = tmp_path / "copies"
    copies.mkdir()
    copy = write_watched(path, onnx.load(str(path), load_external_data=False), ["h"], copies)
    for reference in (Reference(copy, None, tmp_path), OnnxReference(copy, tmp_path)):
        np.testing.assert_array_equal(reference.run(feeds)["h"], [[-2, -2]])
    with in_this_process():
        np.testing.assert_array_equal(inner_tensors(path, feeds, {"first"})["first"], [[-2, -2]])


def test_accuracy_is_told_of_a_model_with_external_data(tmp_path):
    model = with_external_data(network(tmp_path / "m.onnx"))
    cases = cases_of(built(tmp_path, model), VerifyOptions(seeds=(0,)), model)
    outputs = [Reference(model).run(case.feeds) for case in cases]
    with in_this_process():
        told = accuracy_report(model, cases, outputs)
    assert 1e-3 < told["accuracy"]["outputs"]["y"]["relative"] < 0.1
