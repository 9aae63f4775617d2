"""Shrinking: the nodes that matter stay, sizes and contents become plain, and nothing is tried twice."""

import numpy as np
import pytest
from onnx import helper, numpy_helper

from tilec.verify.shrink import shrink, simplify
from tilec.verify.submodels import Choice, Part, Whole, weights_of


def chain(*operators: str) -> Whole:
    """Unary nodes in a row: t0 -> t1 -> ... ; node i makes t(i+1)."""
    nodes = [helper.make_node(op, [f"t{i}"], [f"t{i + 1}"]) for i, op in enumerate(operators)]
    inputs = [helper.make_tensor_value_info("t0", 1, [2])]
    outputs = [helper.make_tensor_value_info(f"t{len(operators)}", 1, [2])]
    proto = helper.make_model(helper.make_graph(nodes, "g", inputs, outputs))
    return Whole(proto, lambda names: {name: np.ones(2, np.float32) for name in names})


def operators(part: Part) -> list[str]:
    return [node.op_type for node in part.proto.graph.node]


@pytest.mark.parametrize("length", [1, 2, 7, 64])
@pytest.mark.parametrize("at", [0.0, 0.5, 1.0])
def test_one_wrong_node_is_found_in_few_trials(length, at):
    names = ["Exp"] * length
    names[round(at * (length - 1))] = "Neg"
    whole, seen = chain(*names), []

    def fails(part):
        seen.append(operators(part))
        return "Neg" in seen[-1]

    found = shrink(whole, whole.all, fails)
    assert operators(whole.part(found)) == ["Neg"]
    assert len(seen) <= 6 * max(1, length.bit_length())


def test_nodes_that_fail_only_together_stay_together():
    whole = chain("Exp", "Neg", "Exp", "Exp", "Abs", "Exp")
    found = shrink(whole, whole.all, lambda part: {"Neg", "Abs"} <= set(operators(part)))
    assert found.nodes == (1, 4)


def test_kept_tensors_go_unless_they_matter():
    whole = chain("Exp", "Neg")
    choice = Choice((0, 1), frozenset({"t1", "t2"}))
    assert shrink(whole, choice, lambda part: len(part.proto.graph.node) == 2).kept == frozenset()
    both = shrink(whole, choice, lambda part: len(part.proto.graph.output) == 2)
    assert len(whole.part(both).proto.graph.output) == 2


def test_what_never_fails_again_stays_as_it_is():
    whole = chain("Exp", "Neg", "Abs")
    assert shrink(whole, whole.all, lambda part: False) == whole.all


def given(**arrays: np.ndarray) -> Part:
    """A part with `shape` as a weight and everything else fed."""
    shape = [numpy_helper.from_array(arrays.pop("shape"), "shape")] if "shape" in arrays else []
    graph = helper.make_graph([helper.make_node("Reshape", ["x", "shape"], ["y"])], "g", [], [], shape)
    return Part(helper.make_model(graph), arrays)


def test_sizes_are_halved_together_as_far_as_it_fails():
    part = given(x=np.arange(80.0).reshape(5, 16), shape=np.array([16, 5]))

    def fails(candidate):
        return candidate.feeds["x"].shape[0] >= 4 and weights_of(candidate)["shape"].size == 2

    small = simplify(part, fails)
    assert small.feeds["x"].shape == (5, 1)
    assert weights_of(small)["shape"].tolist() == [1, 5]


def test_contents_become_plain_where_they_do_not_matter():
    part = given(x=np.random.default_rng(0).standard_normal((2, 2)), z=np.full(3, 7.0), n=np.array([5, 6]))
    small = simplify(
        part, lambda each: bool(each.feeds["x"].any()) and each.feeds["x"].size + each.feeds["z"].size == 7
    )
    assert small.feeds["x"].tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert small.feeds["z"].tolist() == [0.0] * 3
    assert small.feeds["n"].dtype == np.int64
