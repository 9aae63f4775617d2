"""Loop: unrolled with known trip counts and conditions, refused with reason, number and remedy elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.helper import make_node

from tests.importer.reference import compare, normal, run, save
from tilec.errors import ConfigError, UnsupportedError
from tilec.importer import UnsupportedModelError, import_model
from tilec.importer.control.unroll import MAX_NODES
from tilec.ir.text import text_of

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
VECTOR = {"x": ("float32", [3])}
YES = make_node("Identity", ["go"], ["on"])


def body(
    nodes: Sequence[onnx.NodeProto],
    carried: Mapping[str, int],
    outputs: Sequence[str],
    weights: Mapping[str, Any] | None = None,
) -> onnx.GraphProto:
    """A body with inputs `i`, `go` and the carried values (name -> element type), whose outputs have no types."""
    types = {"i": I64, "go": BOOL, **carried}
    inputs = [
        helper.make_tensor_value_info(name, code, [] if name in ("i", "go") else None) for name, code in types.items()
    ]
    tensors = [onnx.numpy_helper.from_array(np.asarray(a), n) for n, a in (weights or {}).items()]
    return helper.make_graph(list(nodes), "body", inputs, [onnx.ValueInfoProto(name=n) for n in outputs], tensors)


def model(
    folder: Path,
    inner: onnx.GraphProto,
    trips: Any = 4,
    go: Any = None,
    carried: Sequence[str] = ("x",),
    outputs: Sequence[str] = ("y", "all"),
    inputs: Mapping[str, Any] = VECTOR,
    before: Sequence[onnx.NodeProto] = (),
    opset: int = 20,
) -> Path:
    """A model of one loop; `trips` and `go` are constants, names of tensors or absent."""
    weights: dict[str, Any] = {}
    names = []
    for name, given, dtype in (("trips", trips, np.int64), ("start", go, np.bool_)):
        names.append(given if isinstance(given, str) else "" if given is None else name)
        if given is not None and not isinstance(given, str):
            weights[name] = np.array(given, dtype)
    loop = make_node("Loop", [*names, *carried], list(outputs), "loop", body=inner)
    return save(folder / "m.onnx", [*before, loop], inputs, [o for o in outputs if o], weights, opset)


def doubled(**weights: Any) -> onnx.GraphProto:
    """y = 2 * x, and every x + i on the way."""
    nodes = [
        YES,
        make_node("Add", ["v", "v"], ["double"]),
        make_node("Cast", ["i"], ["f"], to=F32),
        make_node("Add", ["v", "f"], ["given"]),
    ]
    return body(nodes, {"v": F32}, ["on", "double", "given"], weights)


@pytest.mark.parametrize("opset", [8, 11, 13, 16, 21])
@pytest.mark.parametrize("trips", [1, 4])
def test_a_known_trip_count(tmp_path: Path, trips: int, opset: int) -> None:
    path = model(tmp_path, doubled(), trips, go=True, opset=opset)
    graph = compare(path, {"x": normal(3)})
    wanted = [f"loop_{i}_double" for i in range(trips - 1)] + ["y"]
    assert [node.name for node in graph.nodes if node.op == "Add" and "given" not in node.name] == wanted
    assert all(node.origin == ("loop",) for node in graph.nodes)


def test_a_number_and_a_condition_of_rank_1(tmp_path: Path) -> None:
    inner = doubled()
    inner.input[0].CopyFrom(helper.make_tensor_value_info("i", I64, [1]))
    inner.input[1].CopyFrom(helper.make_tensor_value_info("go", BOOL, [1]))
    graph = compare(model(tmp_path, inner, [3], [True], opset=10), {"x": normal(3)})
    assert [node.op for node in graph.nodes].count("Add") == 6


def test_more_iterations_than_are_stacked_at_once(tmp_path: Path) -> None:
    compare(model(tmp_path, doubled(), 101), {"x": normal(3) / 1e20})


@pytest.mark.parametrize(("trips", "go"), [(0, True), (4, False), (-3, None)])
def test_no_iteration(tmp_path: Path, trips: int, go: bool | None) -> None:
    inner = doubled()
    inner.input[2].CopyFrom(helper.make_tensor_value_info("v", F32, [3]))
    graph = compare(model(tmp_path, inner, trips, go), {"x": normal(3)})
    assert [str(e) for e in graph.tensors["all"].shape] == ["Const(value=0)", "Const(value=3)"]


def test_no_iteration_of_a_body_that_declares_what_it_gives(tmp_path: Path) -> None:
    inner = doubled()
    inner.output[2].CopyFrom(helper.make_tensor_value_info("given", F32, [3]))
    graph = compare(model(tmp_path, inner, 0), {"x": normal(3)})
    assert not any("never" in name for name in graph.tensors)


def test_a_condition_computed_from_the_iteration(tmp_path: Path) -> None:
    """`while i < 3`, as exporters write it: the trip count is the largest integer there is."""
    nodes = [
        make_node("Add", ["i", "one"], ["next"]),
        make_node("Less", ["next", "end"], ["less"]),
        make_node("And", ["less", "go"], ["on"]),
        make_node("Neg", ["v"], ["minus"]),
        make_node("Identity", ["i"], ["number"]),
    ]
    inner = body(nodes, {"v": F32}, ["on", "minus", "number"], {"one": np.int64(1), "end": np.int64(3)})
    for trips in (2**63 - 1, None):
        graph = compare(model(tmp_path, inner, trips, go=True), {"x": normal(3)})
        assert [node.op for node in graph.nodes].count("Neg") == 3


def test_a_condition_computed_from_a_carried_counter(tmp_path: Path) -> None:
    nodes = [
        make_node("Mul", ["n", "two"], ["more"]),
        make_node("Shape", ["x"], ["size"]),
        make_node("Squeeze", ["size"], ["end"]),
        make_node("LessOrEqual", ["more", "end"], ["on"]),
        make_node("Exp", ["v"], ["e"]),
    ]
    inner = body(nodes, {"v": F32, "n": I64}, ["on", "e", "more"], {"two": np.int64(2)})
    path = model(tmp_path, inner, None, go=True, carried=["x", "one"], outputs=["y", "last"], before=[one()])
    graph = compare(path, {"x": normal(3) / 10})
    assert [node.op for node in graph.nodes].count("Exp") == 2


def one() -> onnx.NodeProto:
    return make_node("Constant", [], ["one"], value_int=1)


def test_a_trip_count_computed_from_shapes(tmp_path: Path) -> None:
    before = [
        make_node("Shape", ["x"], ["size"]),
        make_node("Constant", [], ["zero"], value_int=0),
        make_node("Gather", ["size", "zero"], ["rows"]),
        make_node("Cast", ["rows"], ["small"], to=TensorProto.INT32),
        make_node("Cast", ["small"], ["trips"], to=I64),
    ]
    nodes = [YES, make_node("Gather", ["x", "i"], ["row"]), make_node("Add", ["v", "row"], ["sum"])]
    inner = body(nodes, {"v": F32}, ["on", "sum"])
    inputs = {"x": ("float32", [5, 3]), "start": ("float32", [3])}
    path = model(tmp_path, inner, "trips", None, ["start"], ["y"], inputs, before)
    compare(path, {"x": normal(5, 3), "start": normal(3)})


def test_a_carried_value_that_changes_its_shape(tmp_path: Path) -> None:
    inner = body([YES, make_node("Concat", ["v", "x"], ["longer"], axis=0)], {"v": F32}, ["on", "longer"])
    graph = compare(model(tmp_path, inner, outputs=["y"]), {"x": normal(3)})
    assert str(graph.tensors["y"].shape[0]) == "Const(value=15)"


def test_a_symbolic_size(tmp_path: Path) -> None:
    path = model(tmp_path, doubled(), inputs={"x": ("float32", ["n"])})
    compare(path, {"x": normal(7)}, {"n": 7})


def test_what_does_not_vary_is_computed_once(tmp_path: Path) -> None:
    nodes = [
        YES,
        make_node("Constant", [], ["w"], value=onnx.numpy_helper.from_array(normal(3, 100))),
        make_node("MatMul", ["x", "w"], ["outer"]),
        make_node("Add", ["v", "outer"], ["sum"]),
    ]
    inner = body(nodes, {"v": F32}, ["on", "sum"], {"unused": normal(2)})
    path = model(tmp_path, inner, carried=["start"], outputs=["y"], inputs={**VECTOR, "start": ("float32", [100])})
    graph = compare(path, {"x": normal(3), "start": normal(100)})
    assert [node.op for node in graph.nodes] == ["MatMul", "Add", "Add", "Add", "Add"]
    assert len(graph.constants) == 1


def test_outputs_that_nobody_reads(tmp_path: Path) -> None:
    graph = import_model(model(tmp_path, doubled(), outputs=["y", ""])).graph
    assert [node.op for node in graph.nodes] == ["Add"] * 4


def test_a_loop_in_a_loop(tmp_path: Path) -> None:
    inner = make_node("Loop", ["i", "", "v"], ["w", "steps"], "inner", body=named_inner())
    outer = body([YES, inner, make_node("Neg", ["w"], ["minus"])], {"v": F32}, ["on", "minus"])
    graph = compare(model(tmp_path, outer, 3, outputs=["y"]), {"x": normal(3)})
    assert "loop_2_inner_0_inner_sum" in graph.tensors
    assert [node.op for node in graph.nodes].count("Add") == 0 + 1 + 2


def named_inner() -> onnx.GraphProto:
    nodes = [make_node("Identity", ["igo"], ["ion"]), make_node("Add", ["iv", "x"], ["inner_sum"])]
    infos = [
        helper.make_tensor_value_info("j", I64, []),
        helper.make_tensor_value_info("igo", BOOL, []),
        helper.make_tensor_value_info("iv", F32, None),
    ]
    outputs = [onnx.ValueInfoProto(name=n) for n in ("ion", "inner_sum", "iv")]
    return helper.make_graph(nodes, "inner", infos, outputs)


def test_a_choice_in_a_loop(tmp_path: Path) -> None:
    """The parity of the iteration is known."""
    even = helper.make_graph([make_node("Neg", ["v"], ["n"])], "even", [], [onnx.ValueInfoProto(name="n")])
    odd = helper.make_graph([make_node("Exp", ["v"], ["e"])], "odd", [], [onnx.ValueInfoProto(name="e")])
    nodes = [
        YES,
        make_node("Mod", ["i", "two"], ["rest"]),
        make_node("Cast", ["rest"], ["is_odd"], to=BOOL),
        make_node("If", ["is_odd"], ["w"], then_branch=odd, else_branch=even),
    ]
    inner = body(nodes, {"v": F32}, ["on", "w"], {"two": np.int64(2)})
    graph = compare(model(tmp_path, inner, 3, outputs=["y"]), {"x": normal(3)})
    assert [node.op for node in graph.nodes] == ["Neg", "Exp", "Neg"]


def test_a_carried_sequence(tmp_path: Path) -> None:
    nodes = [YES, make_node("Add", ["x", "x"], ["d"]), make_node("SequenceInsert", ["s", "d"], ["longer"])]
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(F32, None))
    infos = [
        helper.make_tensor_value_info("i", I64, []),
        helper.make_tensor_value_info("go", BOOL, []),
        helper.make_value_info("s", kind),
    ]
    inner = helper.make_graph(
        nodes, "b", infos, [onnx.ValueInfoProto(name="on"), helper.make_value_info("longer", kind)]
    )
    before = [make_node("SequenceConstruct", ["x"], ["first"])]
    loop = make_node("Loop", ["trips", "", "first"], ["items"], "loop", body=inner)
    after = make_node("ConcatFromSequence", ["items"], ["y"], axis=0, new_axis=1)
    path = save(tmp_path / "m.onnx", [*before, loop, after], VECTOR, ["y"], {"trips": np.int64(2)})
    compare(path, {"x": normal(3)})


def test_a_trip_count_that_is_not_known(tmp_path: Path) -> None:
    path = model(tmp_path, doubled(), "n", inputs={**VECTOR, "n": ("int64", [])})
    with pytest.raises(
        UnsupportedModelError,
        match="the trip count must be known at compile time and is computed from the model's inputs",
    ) as caught:
        import_model(path)
    assert caught.value.needed == ("n",)


def test_a_condition_that_is_not_known(tmp_path: Path) -> None:
    nodes = [
        make_node("ReduceSum", ["v"], ["s"], keepdims=0),
        make_node("Greater", ["s", "limit"], ["on"]),
        make_node("Neg", ["v"], ["n"]),
    ]
    inner = body(nodes, {"v": F32}, ["on", "n"], {"limit": np.float32(0)})
    with pytest.raises(UnsupportedError, match="the condition of the loop must be known"):
        import_model(model(tmp_path, inner, outputs=["y"]))
    compare(model(tmp_path, inner, 1, outputs=["y"]), {"x": normal(3)})


def test_a_symbolic_trip_count_is_a_loop(tmp_path: Path) -> None:
    before = [make_node("Size", ["x"], ["trips"])]
    path = model(tmp_path, doubled(), "trips", inputs={"x": ("float32", ["n"])}, before=before)
    loop = import_model(path)
    assert [call.loop for call in loop.graph.calls] == ["start", "end"]
    for n in (0, 1, 3):
        unrolled = import_model(path, sizes={"n": n})
        assert not unrolled.graph.calls
        feeds = {"x": normal(n)}
        for one, other in zip(run(loop, tmp_path, feeds, {"n": n}), run(unrolled, tmp_path, feeds), strict=True):
            assert np.array_equal(one, other)


def counted(folder: Path, ahead: int) -> Path:
    """A loop as converters write recurrences of Keras: while k + 1 + ahead < n, in floats, with a weight that every
    iteration hands on."""
    inner = body(
        [
            make_node("Add", ["k", "one"], ["after"]),
            make_node("Add", ["after", "ahead"], ["far"]),
            *(make_node("Cast", [name], [f"{name}_f"], to=F32) for name in ("far", "i", "n")),
            make_node("Less", ["far_f", "n_f"], ["more"]),
            make_node("Less", ["i_f", "n_f"], ["inside"]),
            make_node("And", ["inside", "more"], ["on"]),
            make_node("Mul", ["v", "w"], ["product"]),
            make_node("Add", ["product", "far_f"], ["next"]),
            make_node("Identity", ["w"], ["same"]),
            make_node("Identity", ["n"], ["all"]),
        ],
        {"k": I64, "v": F32, "w": F32, "n": I64},
        ["on", "after", "next", "same", "all", "next"],
        {"one": np.int64(1), "ahead": np.int64(ahead)},
    )
    before = [
        make_node("Size", ["x"], ["trips"]),
        make_node("Cast", ["trips"], ["trips_f"], to=F32),
        make_node("Constant", [], ["none"], value_float=0.0),
        make_node("Less", ["none", "trips_f"], ["some"]),
        make_node("And", ["some", "some"], ["go"]),
        make_node("Constant", [], ["zero"], value_int=0),
    ]
    inputs = {"x": ("float32", ["n"]), "w": ("float32", [1])}
    carried = ("zero", "x", "w", "trips")
    return model(folder, inner, "trips", "go", carried, ["count", "y", "weight", "end", "rows"], inputs, before)


def test_a_condition_that_a_trip_count_implies(tmp_path: Path) -> None:
    path = counted(tmp_path, 0)
    loop = import_model(path)
    start, end = loop.graph.calls
    assert (start.loop, end.loop) == ("start", "end")
    assert start.carried == 2, "the counter and the vector; the weight and the end are handed on"
    assert [text_of(each.holds) for each in loop.graph.constraints] == ["n // 16777216 == 0"], "floats count so far"
    for n in (0, 1, 3, 6):
        unrolled = import_model(path, sizes={"n": n})
        assert not unrolled.graph.calls
        feeds = {"x": normal(n), "w": normal(1)}
        for one, other in zip(run(loop, tmp_path, feeds, {"n": n}), run(unrolled, tmp_path, feeds), strict=True):
            assert np.array_equal(one, other)


def test_a_condition_that_ends_before_the_trip_count(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="the condition of a loop whose trip count depends on sizes is computed"):
        import_model(counted(tmp_path, 1))


@pytest.mark.parametrize(
    ("trips", "count"),
    [
        (10**8, "100000000 iterations takes 400000000"),
        (2**63 - 1, "9223372036854775807 iterations takes 36893488147419103228"),
    ],
)
def test_too_many_iterations(tmp_path: Path, trips: int, count: str) -> None:
    with pytest.raises(UnsupportedError, match=f"unrolling {count}.*the limit is {MAX_NODES}\n *The loop runs in the"):
        import_model(model(tmp_path, doubled(), trips))


def test_a_loop_without_end(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="unrolling more than 501 iterations"):
        import_model(model(tmp_path, doubled(), None))


@pytest.mark.parametrize(
    ("nodes", "outputs", "why"),
    [
        ([YES], ["on"], "body has 1 outputs, it must have 2: the loop carries 1 values"),
        ([YES, make_node("Shape", ["v"], ["s"])], ["on", "s", "v"], "carried value 0 is f32 before .* i64 after it"),
        ([make_node("Neg", ["v"], ["on"])], ["on", "v", "v"], "the condition is no bool tensor"),
        ([YES, make_node("Neg", ["w"], ["n"])], ["on", "n", "v"], "input 'w' is defined nowhere"),
        ([YES], ["on", "n", "v"], "node 'loop' .Loop.: input 'n' is defined nowhere"),
        (
            [YES, make_node("Neg", ["n"], ["m"]), make_node("Neg", ["m"], ["n"])],
            ["on", "n", "v"],
            "the graph has a cycle",
        ),
        ([YES, make_node("Neg", ["v", "v"], ["n"])], ["on", "n", "v"], "node 'loop/0/Neg_1' .Neg.: 2 inputs"),
    ],
)
def test_bodies_that_are_wrong(
    tmp_path: Path, nodes: Sequence[onnx.NodeProto], outputs: Sequence[str], why: str
) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        import_model(model(tmp_path, body(nodes, {"v": F32}, outputs)))
    assert "node 'loop" in str(caught.value)


def test_a_body_of_other_types(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="input 'v' of body is f32, declared as i64"):
        import_model(model(tmp_path, body([YES], {"v": I64}, ["on", "v", "v"])))


def test_a_loop_without_a_body(tmp_path: Path) -> None:
    loop = make_node("Loop", ["", "", "x"], ["y"], "loop")
    with pytest.raises(ConfigError, match="node 'loop' .Loop.: the attribute 'body' is missing"):
        import_model(save(tmp_path / "m.onnx", [loop], VECTOR, ["y"]))


def test_more_outputs_than_the_body_gives(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="3 outputs, the body gives 2"):
        import_model(model(tmp_path, doubled(), outputs=["y", "all", "more"]))


def field(number: int, content: bytes) -> bytes:
    """A length-delimited field of a protobuf message."""
    length = b""
    rest = len(content)
    while rest > 127:
        length, rest = length + bytes([rest & 127 | 128]), rest >> 7
    return varint(number << 3 | 2) + length + bytes([rest]) + content


def varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128, value >> 7])


def nested(folder: Path, depth: int) -> Path:
    """A model of loops inside of each other, deeper than protobuf would write it."""
    inner = body([YES, make_node("Neg", ["v"], ["n0"])], {"v": F32}, ["on", "n0"]).SerializeToString()
    loop = make_node("Loop", ["trips", "", "v"], ["n"])
    around = body([YES], {"v": F32}, ["on", "n"])
    for _ in range(depth):
        attribute = field(1, b"body") + varint(20 << 3) + b"\x05" + field(6, inner)
        inner = around.SerializeToString() + field(1, loop.SerializeToString() + field(5, attribute))
    path = model(folder, doubled(), 1, outputs=["y"])
    proto = onnx.load(path)
    del proto.graph.node[:]
    node = make_node("Loop", ["trips", "", "x"], ["y"]).SerializeToString()
    attribute = field(1, b"body") + varint(20 << 3) + b"\x05" + field(6, inner)
    path.write_bytes(proto.SerializeToString() + field(7, field(1, node + field(5, attribute))))
    return path


def test_loops_inside_of_loops(tmp_path: Path) -> None:
    assert len(import_model(nested(tmp_path, 25)).graph.nodes) == 1


@pytest.mark.parametrize("depth", [60, 1000])
def test_loops_deeper_than_protobuf_reads(tmp_path: Path, depth: int) -> None:
    with pytest.raises(ConfigError, match="not an ONNX model"):
        import_model(nested(tmp_path, depth))


INEXACT: dict[str, list[onnx.NodeProto]] = {
    "Exp": [make_node("Exp", ["one"], ["real"])],
    "ReduceMean": [make_node("ReduceMean", ["row"], ["real"], keepdims=0)],
    "MatMul": [make_node("MatMul", ["row", "row"], ["real"])],
    "Log": [make_node("Exp", ["one"], ["e"]), make_node("Mul", ["e", "e"], ["f"]), make_node("Log", ["f"], ["real"])],
}


@pytest.mark.parametrize("kind", INEXACT)
def test_a_trip_count_and_a_condition_from_constants_by_inexact_steps(tmp_path: Path, kind: str) -> None:
    inner = body([make_node("Add", ["x", "x"], ["sum"]), YES], {"x": F32}, ["on", "sum"])
    same = helper.make_graph([make_node("Identity", ["z"], ["u"])], "t", [], [onnx.ValueInfoProto(name="u")])
    nonzero = [make_node("NonZero", ["z"], ["n"]), make_node("Cast", ["n"], ["v"], to=F32)]
    count = helper.make_graph(nonzero, "e", [], [onnx.ValueInfoProto(name="v")])
    nodes = [
        *INEXACT[kind],
        make_node("Round", ["real"], ["whole"]),
        make_node("Cast", ["whole"], ["trips"], to=I64),
        make_node("Loop", ["trips", "", "x"], ["z"], "loop", body=inner),
        make_node("Greater", ["real", "half"], ["c"]),
        make_node("If", ["c"], ["y"], "if", then_branch=same, else_branch=count),
    ]
    weights = {"one": np.float32(1), "half": np.float32(0.5), "row": np.float32([1.2, 1.3, 0.4])}
    compare(save(tmp_path / "m.onnx", nodes, VECTOR, ["y"], weights), {"x": normal(3)})
