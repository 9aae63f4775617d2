"""Parts of a model: what is cut becomes an input with its value, what leaves is an output."""

import numpy as np
import onnx
import onnxruntime
import pytest
from cli import models
from onnx import TensorProto, helper

from tilec.errors import TilecError
from tilec.verify.submodels import Choice, Whole, changed, weights_of, write_part

VALUES = {"x": (4, 16), "h0": (4, 32), "h1": (4, 32), "h2": (4, 32), "y": (4, 8)}


def values(names):
    return {name: np.full(VALUES[name], 0.5, np.float32) for name in names}


@pytest.fixture
def whole(tmp_path):
    return Whole(onnx.load(str(models.mlp(tmp_path / "model.onnx"))), values)


def ports(part):
    graph = part.proto.graph
    return [p.name for p in graph.input], [p.name for p in graph.output], [t.name for t in graph.initializer]


def test_all_of_a_model_is_the_model(whole):
    part = whole.part(whole.all)
    assert ports(part) == (["x"], ["y"], ["w1", "b1", "w2"])
    assert part.feeds["x"].shape == (4, 16)


def test_a_part_reads_what_was_cut_and_hands_out_what_is_kept(whole):
    assert ports(whole.part(Choice((1, 2)))) == (["h0"], ["h2"], ["b1"])
    assert ports(whole.part(Choice((1, 2), frozenset({"h1"})))) == (["h0"], ["h1", "h2"], ["b1"])
    assert ports(whole.part(Choice((0, 3)))) == (["x", "h2"], ["h0", "y"], ["w1", "w2"])


def test_parts_run_on_onnxruntime(whole, tmp_path):
    for nodes in ((0,), (1, 2), (3,), (0, 1, 2, 3)):
        part = whole.part(Choice(nodes))
        write_part(part, tmp_path / "part.onnx")
        session = onnxruntime.InferenceSession(str(tmp_path / "part.onnx"))
        assert len(session.run(None, dict(part.feeds))) == len(part.proto.graph.output)


def test_named_nodes_come_with_those_between_them(whole):
    assert whole.named({"first", "relu"}) == Choice((0, 1, 2), frozenset({"h2"}))
    assert whole.named({"nobody"}) == Choice(())
    assert whole.wider(Choice((1,))).nodes == (0, 1, 2)
    assert whole.wider(whole.all).nodes == (0, 1, 2, 3)


def test_nodes_without_a_name_are_known_by_operator_and_place(tmp_path):
    model = onnx.load(str(models.mlp(tmp_path / "model.onnx")))
    for node in model.graph.node:
        node.ClearField("name")
    assert Whole(model, values).named({"MatMul_0", "Relu_2"}) == Choice((0, 1, 2), frozenset({"h2"}))


def test_leaving_nodes_out_drops_what_only_they_made(whole):
    choice = Choice((0, 1, 2, 3), frozenset({"h1", "y"}))
    assert whole.without(choice, {1}) == Choice((0, 2, 3), frozenset({"y"}))


def test_what_is_not_known_or_no_array_makes_no_part(whole, tmp_path):
    def unknown(names):
        raise TilecError("no such type")

    proto = whole.proto
    assert Whole(proto, unknown).part(Choice((1,))) is None
    assert Whole(proto, lambda names: {name: [1, 2] for name in names}).part(Choice((1,))) is None
    assert whole.part(Choice(())) is None


def test_graphs_inside_nodes_read_from_around_them():
    branch = helper.make_graph([helper.make_node("Add", ["x", "w"], ["r"])], "b", [], [models.value("r", 4)])
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    graph = helper.make_graph(
        [node], "g", [models.value("x", 4), condition], [models.value("y", 4)], [models.weight("w", 4)]
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    given = {"x": np.ones(4, np.float32), "c": np.array(True)}
    whole = Whole(proto, lambda names: {name: given[name] for name in names})
    assert ports(whole.part(whole.all)) == (["c", "x"], ["y"], ["w"])


def test_external_weights_are_read_when_they_are_needed(tmp_path):
    path = models.external(tmp_path / "model.onnx")
    whole = Whole(onnx.load(str(path), load_external_data=False), values, tmp_path)
    part = whole.part(Choice((3,)))
    np.testing.assert_array_equal(weights_of(part)["w2"], weights_of(whole.part(whole.all))["w2"])
    write_part(part, tmp_path / "elsewhere.onnx")
    assert onnx.load(str(tmp_path / "elsewhere.onnx")).graph.initializer[0].raw_data


def test_contents_can_be_changed(whole):
    part = changed(whole.part(Choice((1, 2))), {"b1": np.zeros(8, np.float32), "h0": np.ones((2, 8), np.float32)})
    assert weights_of(part)["b1"].shape == (8,)
    assert part.feeds["h0"].shape == (2, 8)
    assert [d.dim_value for d in part.proto.graph.input[0].type.tensor_type.shape.dim] == [2, 8]
