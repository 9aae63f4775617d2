"""Bodies: what they read from around them, what is computed once, and the types that they declare."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.helper import make_node

from tests.importer.control.test_loop import YES, body, model
from tests.importer.reference import compare, normal, save
from tilec.errors import ConfigError, UnsupportedError
from tilec.importer import import_model

F32 = TensorProto.FLOAT


def test_a_name_of_the_body_hides_one_around_it(tmp_path: Path) -> None:
    """ONNX wants names to differ; what is meant is plain all the same."""
    nodes = [YES, make_node("Exp", ["v"], ["w"]), make_node("Neg", ["w"], ["n"])]
    before = [make_node("Abs", ["x"], ["w"])]
    path = model(tmp_path, body(nodes, {"v": F32}, ["on", "n"]), 1, outputs=["y"], before=before)
    assert [node.op for node in import_model(path).graph.nodes] == ["Exp", "Neg"]


def test_constants_of_a_body_exist_once(tmp_path: Path) -> None:
    inner = body([YES, make_node("Add", ["v", "big"], ["s"])], {"v": F32}, ["on", "s"], {"big": normal(100)})
    graph = compare(model(tmp_path, inner, inputs={"x": ("float32", [100])}, outputs=["y"]), {"x": normal(100)})
    assert list(graph.constants) == ["loop_big"]


def test_nodes_of_a_body_need_no_order(tmp_path: Path) -> None:
    inner = body([make_node("Neg", ["e"], ["n"]), make_node("Exp", ["v"], ["e"]), YES], {"v": F32}, ["on", "n"])
    graph = import_model(model(tmp_path, inner, 2, outputs=["y"])).graph
    assert [node.op for node in graph.nodes] == ["Exp", "Neg", "Exp", "Neg"]


def test_what_an_inner_body_reads_varies_with_the_outer_one(tmp_path: Path) -> None:
    """The inner branch reads nothing but the carried value of the loop around it."""
    yes, no = (
        helper.make_graph([make_node(op, ["v"], [f"{op}_v"])], op, [], [onnx.ValueInfoProto(name=f"{op}_v")])
        for op in ("Neg", "Exp")
    )
    nodes = [YES, make_node("If", ["c"], ["n"], then_branch=yes, else_branch=no)]
    inputs = {"x": ("float32", [3]), "c": ("bool", [])}
    path = model(tmp_path, body(nodes, {"v": F32}, ["on", "n"]), 2, outputs=["y"], inputs=inputs)
    for condition in (True, False):
        compare(path, {"x": normal(3), "c": np.array(condition)})


def test_chance_is_not_computed_once(tmp_path: Path) -> None:
    """Random numbers that fall back take the loop with them, and do not count as constant in it."""
    noise = make_node("RandomNormal", [], ["r"], shape=[3])
    inner = body([YES, noise, make_node("Add", ["v", "r"], ["s"])], {"v": F32}, ["on", "s"])
    with pytest.raises(UnsupportedError, match="node 'loop' .Loop.: RandomNormal inside of it"):
        import_model(model(tmp_path, inner, outputs=["y"]))


def test_sparse_constants(tmp_path: Path) -> None:
    inner = body([YES, make_node("Neg", ["v"], ["n"])], {"v": F32}, ["on", "n"])
    values = helper.make_tensor("s", F32, [1], [1.0])
    inner.sparse_initializer.append(helper.make_sparse_tensor(values, helper.make_tensor("i", 7, [1], [0]), [3]))
    with pytest.raises(UnsupportedError, match="sparse constants in body"):
        import_model(model(tmp_path, inner, outputs=["y"]))


@pytest.mark.parametrize(("index", "kind"), [(2, "input 'v'"), (1, "output 'n'")])
def test_declared_types(tmp_path: Path, index: int, kind: str) -> None:
    inner = body([YES, make_node("Neg", ["v"], ["n"])], {"v": F32}, ["on", "n"])
    port = (inner.input if index == 2 else inner.output)[index]
    port.CopyFrom(helper.make_tensor_value_info(port.name, TensorProto.DOUBLE, [3]))
    with pytest.raises(ConfigError, match=f"{kind} of body is f32, declared as f64"):
        import_model(model(tmp_path, inner, outputs=["y"]))


def test_a_result_inside_of_another_type_than_declared(tmp_path: Path) -> None:
    inner = body([YES, make_node("Neg", ["v"], ["m"]), make_node("Abs", ["m"], ["n"])], {"v": F32}, ["on", "n"])
    inner.value_info.append(helper.make_tensor_value_info("m", F32, [3]))
    import_model(model(tmp_path, inner, outputs=["y"]))
    inner.value_info[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    with pytest.raises(ConfigError, match="tensor 'm' of body is f32, declared as f64"):
        import_model(model(tmp_path, inner, outputs=["y"]))


def test_a_sequence_where_a_tensor_is_declared(tmp_path: Path) -> None:
    inner = body([YES, make_node("Neg", ["v"], ["n"])], {"v": F32}, ["on", "n"])
    nodes = [
        make_node("SequenceConstruct", ["x"], ["s"]),
        make_node("Loop", ["two", "", "s"], ["y"], "loop", body=inner),
    ]
    path = save(tmp_path / "m.onnx", nodes, {"x": ("float32", [3])}, ["y"], {"two": np.int64(2)})
    inner.input[2].CopyFrom(helper.make_tensor_value_info("v", F32, [3]))
    with pytest.raises(ConfigError, match="input 'v' of body is no tensor, declared as f32"):
        import_model(path)
