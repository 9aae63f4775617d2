"""Operators that a model or ONNX defines by other operators."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.helper import make_node

from tests.importer.reference import check, compare, normal
from tilec.errors import ConfigError, UnsupportedError
from tilec.importer import import_model
from tilec.importer.control.region import MAX_DEPTH
from tilec.importer.functions import instantiated

OPSETS = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]


def model(
    folder: Path, nodes: Sequence[onnx.NodeProto], *functions: onnx.FunctionProto, outputs: Sequence[str] = ("y",)
) -> Path:
    """A model over x [2, 3] with functions of its own."""
    info = helper.make_tensor_value_info
    ports = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph(list(nodes), "g", [info("x", TensorProto.FLOAT, [2, 3])], ports)
    made = helper.make_model(graph, opset_imports=OPSETS, functions=list(functions), ir_version=10)
    path = folder / "m.onnx"
    path.write_bytes(made.SerializeToString())
    return path


def function(
    name: str,
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[str] = ("x",),
    outputs: Sequence[str] = ("y",),
    **options: Any,
) -> onnx.FunctionProto:
    return helper.make_function("own", name, inputs, outputs, nodes, OPSETS, **options)


def call(
    name: str, inputs: Sequence[str] = ("x",), outputs: Sequence[str] = ("y",), **attributes: Any
) -> onnx.NodeProto:
    return make_node(name, inputs, outputs, name="call", domain="own", **attributes)


def given(node: onnx.NodeProto, attribute: str, name: str, kind: Any = onnx.AttributeProto.FLOAT) -> onnx.NodeProto:
    """The node with an attribute that refers to the function's."""
    node.attribute.add(name=attribute, ref_attr_name=name, type=kind)
    return node


def scaled(*ops: str) -> onnx.FunctionProto:
    constant = given(make_node("Constant", [], ["f"]), "value_float", "factor")
    nodes = [constant, make_node(ops[0], ["x", "f"], ["t"]), make_node(ops[1], ["t"], ["y"])]
    return function("Scaled", nodes, attribute_protos=[helper.make_attribute("factor", 0.5)])


@pytest.mark.parametrize("attributes", [{}, {"factor": 3.0}])
def test_functions_of_the_model(tmp_path: Path, attributes: dict[str, float]) -> None:
    path = model(tmp_path, [call("Scaled", **attributes)], scaled("Mul", "Relu"))
    graph = compare(path, {"x": normal(2, 3)})
    assert {node.origin for node in graph.nodes} == {("call",)}
    assert [node.name for node in graph.nodes] == ["call_t", "y"]


def test_functions_inside_of_functions(tmp_path: Path) -> None:
    """An attribute is handed on; names are paths."""
    inner = given(make_node("Scaled", ["x"], ["s"], name="inner", domain="own"), "factor", "outer")
    twice = function("Twice", [inner, make_node("Add", ["s", "s"], ["y"])], attributes=["outer"])
    path = model(tmp_path, [call("Twice", outer=4.0)], twice, scaled("Mul", "Relu"))
    graph = compare(path, {"x": normal(2, 3)})
    assert [node.name for node in graph.nodes] == ["call_inner_t", "call_s", "y"]


def test_overloads(tmp_path: Path) -> None:
    one = function("F", [make_node("Neg", ["x"], ["y"])], overload="one")
    two = function("F", [make_node("Exp", ["x"], ["y"])], overload="two")
    for overload, op in (("one", "Neg"), ("two", "Exp")):
        graph = compare(model(tmp_path, [call("F", overload=overload)], one, two), {"x": normal(2, 3)})
        assert [node.op for node in graph.nodes] == [op]


def test_a_reference_inside_of_a_branch(tmp_path: Path) -> None:
    """The branches are the body's attributes; what stands in them refers to the function's."""

    def branch(op: str) -> onnx.GraphProto:
        node = given(make_node(op, ["x"], [f"{op}_y"]), "alpha", "slope")
        return helper.make_graph([node], op, [], [onnx.ValueInfoProto(name=f"{op}_y")])

    nodes = [
        make_node("Constant", [], ["half"], value_float=0.5),
        make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
        make_node("Greater", ["sum", "half"], ["c"]),
        make_node("If", ["c"], ["y"], then_branch=branch("LeakyRelu"), else_branch=branch("Elu")),
    ]
    choice = function("Choice", nodes, attributes=["slope"])
    for sign in (1, -1):
        compare(model(tmp_path, [call("Choice", slope=0.25)], choice), {"x": sign * np.abs(normal(2, 3)) - 0.1})


def test_a_function_in_place_of_an_operator_that_came_later(tmp_path: Path) -> None:
    """Gelu is ONNX's own since opset 20; here it is the model's."""
    made = helper.make_function("", "Gelu", ["x"], ["y"], [make_node("Neg", ["x"], ["y"])], OPSETS[:1])
    path = model(tmp_path, [make_node("Gelu", ["x"], ["y"], name="call")], made)
    proto = onnx.load(path)
    for opset in (proto.opset_import[0], proto.functions[0].opset_import[0]):
        opset.version = 18
    path.write_bytes(proto.SerializeToString())
    assert [node.op for node in import_model(path).graph.nodes] == ["Neg"]


def test_inputs_and_outputs_that_are_left_out(tmp_path: Path) -> None:
    nodes = [make_node("Clip", ["x", "low", "high"], ["y"]), make_node("Neg", ["x"], ["z"])]
    clip = function("Limited", nodes, ["x", "low", "high"], ["y", "z"])
    one = make_node("Constant", [], ["one"], value_float=1.0)
    graph = compare(model(tmp_path, [one, call("Limited", ["x", "", "one"], ["y", "z"])], clip), {"x": normal(2, 3)})
    assert [node.op for node in graph.nodes] == ["Clip"]
    shorter = import_model(model(tmp_path, [call("Limited")], clip)).graph
    assert [node.op for node in shorter.nodes] == ["Clip"]


