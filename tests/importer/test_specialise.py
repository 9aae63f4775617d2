"""Models with inputs turned into constants and open shapes closed."""

import numpy as np
import onnx
from onnx import TensorProto, helper

from tilec.importer.specialise import chosen, frozen, open_inputs, shaped


def model(ir_version=8):
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3]),
        helper.make_tensor_value_info("shape", TensorProto.INT64, [2]),
        helper.make_tensor_value_info("any", TensorProto.FLOAT, None),
    ]
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    graph = helper.make_graph(nodes, "g", inputs, [onnx.ValueInfoProto(name="y")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=ir_version)


def names(entries):
    return [entry.name for entry in entries]


def test_frozen_inputs_are_constants():
    original = model()
    made = frozen(original, {"shape": np.array([3, 2]), "unknown": np.zeros(1)})
    assert names(made.graph.input) == ["x", "any"]
    assert names(made.graph.initializer) == ["shape"]
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(made.graph.initializer[0]), [3, 2])
    assert names(original.graph.input) == ["x", "shape", "any"]


def test_old_files_keep_constants_among_the_inputs():
    made = frozen(model(ir_version=3), {"shape": np.array([3, 2])})
    assert names(made.graph.input) == ["x", "shape", "any"]
    assert names(made.graph.initializer) == ["shape"]
    assert names(frozen(made, {"shape": np.array([1, 6])}).graph.initializer) == ["shape"]


def test_open_inputs_are_those_with_an_extent_or_rank_to_be_known():
    assert open_inputs(model()) == ("x", "any")
    assert open_inputs(shaped(model(), {"x": (4, 3), "any": ()})) == ()


def test_only_open_extents_are_closed():
    made = shaped(model(), {"x": (4, 7), "any": (2, 0)})
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in made.graph.input}
    assert shapes == {"x": [4, 3], "shape": [2], "any": [2, 0]}


def test_inputs_that_the_branch_taken_does_not_read_have_sizes_of_their_own():
    def branch(name, other):
        node = helper.make_node("Add", ["x", other], [f"{name}_y"])
        return helper.make_graph([node], name, [], [onnx.ValueInfoProto(name=f"{name}_y")])

    float_ = TensorProto.FLOAT
    inputs = [helper.make_tensor_value_info(name, float_, ["n", 3]) for name in ("x", "past", "fresh", "unread")]
    inputs.append(helper.make_tensor_value_info("c", TensorProto.BOOL, [1]))
    inner = {"then_branch": branch("then", "past"), "else_branch": branch("else", "fresh")}
    graph = helper.make_graph(
        [helper.make_node("If", ["c"], ["y"], **inner)], "g", inputs, [onnx.ValueInfoProto(name="y")]
    )
    for taken, read in ((True, "past"), (False, "fresh")):
        made = chosen(helper.make_model(graph), {"c": np.array([taken])}).graph
        named = [info.name for info in made.input if info.type.tensor_type.shape.dim[0].dim_param == "n"]
        assert named == ["x", read]
        assert names(made.initializer) == ["c"]
        assert all(info.type.tensor_type.shape.dim[1].dim_value == 3 for info in made.input)
