"""Integer inputs of which a model tells a few values apart."""

import numpy as np
from cli import models
from onnx import TensorProto, helper, numpy_helper

from tilec.verify.input_choices import compared_values


def branch(name: str, value: int):
    """A graph without inputs that compares the outer `rate` with a constant of its own."""
    constant = helper.make_node("Constant", [], [f"{name}_c"], value_int=value)
    equal = helper.make_node("Equal", ["rate", f"{name}_c"], [name])
    return helper.make_graph([constant, equal], name, [], [helper.make_tensor_value_info(name, TensorProto.BOOL, [])])


def test_constants_that_an_input_is_compared_with_are_its_values(tmp_path):
    nodes = [
        helper.make_node("Squeeze", ["rate"], ["one"]),
        helper.make_node("Cast", ["one"], ["wide"], to=TensorProto.INT64),
        helper.make_node("Equal", ["sixteen", "wide"], ["fast"]),
        helper.make_node("If", ["fast"], ["y"], then_branch=branch("a", 8000), else_branch=branch("b", 48000)),
        helper.make_node("Equal", ["mask", "zero"], ["z"]),
    ]
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, [1]) for name in ("rate", "mask")]
    outputs = [helper.make_tensor_value_info(name, TensorProto.BOOL, None) for name in ("y", "z")]
    constants = [numpy_helper.from_array(np.array(v), name) for name, v in (("sixteen", 16000), ("zero", 0))]
    path = models.save(tmp_path / "m.onnx", nodes, inputs, outputs, constants)
    assert compared_values(path) == (("rate", (8000, 16000, 48000)),)