def test_a_function_with_an_unknown_operator_names_it(tmp_path: Path) -> None:
    path = model(tmp_path, [call("Scaled")], scaled("Mul", "NonZero"))
    with pytest.raises(UnsupportedError, match="node 'call' .Scaled.: NonZero inside of it"):
        import_model(path)


def test_functions_that_call_themselves(tmp_path: Path) -> None:
    a = function("A", [make_node("B", ["x"], ["y"], domain="own")])
    b = function("B", [make_node("A", ["x"], ["y"], domain="own")])
    with pytest.raises(ConfigError, match="function 'A': the function calls itself: A -> B -> A"):
        import_model(model(tmp_path, [call("A")], a, b))


@pytest.mark.parametrize("depth", [MAX_DEPTH, 1000])
def test_functions_nested_too_deep(tmp_path: Path, depth: int) -> None:
    nested = [function(f"F{i}", [make_node(f"F{i + 1}", ["x"], ["y"], domain="own")]) for i in range(depth)]
    last = function(f"F{depth}", [make_node("Neg", ["x"], ["y"])])
    with pytest.raises(UnsupportedError, match=f"nodes stand more than {MAX_DEPTH} deep inside each other"):
        import_model(model(tmp_path, [call("F0")], *nested, last))
    below = depth - MAX_DEPTH + 1
    assert import_model(model(tmp_path, [call(f"F{below}")], *nested, last)).graph.nodes


def test_functions_that_unfold_without_bound(tmp_path: Path) -> None:
    twice = [make_node("F{}", ["x"], ["t"], domain="own"), make_node("F{}", ["t"], ["y"], domain="own")]
    functions = [function("F0", [make_node("Neg", ["x"], ["y"])])]
    for level in range(1, 41):
        made = function(f"F{level}", twice)
        for node in made.node:
            node.op_type = f"F{level - 1}"
        functions.append(made)
    with pytest.raises(ConfigError, match="function 'F20': the function unfolds to 2097151 calls"):
        import_model(model(tmp_path, [call("F40")], *functions))


@pytest.mark.parametrize(
    ("node", "made", "why"),
    [
        (call("F", ["x", "x"]), [make_node("Neg", ["x"], ["y"])], "2 inputs, the function 'F' has 1"),
        (call("F", ["x"], ["y", "z"]), [make_node("Neg", ["x"], ["y"])], "2 outputs, the function 'F' has 1"),
        (call("F"), [make_node("Neg", ["w"], ["y"])], "node 'Neg_0' .Neg.: input 'w' is defined nowhere"),
        (call("F"), [make_node("Neg", ["x"], ["z"])], "output 'y' of the function 'F' is defined nowhere"),
        (call("F"), [make_node("Neg", ["y"], ["t"]), make_node("Neg", ["t"], ["y"])], "the graph has a cycle"),
        (call("F"), [make_node("Neg", ["x"], ["y"]), make_node("Neg", ["x"], ["y"])], "'y' is also defined by node"),
        (call("F"), [make_node("Relu", ["x"], ["y"], alpha=1.0)], "/Relu_0' .Relu.: unknown attribute"),
    ],
)
def test_functions_that_are_wrong(tmp_path: Path, node: onnx.NodeProto, made: list[onnx.NodeProto], why: str) -> None:
    with pytest.raises(ConfigError, match=f"node 'call.*{why}"):
        import_model(model(tmp_path, [node], function("F", made)))


def test_two_functions_of_one_name(tmp_path: Path) -> None:
    one, two = (function("F", [make_node(op, ["x"], ["y"])]) for op in ("Neg", "Exp"))
    with pytest.raises(ConfigError, match="function 'F' is defined twice"):
        import_model(model(tmp_path, [call("F")], one, two))


def test_a_function_of_a_foreign_opset(tmp_path: Path) -> None:
    made = function("F", [make_node("Neg", ["x"], ["y"])])
    made.opset_import[0].version = 5
    with pytest.raises(UnsupportedError, match="the function 'F' uses opset 5"):
        import_model(model(tmp_path, [call("F")], made))


def test_references_without_a_value_are_left_out() -> None:
    made = scaled("Mul", "Relu")
    del made.attribute_proto[:]
    assert not instantiated(made, call("Scaled"), 20)[0].attribute


@pytest.mark.parametrize("opset", [12, 13, 20, 23])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_losses(tmp_path: Path, reduction: str, opset: int) -> None:
    """ONNX defines them by other operators, differently for every set of inputs and attributes."""
    x, target, weights = normal(3, 5, 2), np.array([[1, 0], [4, 1], [2, 2]]), np.abs(normal(5))
    for kind in ("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"):
        check(tmp_path, kind, x, target, opset=opset, reduction=reduction)
        check(tmp_path, kind, x, target, weights, opset=opset, reduction=reduction, ignore_index=1)


@pytest.mark.parametrize("opset", [18, 21, 26])
def test_a_centre_that_is_cut_out_and_filled_up(tmp_path: Path, opset: int) -> None:
    check(tmp_path, "CenterCropPad", normal(4, 7), np.array([6, 4], np.int64), known=[1], opset=opset)
    check(tmp_path, "CenterCropPad", normal(4, 7), np.array([9], np.int64), known=[1], opset=opset, axes=[-1])
