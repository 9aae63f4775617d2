"""Inputs that choose a branch of an If: both values run compiled code, with the shapes that each branch has."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import tilec
from api import models


def branch(name, *nodes):
    return helper.make_graph(list(nodes), name, [], [helper.make_empty_tensor_value_info(nodes[-1].output[0])])


def growing(shape):
    """Rows behind those that there are, or alone: y has the rows of x, and those of past where there is a past."""
    rows = branch(
        "then",
        helper.make_node("MatMul", ["x", "w"], ["then_new"]),
        helper.make_node("Concat", ["past", "then_new"], ["then_y"], axis=0),
    )
    alone = branch("else", helper.make_node("MatMul", ["x", "v"], ["else_y"]))
    node = helper.make_node("If", ["use_past"], ["y"], "merge", then_branch=rows, else_branch=alone)
    inputs = [models.value("x", "new", 4), models.value("past", "rows", 4)]
    inputs.append(models.value("use_past", *shape, type_=TensorProto.BOOL))
    generator = np.random.default_rng(0)
    weights = [models.constant(name, generator.standard_normal((4, 4)).astype(np.float32)) for name in "wv"]
    return models.model([node], inputs, [models.value("y", "all", 4)], weights).SerializeToString()


@pytest.mark.parametrize("shape", [(), (1,)])
def test_each_call_runs_the_branch_that_its_input_chooses(cache, shape):
    generator = np.random.default_rng(1)
    proto = growing(shape)
    theirs = onnxruntime.InferenceSession(proto)
    session = tilec.InferenceSession(proto, cache=cache, while_compiling="wait")
    assert [arg.name for arg in session.get_inputs()] == ["x", "past", "use_past"]
    for taken, new, rows in ((True, 2, 3), (False, 2, 3), (True, 1, 0), (False, 5, 0)):
        x, past = (generator.standard_normal((n, 4)).astype(np.float32) for n in (new, rows))
        feeds = {"x": x, "past": past, "use_past": np.full(shape, taken)}
        (ours,), (expected,) = session.run(None, feeds), theirs.run(None, feeds)
        assert ours.shape == (new + (rows if taken else 0), 4)
        np.testing.assert_allclose(ours, expected, rtol=1e-5)
    made = session._model._models
    assert set(made) == {(True,), (False,)}
    assert all(isinstance(each.fixed, tilec.Session) and not each.fixed._calls for each in made.values())


def test_what_chooses_is_one_bool(cache):
    session = tilec.InferenceSession(growing((1,)), cache=cache, while_compiling="wait")
    feeds = {"x": np.ones((1, 4), np.float32), "past": np.ones((1, 4), np.float32)}
    for wrong, said in (
        ({}, "input 'use_past' is missing"),
        ({"use_past": np.array([1])}, "input 'use_past' has element type int64, the model has bool"),
        ({"use_past": np.ones(2, bool)}, "input 'use_past' has shape .2., the model has .1."),
    ):
        with pytest.raises(tilec.FeedError, match=said):
            session.run(None, {**feeds, **wrong})


def test_a_branch_says_nothing_of_inputs_that_it_does_not_read(cache):
    """optimum gives empty caches to the branch without, though their sizes are called as those of other inputs."""
    rows = branch("then", helper.make_node("Add", ["x", "past"], ["then_y"]))
    alone = branch("else", helper.make_node("Neg", ["x"], ["else_y"]))
    node = helper.make_node("If", ["use_past"], ["y"], "merge", then_branch=rows, else_branch=alone)
    inputs = [models.value("x", "n", 4), models.value("past", "n", 4)]
    inputs.append(models.value("use_past", 1, type_=TensorProto.BOOL))
    proto = models.model([node], inputs, [models.value("y", "n", 4)]).SerializeToString()
    session = tilec.InferenceSession(proto, cache=cache, while_compiling="wait")
    x, empty = np.ones((3, 4), np.float32), np.ones((0, 4), np.float32)
    (y,) = session.run(None, {"x": x, "past": empty, "use_past": np.array([False])})
    assert (y == -x).all()
    with pytest.raises(tilec.FeedError, match="input 'past'"):
        session.run(None, {"x": x, "past": empty, "use_past": np.array([True])})
