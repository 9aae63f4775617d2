"""Structure of models: order, names, opsets, attributes."""

from typing import Any

import onnx
import pytest
from onnx import helper

from tilec.errors import ConfigError, UnsupportedError
from tilec.importer.check import attributes_of, check_opset, check_types, needs, opset_of, ordered


def relu(x: str, y: str, name: str = "") -> Any:
    return helper.make_node("Relu", [x], [y], name=name)


def model(*opsets: tuple[str, int]) -> Any:
    graph = helper.make_graph([], "g", [], [])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(d, v) for d, v in opsets])


def test_nodes_out_of_order_are_put_in_order() -> None:
    nodes = [relu("b", "c"), relu("x", "a"), relu("a", "b"), relu("x", "d")]
    assert [number for number, _ in ordered(nodes, ["x"], "m")] == [1, 2, 0, 3]


def test_order_is_kept_where_it_is_sound() -> None:
    nodes = [relu("x", "c"), relu("x", "b"), relu("x", "a")]
    assert [number for number, _ in ordered(nodes, ["x"], "m")] == [0, 1, 2]


def test_a_cycle_is_named() -> None:
    nodes = [relu("x", "y", "first"), helper.make_node("Add", ["y", "c"], ["b"], name="loop"), relu("b", "c", "back")]
    with pytest.raises(ConfigError, match="the graph has a cycle: (loop -> back -> loop|back -> loop -> back)"):
        ordered(nodes, ["x"], "m.onnx")


def test_names_that_are_defined_twice() -> None:
    with pytest.raises(ConfigError, match="tensor 'y' is also defined by node 'one'") as error:
        ordered([relu("x", "y", "one"), relu("x", "y", "two")], ["x"], "m.onnx")
    assert error.value.place == "m.onnx: node 'two' (Relu)"
    with pytest.raises(ConfigError, match="tensor 'x' is also defined by an input or initializer"):
        ordered([relu("x", "x")], ["x"], "m.onnx")


def test_inputs_that_are_defined_nowhere() -> None:
    with pytest.raises(ConfigError, match="input 'hiden' is defined nowhere") as error:
        ordered([relu("x", "hidden"), relu("hiden", "y", "second")], ["x"], "m.onnx")
    assert error.value.hint == "Did you mean 'hidden'?"
    assert error.value.place == "m.onnx: node 'second' (Relu)"


def test_subgraphs_need_what_they_take_from_outside() -> None:
    branch = helper.make_graph([relu("outer", "t"), relu("t", "u")], "b", [], [onnx.ValueInfoProto(name="u")])
    node = helper.make_node("If", ["cond"], ["y"], then_branch=branch, else_branch=branch)
    assert set(needs(node)) == {"cond", "outer"}


def test_opsets() -> None:
    assert opset_of(model(("", 13), ("com.x", 1))) == 13
    assert opset_of(model(("ai.onnx", 26))) == 26
    assert opset_of(model(("ai.onnx.ml", 3))) == 26
    with pytest.raises(UnsupportedError, match="uses opset 27; tilec reads opsets up to 26") as error:
        check_opset(opset_of(model(("", 27))), "m.onnx")
    assert error.value.exit_code == 5
    assert error.value.hint is not None


def test_types_are_checked_against_the_operator() -> None:
    node = helper.make_node("Add", ["a", "b"], ["y"])
    check_types(node, 20, ["tensor(float)", "tensor(float)"], "p")
    check_types(node, 20, ["tensor(float)", ""], "p")
    with pytest.raises(ConfigError, match=r"input 1 .B. is i64, input 0 is f32") as error:
        check_types(node, 20, ["tensor(float)", "tensor(int64)"], "p")
    assert error.value.hint == "Both must be of one type; insert a Cast."
    with pytest.raises(ConfigError, match=r"input 0 .X. is i64"):
        check_types(helper.make_node("Elu", ["x"], ["y"]), 20, ["tensor(int64)"], "p")
    with pytest.raises(ConfigError, match=r"input 0 .A. is seq\(tensor\(float\)\)"):
        check_types(node, 20, ["seq(tensor(float))", "tensor(float)"], "p")
    where = helper.make_node("Where", ["c", "a", "b"], ["y"])
    check_types(where, 20, ["tensor(bool)", "tensor(string)", "tensor(string)"], "p")
    check_types(helper.make_node("Unheard", ["x"], ["y"]), 20, ["tensor(int64)"], "p")


def test_attributes_are_checked_against_the_operator() -> None:
    good = helper.make_node("Elu", ["x"], ["y"], alpha=0.5)
    assert attributes_of(good, 20, "p") == {"alpha": 0.5}
    with pytest.raises(ConfigError, match="unknown attribute 'alhpa'") as error:
        attributes_of(helper.make_node("Elu", ["x"], ["y"], alhpa=0.5), 20, "p")
    assert error.value.hint == "Did you mean 'alpha'?"
    with pytest.raises(ConfigError, match="the attribute 'to' is missing"):
        attributes_of(helper.make_node("Cast", ["x"], ["y"]), 20, "p")
    with pytest.raises(ConfigError, match="the attribute 'alpha' is of kind"):
        attributes_of(helper.make_node("Elu", ["x"], ["y"], alpha=[1, 2]), 20, "p")
    with pytest.raises(ConfigError, match="3 inputs, the operator takes 2"):
        attributes_of(helper.make_node("Add", ["x", "x", "x"], ["y"]), 20, "p")
    with pytest.raises(ConfigError, match="unknown attribute 'axes'"):
        attributes_of(helper.make_node("Squeeze", ["x"], ["y"], axes=[0]), 13, "p")
