"""States of float models in 8 bits: which patterns name them, what becomes of readers and writers, what is refused."""

import pytest
from state_models import growing

from tests.language_models.written import scattered, standard
from tilec.errors import ConfigError
from tilec.importer import import_model
from tilec.ir.codec import graph_from_json, graph_to_json
from tilec.ir.formats import parse_format
from tilec.ir.graph import RoundedState
from tilec.ir.text import text_of
from tilec.ir.verify.graph import check_graph


def imported(path, state="in-place", **types):
    formats = {pattern: None if text == "keep" else parse_format(text) for pattern, text in types.items()}
    return import_model(path, state=state, types=formats).graph


def test_a_state_is_codes_and_scales_of_its_rows(tmp_path):
    graph = imported(standard(tmp_path / "m.onnx"), **{"past*.value": "keep", "past*": "i8[8]*f16"})
    assert check_graph(graph) == ()
    assert graph_from_json(graph_to_json(graph)) == graph
    given = {port.name: graph.tensors[port.tensor] for port in graph.inputs if port.name.startswith("past_")}
    assert {name: (each.ttype, [text_of(extent) for extent in each.shape]) for name, each in given.items()} == {
        "past_key_values.0.key": ("i8", ["batch", "2", "capacity", "16"]),
        "past_key_values.0.key_scales": ("f16", ["batch", "2", "capacity", "2"]),
        "past_key_values.0.value": ("f32", ["batch", "2", "capacity", "16"]),
    }
    (call,) = graph.calls
    assert [graph.tensors[each.rows].ttype for each in call.updates] == ["i8", "f16", "f32"]
    assert [text_of(each.place[2]) for each in call.updates] == ["k + past"] * 3
    assert [each.group for each in graph.rounded] == [8, 8]
    assert isinstance(graph.rounded[0], RoundedState)
    assert {each.told_by for each in graph.rooms} == {"past"}
    assert len(graph.rooms) == 6
    present = graph.rounded[1]
    readers = [node.expr for node in graph.nodes if f"{present.codes}[" in text_of(node.expr.body)]
    assert readers
    assert all(f"{present.scales}[" in text_of(each.body) for each in readers)


def test_valid_rows_alone_are_read_of_a_rounded_cache_too(tmp_path):
    graph = imported(scattered(tmp_path / "m.onnx", 24), **{"past_*": "i8[column]"})
    assert "past_rows" in graph.symbols
    assert {graph.tensors[each.scales].ttype for each in graph.rounded} == {"f32"}
    assert check_graph(graph) == ()


def test_a_pattern_of_weights_leaves_states_alone(tmp_path):
    graph = imported(growing(tmp_path / "m.onnx"), **{"*": "i8[column]"})
    assert (list(graph.retyped), graph.rounded) == (["w"], ())


@pytest.mark.parametrize(
    ("state", "types", "message"),
    [
        ("in-place", {"past_*": "i4[16]*f16"}, r"state 'past_k': it cannot be rounded to i4[\s\S]*i8.GROUP.*f16"),
        ("in-place", {"past_*": "i8[24]"}, r"groups of 24 do not divide the 32 elements of a row[\s\S]*i8.column."),
        ("in-place", {"x": "i8[8]"}, r"'x' matches no weight and no state[\s\S]*floats are past_k, past_v"),
        ("in-place", {"pasd": "i8[8]"}, r"'pasd' matches no weight and no input"),
        ("separate", {"past_*": "i8[8]"}, r"no state that is updated in place[\s\S]*see `state`"),
        ("same-shape", {"past_*": "i8[8]"}, r"other inputs than the model's[\s\S]*state: in-place"),
    ],
)
def test_what_cannot_be_rounded_is_refused_with_a_way_out(tmp_path, state, types, message):
    with pytest.raises(ConfigError, match=message):
        imported(growing(tmp_path / "m.onnx"), state, **types)
