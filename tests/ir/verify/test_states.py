"""Edited updates of states are refused before they can write anywhere."""

from dataclasses import replace

import pytest
from state_models import attention

from tilec.importer import import_model
from tilec.ir.expr import Access, Const, Var
from tilec.ir.graph import Port
from tilec.ir.verify.graph import check_graph


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return import_model(attention(tmp_path_factory.mktemp("m") / "m.onnx"), state="in-place").graph


EDITS = {
    "no shape": ({"rows": "nothing"}, "nothing has no shape and type"),
    "no input": ({"state": "present_k"}, "is no input of the model"),
    "other shape": ({"state": "x"}, "have not the same shape and type"),
    "iterators": ({"iterators": ("i", "j", "k")}, "3 iterators for rows of 4 dimensions"),
    "places": ({"place": (Var("i"), Var("j"), Var("k"))}, "3 places for a state of 4 dimensions"),
    "variable": ({"place": (Var("i"), Var("j"), Var("q"), Var("l"))}, "unknown iterator q"),
    "read": (
        {"place": (Var("i"), Var("j"), Access("mask", (Var("i"), Const(0))), Var("l"))},
        "reads mask, which is none",
    ),
    "rank": ({"place": (Var("i"), Var("j"), Access("y_earlier", ()), Var("l"))}, "reads y_earlier with 0 indices"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_that_is_no_update_is_named(graph, edit):
    changes, message = EDITS[edit]
    (call,) = graph.calls
    edited = replace(call, updates=(replace(call.updates[0], **changes), call.updates[1]))
    assert any(message in problem for problem in check_graph(replace(graph, calls=(edited,))))


def test_a_state_is_updated_once(graph):
    (call,) = graph.calls
    twice = replace(call, updates=(call.updates[0], replace(call.updates[1], state="past_k")))
    assert any("past_k is updated twice" in problem for problem in check_graph(replace(graph, calls=(twice,))))
    without = replace(call, inputs=(Port("y_earlier", "y_earlier"),))
    assert any("is none of its inputs" in problem for problem in check_graph(replace(graph, calls=(without,))))
