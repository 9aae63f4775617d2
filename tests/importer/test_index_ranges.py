"""Ranges of inputs that are used as indices: which are known, through which nodes, and which are compared at import."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from api import models
from onnx import TensorProto, helper, numpy_helper

from tilec.errors import ConfigError
from tilec.importer import import_model
from tilec.ir.bind import bind
from tilec.ir.expr import Const, constant_value
from tilec.ir.graph import IndexRange

INTEGER = TensorProto.INT64


def ranges(
    folder: Path, nodes: Sequence[onnx.NodeProto], initializers: Sequence[onnx.TensorProto] = ()
) -> list[IndexRange]:
    """The ranges of a model of `ids[b, 3]` and `table[5, 4]` that computes `y`, with b = 2."""
    inputs = [models.value("ids", "b", 3, type_=INTEGER), models.value("table", 5, 4)]
    proto = models.model(nodes, inputs, [models.value("y", None)], initializers)
    (folder / "m.onnx").write_bytes(proto.SerializeToString())
    return list(bind(import_model(folder / "m.onnx").graph, {"b": 2}).ranges)


@pytest.mark.parametrize(
    "before",
    [
        [],
        [helper.make_node("Cast", ["ids"], ["at"], to=TensorProto.INT32)],
        [helper.make_node("Transpose", ["ids"], ["t"]), helper.make_node("Unsqueeze", ["t", "zero"], ["at"])],
    ],
    ids=["itself", "cast", "moved"],
)
def test_an_input_that_is_moved_and_cast_has_a_range(tmp_path: Path, before: list[onnx.NodeProto]) -> None:
    zero = numpy_helper.from_array(np.array([0], np.int64), "zero")
    gather = helper.make_node("Gather", ["table", "at" if before else "ids"], ["y"], name="words")
    assert ranges(tmp_path, [*before, gather], [zero]) == [IndexRange("ids", Const(5), "words")]


@pytest.mark.parametrize(
    "before",
    [
        [helper.make_node("Clip", ["ids", "zero", "four"], ["at"])],
        [helper.make_node("Slice", ["ids", "starts", "ends", "axes"], ["at"])],
        [helper.make_node("Add", ["ids", "four"], ["at"])],
    ],
    ids=["clipped", "a part", "computed"],
)
def test_other_elements_than_those_of_an_input_have_none(tmp_path: Path, before: list[onnx.NodeProto]) -> None:
    numbers = {"zero": 0, "four": 4, "starts": [1], "ends": [3], "axes": [1]}
    initializers = [numpy_helper.from_array(np.array(n, np.int64), name) for name, n in numbers.items()]
    assert ranges(tmp_path, [*before, helper.make_node("Gather", ["table", "at"], ["y"])], initializers) == []


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ([helper.make_node("Slice", ["ids", "starts", "ends", "axes"], ["at"])], (("ids", 5, (1, 1)),)),
        (
            [
                helper.make_node("Slice", ["ids", "starts", "ends", "axes"], ["a"]),
                helper.make_node("Gather", ["ids", "zero"], ["c"], axis=1),
                helper.make_node("Unsqueeze", ["c", "axes"], ["b"]),
                helper.make_node("Concat", ["a", "b"], ["at"], axis=1),
                helper.make_node("GatherND", ["table", "at"], ["y"]),
            ],
            (("ids", 5, (1, 1)), ("ids", 4, (1, 0))),
        ),
        ([helper.make_node("Reshape", ["ids", "flat"], ["at"])], (("ids", 5, None),)),
        (
            [
                helper.make_node("Reshape", ["ids", "pairs"], ["at"]),
                helper.make_node("GatherND", ["table", "at"], ["y"]),
            ],
            (),
        ),
    ],
    ids=["a column", "joined", "flat", "columns of a reshape"],
)
def test_columns_of_an_input_have_ranges_of_their_own(
    tmp_path: Path, before: list[onnx.NodeProto], expected: tuple[object, ...]
) -> None:
    numbers = {"zero": 0, "starts": [1], "ends": [2], "axes": [1], "flat": [-1], "pairs": [-1, 2]}
    initializers = [numpy_helper.from_array(np.array(n, np.int64), name) for name, n in numbers.items()]
    nodes = (
        before if before[-1].op_type == "GatherND" else [*before, helper.make_node("Gather", ["table", "at"], ["y"])]
    )
    found = ranges(tmp_path, nodes, initializers)
    assert tuple((r.tensor, constant_value(r.extent), r.column) for r in found) == expected


def test_indices_that_count_on_from_an_input_are_in_range_where_the_last_is(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Gather", ["ids", "zero"], ["first"]),
        helper.make_node("Shape", ["ids"], ["batch"], start=0, end=1),
        helper.make_node("Squeeze", ["batch"], ["count"]),
        helper.make_node("Range", ["zero", "count", "one"], ["behind"]),
        helper.make_node("Add", ["first", "behind"], ["at"]),
        helper.make_node("Gather", ["table", "at"], ["y"], name="words"),
    ]
    numbers = [numpy_helper.from_array(np.array(n, np.int64), name) for name, n in (("zero", 0), ("one", 1))]
    inputs = [models.value("ids", "b", type_=INTEGER), models.value("table", 5, 4)]
    proto = models.model(nodes, inputs, [models.value("y", None)], numbers)
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    (found,) = bind(import_model(tmp_path / "m.onnx").graph, {"b": 3}).ranges
    assert (found.tensor, constant_value(found.extent), found.column) == ("ids", 5 - 2, (0, 0))


def test_a_branch_that_may_not_be_taken_requires_nothing(tmp_path: Path) -> None:
    def branch(name: str, node: onnx.NodeProto) -> onnx.GraphProto:
        return helper.make_graph([node], name, [], [models.value(name, 2, 3, 4)])

    taken = helper.make_node(
        "If",
        ["c"],
        ["y"],
        then_branch=branch("a", helper.make_node("Gather", ["table", "ids"], ["a"])),
        else_branch=branch("z", helper.make_node("Expand", ["half", "shape"], ["z"])),
    )
    inputs = [
        models.value("ids", 2, 3, type_=INTEGER),
        models.value("table", 5, 4),
        models.value("c", type_=TensorProto.BOOL),
    ]
    weights = [models.constant("half", np.float32(0.5)), models.constant("shape", np.array([2, 3, 4], np.int64))]
    proto = models.model([taken], inputs, [models.value("y", 2, 3, 4)], weights)
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    assert import_model(tmp_path / "m.onnx").graph.ranges == ()


@pytest.mark.parametrize("kind", ["Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND"])
def test_known_indices_are_compared_at_import(tmp_path: Path, kind: str) -> None:
    at = np.array([[0, 1, 2], [0, 5, 1]], np.int64)
    at = at.reshape(3, 2) if kind.endswith("ND") else at
    shape = {"ScatterND": [3], "ScatterElements": [2, 3]}.get(kind)
    updates = [] if shape is None else [models.constant("u", np.zeros(shape, np.float32))]
    node = helper.make_node(kind, ["table", "at", *(["u"] if updates else [])], ["y"])
    with pytest.raises(ConfigError, match="index 5 lies outside a dimension of extent [45]"):
        ranges(tmp_path, [node], [models.constant("at", at), *updates])
