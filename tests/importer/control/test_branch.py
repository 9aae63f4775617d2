"""If: a known branch alone, both branches where that is cheap, a refusal elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.importer.reference import compare, normal, save
from tilec.errors import ConfigError, UnsupportedError
from tilec.importer import UnsupportedModelError, import_model

VECTOR = {"x": ("float32", [3]), "c": ("bool", [])}


def graph(*nodes: onnx.NodeProto, name: str = "b", constants: tuple[Any, ...] = ()) -> onnx.GraphProto:
    """A branch that returns what its last node makes."""
    ports = [onnx.ValueInfoProto(name=output) for output in nodes[-1].output]
    return helper.make_graph(list(nodes), name, [], ports, list(constants))


def branch(op: str, *inputs: str, **attributes: Any) -> onnx.GraphProto:
    return graph(helper.make_node(op, list(inputs) or ["x"], [f"{op}_result"], **attributes))


def choice(folder: Path, yes: onnx.GraphProto, no: onnx.GraphProto, inputs: Any = VECTOR) -> Path:
    node = helper.make_node("If", ["c"], ["y"], "choice", then_branch=yes, else_branch=no)
    return save(folder / "m.onnx", [node], inputs, ["y"])


@pytest.mark.parametrize("size", [1, 3])
def test_the_branch_of_a_known_condition(tmp_path: Path, size: int) -> None:
    def scaled(op: str) -> onnx.GraphProto:
        constant = helper.make_tensor("c", TensorProto.FLOAT, [1], [2.0])
        return graph(helper.make_node(op, ["x", "c"], [f"{op}_result"]), constants=(constant,))

    nodes = [
        helper.make_node("Size", ["x"], ["n"]),
        helper.make_node("Equal", ["n", "one"], ["is_one"]),
        helper.make_node("If", ["is_one"], ["y"], then_branch=scaled("Add"), else_branch=scaled("Mul")),
    ]
    path = save(tmp_path / "m.onnx", nodes, {"x": ("float32", [size])}, ["y"], {"one": np.int64(1)})
    found = compare(path, {"x": normal(size)})
    assert [(node.name, node.op) for node in found.nodes] == [("y", "Add" if size == 1 else "Mul")]


def _chain(*steps: tuple[str, list[str], dict[str, Any]]) -> list[onnx.NodeProto]:
    """Nodes from `size` on, each reading the one before as `_`; the last one makes `c`."""
    nodes = [helper.make_node("Shape", ["x"], ["shape"]), helper.make_node("Gather", ["shape", "first"], ["size"])]
    before = "size"
    for number, (op, inputs, attributes) in enumerate(steps):
        name = "c" if number == len(steps) - 1 else f"t{number}"
        names = [before if i == "_" else i for i in inputs]
        nodes.append(helper.make_node(op, names, [name], **attributes))
        before = name
    return nodes


CHAINS = {
    "equal": _chain(("Equal", ["_", "three"], {})),
    "range": _chain(("Greater", ["_", "first"], {}), ("And", ["_", "yes"], {}), ("Not", ["_"], {}), ("Not", ["_"], {})),
    "cast": _chain(("Cast", ["_"], {"to": TensorProto.INT32}), ("Cast", ["_"], {"to": TensorProto.BOOL})),
    "narrow": _chain(("Cast", ["_"], {"to": TensorProto.UINT8}), ("Cast", ["_"], {"to": TensorProto.BOOL})),
    "remainder": _chain(("Mod", ["_", "three"], {}), ("Equal", ["_", "first"], {})),
    "quotient": _chain(("Div", ["_", "three"], {}), ("LessOrEqual", ["_", "three"], {})),
    "float": _chain(
        ("Cast", ["_"], {"to": TensorProto.FLOAT}),
        ("Mul", ["_", "half"], {}),
        ("Floor", ["_"], {}),
        ("Cast", ["_"], {"to": TensorProto.INT64}),
        ("Less", ["_", "three"], {}),
    ),
    "choice": _chain(
        ("Equal", ["_", "three"], {}), ("Where", ["_", "three", "first"], {}), ("Equal", ["_", "three"], {})
    ),
    "either": _chain(("Less", ["_", "first"], {}), ("Or", ["_", "yes"], {}), ("Xor", ["_", "no"], {})),
}
"""Conditions that hold, computed from an extent of 3."""


@pytest.mark.parametrize("chain", CHAINS)
def test_conditions_that_are_computed_from_shapes(tmp_path: Path, chain: str) -> None:
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch("Neg"), else_branch=branch("Exp"))
    weights = {"first": np.int64(0), "three": np.int64(3), "half": np.float32(0.5), "axis": np.array([0])}
    weights |= {"yes": np.bool_(True), "no": np.bool_(False)}
    path = save(tmp_path / "m.onnx", [*CHAINS[chain], node], {"x": ("float32", [3])}, ["y"], weights, 13)
    graph = compare(path, {"x": normal(3)})
    assert [node.op for node in graph.nodes] == ["Neg"]


def test_a_known_branch_demands_of_sizes_and_indices_as_the_model_does(tmp_path: Path) -> None:
    looked_up = graph(
        helper.make_node("Slice", ["x", "back", "far", "first"], ["last"]),
        helper.make_node("Gather", ["last", "ids"], ["row"]),
    )
    nodes = [
        helper.make_node("Shape", ["ids"], ["count"]),
        helper.make_node("Neg", ["count"], ["back"]),
        helper.make_node("If", ["c"], ["y"], then_branch=looked_up, else_branch=branch("Neg")),
    ]
    inputs = {"x": ("float32", [9]), "ids": ("int64", ["n"])}
    weights = {"c": np.bool_(True), "far": np.array([99]), "first": np.array([0])}
    path = save(tmp_path / "m.onnx", nodes, inputs, ["y"], weights)
    found = compare(path, {"x": normal(9), "ids": np.array([2, 0, 1])}, {"n": 3})
    assert found.symbol_ranges["n"].least == 1
    assert [each.tensor for each in found.ranges] == ["ids"]


def test_a_condition_that_depends_on_a_symbolic_size(tmp_path: Path) -> None:
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch("Neg"), else_branch=branch("Exp"))
    weights = {"first": np.int64(0), "three": np.int64(3)}
    path = save(tmp_path / "m.onnx", [*CHAINS["equal"], node], {"x": ("float32", ["n"])}, ["y"], weights)
    for size in (3, 4):
        compare(path, {"x": normal(size)}, {"n": size})
    node.attribute[0].g.CopyFrom(branch("Concat", "x", "x", axis=0))
    path = save(tmp_path / "m.onnx", [*CHAINS["equal"], node], {"x": ("float32", ["n"])}, ["y"], weights)
    with pytest.raises(UnsupportedError, match="depends on symbolic sizes, n == 3, and output 0 has .*\n.*--shape"):
        import_model(path)
    assert import_model(path, sizes={"n": 3}).graph.nodes


@pytest.mark.parametrize("condition", [True, False])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_both_branches_of_a_condition_that_depends_on_data(
    tmp_path: Path, condition: bool, shape: tuple[int, ...]
) -> None:
    inputs = {"x": ("float32", [3]), "c": ("bool", shape)}
    path = choice(tmp_path, branch("Neg"), branch("Exp"), inputs)
    found = compare(path, {"x": normal(3), "c": np.full(shape, condition)})
    assert {"choice_then_Neg_result", "choice_else_Exp_result", "y"} <= {node.name for node in found.nodes}


def test_a_branch_that_is_not_taken_may_divide_by_zero(tmp_path: Path) -> None:
    inputs = {"x": ("int64", [3]), "c": ("bool", [])}
    path = choice(tmp_path, branch("Identity"), branch("Div", "x", "x"), inputs)
    compare(path, {"x": np.array([0, 1, 2]), "c": np.array(True)})


def test_both_branches_of_a_symbolic_shape(tmp_path: Path) -> None:
    inputs = {"x": ("float32", ["n"]), "c": ("bool", [])}
    path = choice(tmp_path, branch("Neg"), branch("Exp"), inputs)
    compare(path, {"x": normal(5), "c": np.array(False)}, {"n": 5})


def test_branches_inside_of_branches(tmp_path: Path) -> None:
    inner = helper.make_node("If", ["c"], ["inner"], then_branch=branch("Neg"), else_branch=branch("Exp"))
    path = choice(tmp_path, graph(inner), graph(helper.make_node("Abs", ["x"], ["a"])))
    for condition in (True, False):
        compare(path, {"x": normal(3), "c": np.array(condition)})


@pytest.mark.parametrize(
    ("yes", "no", "why"),
    [
        (branch("Neg"), branch("Concat", "x", "x", axis=0), r"output 0 has shape \[3\] or \[6\]"),
        (branch("Neg"), branch("SequenceConstruct"), "output 0 is a tensor, sequence or optional"),
        (branch("SequenceConstruct"), branch("SequenceConstruct", "x", "x"), "output 0 has 1 or 2 elements"),
        (branch("Neg"), branch("NonZero"), "else_branch cannot be compiled: NonZero inside of it"),
        (branch("Reshape", "x", "x_shape"), branch("Neg"), "then_branch cannot be compiled: .3. cannot become .2."),
    ],
)
def test_branches_that_need_the_condition(tmp_path: Path, yes: onnx.GraphProto, no: onnx.GraphProto, why: str) -> None:
    node = helper.make_node("If", ["c"], ["y"], "choice", then_branch=yes, else_branch=no)
    path = save(tmp_path / "m.onnx", [node], VECTOR, ["y"], {"x_shape": np.array([2])})
    with pytest.raises(UnsupportedModelError, match=why) as caught:
        import_model(path)
    assert caught.value.needed == ("c",)


def test_branches_that_cost_too_much_for_both(tmp_path: Path) -> None:
    inputs = {"x": ("float32", [1024, 1024]), "c": ("bool", [])}
    path = choice(tmp_path, branch("MatMul", "x", "x"), branch("Neg"), inputs)
    with pytest.raises(UnsupportedModelError, match="1 nodes and 1073741824 operations") as caught:
        import_model(path)
    assert caught.value.needed == ("c",)


@pytest.mark.parametrize(
    ("yes", "no", "why"),
    [
        (branch("Neg"), branch("Shape"), "output 0 is f32 from then_branch, i64 from else_branch"),
        (branch("Neg"), graph(helper.make_node("Neg", ["strange"], ["n"])), "'strange' is defined nowhere"),
        (branch("Neg"), graph(helper.make_node("Split", ["x"], ["a", "b", "d"], axis=0)), "else_branch has 3 outputs"),
    ],
)
def test_branches_that_are_wrong(tmp_path: Path, yes: onnx.GraphProto, no: onnx.GraphProto, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        import_model(choice(tmp_path, yes, no))


def test_a_branch_that_is_missing(tmp_path: Path) -> None:
    node = helper.make_node("If", ["c"], ["y"], "choice", then_branch=branch("Neg"))
    path = save(tmp_path / "m.onnx", [node], VECTOR, ["y"])
    with pytest.raises(ConfigError, match="node 'choice' .If.: the attribute 'else_branch' is missing"):
        import_model(path)
