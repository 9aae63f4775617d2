"""Sequences and optionals inside of a model: tracked at import, so that only tensors are left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.helper import make_node

from tests.importer.reference import compare, normal, save
from tilec.errors import ConfigError, UnsupportedError
from tilec.importer import UnsupportedModelError, import_model

F32, I64 = TensorProto.FLOAT, TensorProto.INT64
INPUTS = {"x": ("float32", [2, 3]), "z": ("float32", [2, 3])}
FEEDS = {"x": normal(2, 3), "z": normal(2, 3, seed=1)}


def model(
    folder: Path,
    *nodes: onnx.NodeProto,
    inputs: Mapping[str, Any] = INPUTS,
    outputs: Sequence[str] = ("y",),
    opset: int = 20,
    **weights: Any,
) -> Path:
    return save(folder / "m.onnx", nodes, inputs, outputs, weights, opset)


def pair(*names: str) -> onnx.NodeProto:
    return make_node("SequenceConstruct", list(names or ("x", "z")), ["s"])


@pytest.mark.parametrize("place", [0, 1, -1, -2])
def test_at(tmp_path: Path, place: int) -> None:
    nodes = [pair(), make_node("SequenceAt", ["s", "i"], ["e"], "at"), make_node("Neg", ["e"], ["y"])]
    graph = compare(model(tmp_path, *nodes, i=np.int64(place)), FEEDS)
    assert [node.op for node in graph.nodes] == ["Neg"]


@pytest.mark.parametrize("place", [None, 0, 1, 2, -1, -2])
def test_insert(tmp_path: Path, place: int | None) -> None:
    nodes = [
        pair(),
        make_node("Abs", ["x"], ["a"]),
        make_node("SequenceInsert", ["s", "a", *(["i"] if place is not None else [])], ["t"]),
        make_node("ConcatFromSequence", ["t"], ["y"], axis=0),
    ]
    weights = {} if place is None else {"i": np.int64(place)}
    compare(model(tmp_path, *nodes, **weights), FEEDS)


@pytest.mark.parametrize("place", [None, 0, 1, -1, -2])
def test_erase(tmp_path: Path, place: int | None) -> None:
    nodes = [
        pair(),
        make_node("SequenceErase", ["s", *(["i"] if place is not None else [])], ["t"]),
        make_node("SequenceLength", ["t"], ["n"]),
        make_node("ConcatFromSequence", ["t"], ["y"], axis=1, new_axis=1),
    ]
    weights = {} if place is None else {"i": np.int64(place)}
    compare(model(tmp_path, *nodes, outputs=["y", "n"], **weights), FEEDS)


def test_a_sequence_that_grows_from_nothing(tmp_path: Path) -> None:
    nodes = [
        make_node("SequenceEmpty", [], ["e"], dtype=F32),
        make_node("SequenceLength", ["e"], ["n"]),
        make_node("SequenceInsert", ["e", "x"], ["s"]),
        make_node("Identity", ["s"], ["t"]),
        make_node("SequenceAt", ["t", "n"], ["y"]),
    ]
    compare(model(tmp_path, *nodes), FEEDS)


@pytest.mark.parametrize(("axis", "new"), [(0, 0), (1, 0), (-1, 0), (0, 1), (2, 1), (-1, 1), (-3, 1)])
def test_concatenation(tmp_path: Path, axis: int, new: int) -> None:
    node = make_node("ConcatFromSequence", ["s"], ["y"], axis=axis, new_axis=new)
    compare(model(tmp_path, pair("x", "z", "x"), node), FEEDS)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("split", [None, 1, 2, 5, [1, 0, 2]])
def test_splits(tmp_path: Path, split: int | list[int] | None, axis: int) -> None:
    parts = ["x", *(["sizes"] if split is not None else [])]
    nodes = [
        make_node("SplitToSequence", parts, ["s"], axis=axis),
        make_node("SequenceLength", ["s"], ["n"]),
        make_node("SequenceAt", ["s", "last"], ["y"]),
        make_node("ConcatFromSequence", ["s"], ["all"], axis=axis),
    ]
    weights: dict[str, Any] = {"last": np.int64(-1)}
    if split is not None:
        weights["sizes"] = np.array(split)
    path = model(tmp_path, *nodes, inputs={"x": ("float32", [3, 3])}, outputs=["y", "n", "all"], **weights)
    compare(path, {"x": normal(3, 3)})


@pytest.mark.parametrize("axis", [0, 1])
def test_single_slices(tmp_path: Path, axis: int) -> None:
    nodes = [
        make_node("SplitToSequence", ["x"], ["s"], axis=axis, keepdims=0),
        make_node("SequenceAt", ["s", "i"], ["y"]),
    ]
    compare(model(tmp_path, *nodes, i=np.int64(1)), FEEDS)


def added() -> onnx.GraphProto:
    nodes = [make_node("Add", ["a", "b"], ["c"]), make_node("Shape", ["c"], ["d"])]
    infos = [helper.make_tensor_value_info(name, F32, None) for name in ("a", "b", "c")]
    return helper.make_graph(nodes, "b", infos[:2], [infos[2], helper.make_tensor_value_info("d", I64, [2])])


@pytest.mark.parametrize("other", ["s", "x"])
def test_a_body_for_every_element(tmp_path: Path, other: str) -> None:
    nodes = [
        pair(),
        make_node("SequenceMap", ["s", other], ["t", "u"], "map", body=added()),
        make_node("ConcatFromSequence", ["t"], ["y"], axis=0),
        make_node("ConcatFromSequence", ["u"], ["shapes"], axis=0),
    ]
    graph = compare(model(tmp_path, *nodes, outputs=["y", "shapes"]), FEEDS)
    assert {"map_0_c", "map_1_c"} <= set(graph.tensors)


def test_a_body_for_no_element(tmp_path: Path) -> None:
    nodes = [
        make_node("SequenceEmpty", [], ["s"]),
        make_node("SequenceMap", ["s", "x"], ["t", "u"], body=added()),
        make_node("SequenceLength", ["t"], ["y"]),
    ]
    compare(model(tmp_path, *nodes), FEEDS)


def test_a_choice_between_sequences(tmp_path: Path) -> None:
    def branch(*names: str) -> onnx.GraphProto:
        kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(F32, [2, 3]))
        node = make_node("SequenceConstruct", names, [f"s_{names[0]}"])
        return helper.make_graph([node], "b", [], [helper.make_value_info(f"s_{names[0]}", kind)])

    nodes = [
        make_node("If", ["c"], ["s"], then_branch=branch("x", "z"), else_branch=branch("z", "x")),
        make_node("ConcatFromSequence", ["s"], ["y"], axis=0),
    ]
    path = model(tmp_path, *nodes, inputs={**INPUTS, "c": ("bool", [])})
    for condition in (True, False):
        compare(path, {**FEEDS, "c": np.array(condition)})


def optional_of(*inputs: str) -> onnx.NodeProto:
    kind = helper.make_tensor_type_proto(F32, [2, 3])
    return make_node("Optional", list(inputs), ["o"], **({} if inputs else {"type": kind}))


@pytest.mark.parametrize("opset", [15, 18])
@pytest.mark.parametrize("inputs", [(), ("x",)])
def test_whether_an_optional_holds_something(tmp_path: Path, inputs: tuple[str, ...], opset: int) -> None:
    nodes = [optional_of(*inputs), make_node("OptionalHasElement", ["o"], ["y"])]
    compare(model(tmp_path, *nodes, opset=opset), {"x": FEEDS["x"], "z": FEEDS["z"]})


@pytest.mark.parametrize("opset", [15, 18])
def test_what_an_optional_holds(tmp_path: Path, opset: int) -> None:
    nodes = [
        optional_of("x"),
        make_node("Identity", ["o"], ["p"]),
        make_node("OptionalGetElement", ["p" if opset > 15 else "o"], ["e"]),
        make_node("Neg", ["e"], ["y"]),
    ]
    if opset == 15:
        del nodes[1]
    graph = compare(model(tmp_path, *nodes, opset=opset), FEEDS)
    assert [node.op for node in graph.nodes] == ["Neg"]


def test_optionals_that_are_none(tmp_path: Path) -> None:
    nodes = [
        make_node("OptionalHasElement", ["x"], ["a"]),
        make_node("OptionalHasElement", [""], ["b"]),
        make_node("OptionalHasElement", [], ["c"]),
        make_node("OptionalGetElement", ["x"], ["e"]),
        make_node("Neg", ["e"], ["y"]),
    ]
    compare(model(tmp_path, *nodes, outputs=["a", "b", "c", "y"]), FEEDS)


def test_an_optional_sequence(tmp_path: Path) -> None:
    nodes = [
        pair(),
        make_node("Optional", ["s"], ["o"]),
        make_node("OptionalGetElement", ["o"], ["t"]),
        make_node("SequenceLength", ["t"], ["y"]),
    ]
    compare(model(tmp_path, *nodes), FEEDS)


@pytest.mark.parametrize(
    ("node", "why"),
    [
        (make_node("SequenceAt", ["s", "two"], ["y"], "n"), "position 2 of a sequence of 2 elements"),
        (make_node("SequenceInsert", ["s", "x", "three"], ["y"], "n"), "position 3 of a sequence of 2 elements"),
        (make_node("SequenceInsert", ["s", "two"], ["y"], "n"), "a sequence of f32 cannot hold i64"),
        (make_node("SequenceAt", ["x", "two"], ["y"], "n"), "input 0 .* is f32|input 0 is no sequence"),
        (make_node("SequenceAt", ["s", "x"], ["y"], "n"), "input 1 .position. is f32"),
        (make_node("SequenceAt", ["s"], ["y"], "n"), "1 inputs, the operator takes 2"),
        (make_node("Neg", ["s"], ["y"], "n"), "input 0 is no tensor"),
        (make_node("SplitToSequence", ["x", "two"], ["y"], "n", axis=2), "axis 2 of a tensor of rank 2"),
        (make_node("SplitToSequence", ["x", "parts"], ["y"], "n", axis=1), "parts of .1, 1. of an extent of 3"),
        (make_node("SplitToSequence", ["x", "none"], ["y"], "n", axis=1), "parts of size 0"),
        (
            make_node("SequenceConstruct", ["x", "two"], ["y"], "n"),
            "input 1 .* is i64|a sequence of f32 cannot hold i64",
        ),
        (make_node("OptionalGetElement", ["o"], ["y"], "n"), "the optional is empty"),
        (make_node("Optional", ["o"], ["y"], "n"), "input 0 is neither a tensor nor a sequence"),
        (make_node("ConcatFromSequence", ["e"], ["y"], "n", axis=0), "an empty sequence cannot be concatenated"),
        (make_node("SequenceErase", ["e"], ["y"], "n"), "an empty sequence has no element to erase"),
        (make_node("SequenceMap", ["x", "x"], ["y", "w"], "n", body=added()), "input 0 .*is"),
        (make_node("SequenceMap", ["s", "e"], ["y", "w"], "n", body=added()), "sequences of 2 and 0 elements"),
        (make_node("SequenceMap", ["s"], ["y", "w"], "n", body=added()), "body has 2 inputs, it must have 1"),
    ],
)
def test_what_is_wrong(tmp_path: Path, node: onnx.NodeProto, why: str) -> None:
    around = [pair(), optional_of(), make_node("SequenceEmpty", [], ["e"])]
    weights = {"two": np.int64(2), "three": np.int64(3), "parts": np.array([1, 1]), "none": np.int64(0)}
    with pytest.raises(ConfigError, match=f"node 'n'.*{why}"):
        import_model(model(tmp_path, *around, node, **weights))


def test_a_position_that_is_not_known(tmp_path: Path) -> None:
    """The node that makes the sequence has to fall back as well, and the position is still what would help."""
    path = model(tmp_path, pair(), make_node("SequenceAt", ["s", "i"], ["y"]), inputs={**INPUTS, "i": ("int64", [])})
    with pytest.raises(
        UnsupportedModelError, match="SequenceAt.: the position in the sequence must be known"
    ) as caught:
        import_model(path)
    assert caught.value.needed == ("i",)


def test_an_operator_of_a_later_opset(tmp_path: Path) -> None:
    node = make_node("SequenceMap", ["s", "x"], ["t", "u"], "map", body=added())
    with pytest.raises(UnsupportedError, match="node 'map' .SequenceMap."):
        import_model(model(tmp_path, pair(), node, make_node("SequenceLength", ["t"], ["y"]), opset=16))


def test_a_sequence_of_text(tmp_path: Path) -> None:
    node = make_node("SequenceEmpty", [], ["y"], dtype=TensorProto.STRING)
    with pytest.raises(UnsupportedError, match="a sequence of STRING"):
        import_model(model(tmp_path, node))


def test_a_sequence_as_an_output(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="SequenceConstruct"):
        import_model(model(tmp_path, pair(), outputs=["s"]))
