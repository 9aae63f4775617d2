"""Inputs that import would have to know are named, whatever stands between them and the node that asks."""

import numpy as np
import onnx
import pytest

from tests.importer.reference import helper, save
from tilec.importer import UnsupportedModelError, import_model


def needed(path):
    with pytest.raises(UnsupportedModelError) as caught:
        import_model(path)
    return caught.value.needed


def test_an_input_that_is_read_as_a_shape(tmp_path):
    node = helper.make_node("Reshape", ["x", "shape"], ["y"])
    path = save(tmp_path / "m.onnx", [node], {"x": ("float32", [2, 3]), "shape": ("int64", [2])}, ["y"])
    assert needed(path) == ("shape",)


def test_what_a_shape_is_computed_from_is_named_and_nothing_else(tmp_path):
    nodes = [
        helper.make_node("Add", ["a", "b"], ["sum"]),
        helper.make_node("Mul", ["sum", "two"], ["shape"]),
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
    ]
    inputs = {
        "x": ("float32", [2, 3]),
        "a": ("int64", [2]),
        "b": ("int64", [1]),
        "other": ("int64", [2]),
    }
    path = save(tmp_path / "m.onnx", nodes, inputs, ["y"], {"two": np.array([2], np.int64)})
    assert needed(path) == ("a", "b")


def test_the_condition_of_a_branch(tmp_path):
    def branch(name, *inputs, **attributes):
        node = helper.make_node(name, inputs, [f"{name}_y"], **attributes)
        return helper.make_graph([node], name, [], [onnx.ValueInfoProto(name=f"{name}_y")])

    longer = branch("Concat", "x", "x", axis=0)
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch("Relu", "x"), else_branch=longer)
    path = save(tmp_path / "m.onnx", [node], {"c": ("bool", []), "x": ("float32", [2])}, ["y"])
    assert needed(path) == ("c",)


def test_nothing_is_needed_for_an_operator_that_is_not_known(tmp_path):
    node = helper.make_node("Strange", ["x", "n"], ["y"], domain="custom")
    path = save(tmp_path / "m.onnx", [node], {"x": ("float32", [2]), "n": ("int64", [1])}, ["y"])
    assert needed(path) == ()
