"""Inputs: symbols from dim_params."""

from pathlib import Path
from typing import Literal

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.importer.reference import save
from tilec.errors import ConfigError, UnsupportedError, UsageError
from tilec.importer import import_model
from tilec.importer.ports import input_ports
from tilec.importer.shapes import shape_text
from tilec.ir.verify.graph import check_graph


def info(name: str, *dims: int | str | None, kind: int = TensorProto.FLOAT) -> object:
    return helper.make_tensor_value_info(name, kind, list(dims))


@pytest.mark.feature("B02")
def test_symbols_in_order_of_appearance() -> None:
    ports, symbols = input_ports([info("x", "batch", 3, "seq"), info("y", "seq", "batch size")], {}, "m")
    assert symbols == ("batch", "seq", "batch_size")
    assert [shape_text(p.shape) for p in ports] == ["[batch, 3, seq]", "[seq, batch_size]"]


def test_a_sum_of_known_names_is_an_expression() -> None:
    infos = [info("mask", "b", "past + seq"), info("x", "b", "seq"), info("k", "past - 1"), info("c", "past")]
    ports, symbols = input_ports(infos, {}, "m")
    assert symbols == ("b", "past", "seq")
    assert [shape_text(p.shape) for p in ports] == ["[b, past + seq]", "[b, seq]", "[past - 1]", "[past]"]


def test_a_name_that_only_looks_like_a_sum() -> None:
    ports, symbols = input_ports([info("x", "batch-size", "a.b")], {}, "m")
    assert symbols == ("batch_size", "a_b")
    assert shape_text(ports[0].shape) == "[batch_size, a_b]"


def test_extents_without_a_name_get_one() -> None:
    ports, symbols = input_ports([info("x", None, 3), info("y", None)], {}, "m")
    assert symbols == ("x_dim0", "y_dim0")
    assert shape_text(ports[1].shape) == "[y_dim0]"


@pytest.mark.parametrize("nothing", ["?", "-1", "", " ", "None", "*", "..."])
def test_what_names_nothing_is_another_size_each_time(nothing: str) -> None:
    ports, symbols = input_ports([info("x", nothing, 3, nothing), info("y", nothing, "unk__1", "unk__1")], {}, "m")
    assert symbols == ("x_dim0", "x_dim2", "y_dim0", "unk_1")
    assert [shape_text(p.shape) for p in ports] == ["[x_dim0, 3, x_dim2]", "[y_dim0, unk_1, unk_1]"]


def test_words_of_the_language_are_no_symbols() -> None:
    assert input_ports([info("x", "max", "N", "inf")], {}, "m")[1] == ("max_", "N", "inf_")


def test_sizes_bind_beforehand() -> None:
    ports, symbols = input_ports([info("x", "batch", "seq", "batch + seq")], {"batch": 2}, "m")
    assert symbols == ("seq",)
    assert shape_text(ports[0].shape) == "[2, seq, seq + 2]"


def test_sizes_of_unknown_symbols_and_negative_ones() -> None:
    with pytest.raises(UsageError, match="no symbol 'bacth'") as error:
        input_ports([info("x", "batch")], {"bacth": 2}, "m")
    assert error.value.hint == "Did you mean 'batch'?"
    with pytest.raises(UsageError, match="cannot be negative"):
        input_ports([info("x", "batch")], {"batch": -1}, "m")


def test_inputs_that_are_no_tensors_of_known_rank() -> None:
    with pytest.raises(UnsupportedError, match="element type STRING is not supported"):
        input_ports([info("x", 2, kind=TensorProto.STRING)], {}, "m")
    sequence = helper.make_value_info("s", helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, [2])))
    with pytest.raises(UnsupportedError, match="only tensors can be inputs, this is sequence"):
        input_ports([sequence], {}, "m")
    rankless = helper.make_tensor_value_info("x", TensorProto.FLOAT, None)
    with pytest.raises(UnsupportedError, match="the rank of the input is unknown"):
        input_ports([rankless], {}, "m")


def without_type(*of: str) -> object:
    """An input `x` whose type ends where its kinds `of` (`sequence`, `tensor`) end."""
    port = onnx.ValueInfoProto(name="x")
    proto = port.type
    for kind in of:
        inner = getattr(proto, f"{kind}_type")
        inner.SetInParent()
        proto = getattr(inner, "elem_type", None)
    return port


@pytest.mark.parametrize(
    ("port", "problem"),
    [
        (without_type(), "no type"),
        (without_type("tensor"), "no element type"),
        (without_type("sparse_tensor"), "no element type"),
        (without_type("sequence"), "no type"),
        (without_type("optional", "sequence", "tensor"), "no element type"),
        (info("x", 2, kind=99), "the element type 99, which ONNX .* does not define"),
    ],
)
@pytest.mark.parametrize("fallback", ["refuse", "allow"])
def test_an_input_without_a_type_is_refused_at_import(
    tmp_path: Path, port: object, problem: str, fallback: Literal["refuse", "allow"]
) -> None:
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [port], [info("y", None)])
    onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    with pytest.raises(ConfigError, match=f"^m.onnx: input 'x': the input has {problem}\n"):
        import_model(tmp_path / "m.onnx", fallback=fallback)


@pytest.mark.parametrize(
    ("inputs", "output", "weight"),
    [({"x": ["n", 3]}, "n", "w"), ({"n": ["b", 3], "x": ["n", 1]}, "y", "w"), ({"x": ["w", 3]}, "y", "w")],
    ids=["an output", "an input", "a weight"],
)
def test_a_tensor_that_is_called_like_a_size(
    tmp_path: Path, inputs: dict[str, list[int | str]], output: str, weight: str
) -> None:
    first, *others = inputs
    nodes = [helper.make_node("Add", [first, weight], ["t"]), helper.make_node("Sum", ["t", *others], [output])]
    ports = {name: (np.float32, shape) for name, shape in inputs.items()}
    path = save(tmp_path / "m.onnx", nodes, ports, [output], {weight: np.ones(3, np.float32)})
    graph = import_model(path).graph
    assert check_graph(graph) == ()
    assert not set(graph.symbols) & set(graph.tensors)
    assert [port.name for port in (*graph.inputs, *graph.outputs)] == [*inputs, output]
