"""Operators that are defined by other operators."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.importer.reference import check, compare, normal
from tilec.errors import ConfigError, UnsupportedError
from tilec.importer import import_model
from tilec.importer.functions import instantiated


def _with_function(path: Path, function: onnx.FunctionProto, **attributes: float) -> Path:
    node = helper.make_node("Scaled", ["x"], ["y"], domain="own", name="call", **attributes)
    info = helper.make_tensor_value_info
    graph = helper.make_graph([node], "g", [info("x", 1, [2, 3])], [info("y", 1, [2, 3])])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
    model = helper.make_model(graph, opset_imports=opsets, functions=[function], ir_version=9)
    path.write_bytes(model.SerializeToString())
    return path


def _scaled(*ops: str) -> onnx.FunctionProto:
    constant = helper.make_node("Constant", [], ["f"])
    constant.attribute.add(name="value_float", ref_attr_name="factor", type=onnx.AttributeProto.FLOAT)
    nodes = [constant, helper.make_node(ops[0], ["x", "f"], ["t"]), helper.make_node(ops[1], ["t"], ["y"])]
    opsets = [helper.make_opsetid("", 20)]
    default = helper.make_attribute("factor", 0.5)
    return helper.make_function("own", "Scaled", ["x"], ["y"], nodes, opsets, attribute_protos=[default])


@pytest.mark.parametrize("attributes", [{}, {"factor": 3.0}])
def test_functions_of_the_model(tmp_path: Path, attributes: dict[str, float]) -> None:
    path = _with_function(tmp_path / "m.onnx", _scaled("Mul", "Relu"), **attributes)
    graph = compare(path, {"x": normal(2, 3)})
    assert {node.origin for node in graph.nodes} == {("call",)}
    assert [node.name for node in graph.nodes] == ["call_t", "y"]


def test_a_function_with_an_unknown_operator_names_it(tmp_path: Path) -> None:
    path = _with_function(tmp_path / "m.onnx", _scaled("Mul", "NonZero"))
    with pytest.raises(UnsupportedError, match="node 'call' .Scaled.: NonZero in its definition"):
        import_model(path)


def test_a_function_that_calls_itself(tmp_path: Path) -> None:
    function = _scaled("Mul", "Relu")
    function.node[2].op_type, function.node[2].domain = "Scaled", "own"
    function.opset_import.append(helper.make_opsetid("own", 1))
    with pytest.raises(ConfigError, match="node 'call/Scaled_2'.*calls itself: Scaled -> Scaled"):
        import_model(_with_function(tmp_path / "m.onnx", function))


def test_references_without_a_value_are_left_out() -> None:
    function = _scaled("Mul", "Relu")
    del function.attribute_proto[:]
    node = helper.make_node("Scaled", ["x"], ["y"], domain="own")
    assert not instantiated(function, node, 20)[0].attribute


def test_definitions_of_onnx(tmp_path: Path) -> None:
    x, target = normal(3, 5), np.array([1, 0, 4], np.int64)
    check(tmp_path, "SoftmaxCrossEntropyLoss", x, target, reduction="none")
    check(tmp_path, "CenterCropPad", normal(4, 7), np.array([6, 4], np.int64), known=[1])
