"""States that are updated in place: which outputs are states, what is written, and what is refused."""

import numpy as np
import pytest
from state_models import attention, read_early, window

from tilec.errors import ConfigError
from tilec.importer import import_model
from tilec.ir.codec import graph_from_json, graph_to_json
from tilec.ir.text import text_of
from tilec.ir.verify.graph import check_graph
from tilec.verify.state_updates import updated


def test_rows_are_computed_in_place_of_the_state(tmp_path):
    graph = import_model(window(tmp_path / "m.onnx"), state="in-place").graph
    (call,) = graph.calls
    (update,) = call.updates
    assert (update.state, [text_of(index) for index in update.place]) == ("past", ["i", "j + 2", "k"])
    assert [text_of(extent) for extent in graph.tensors[update.rows].shape] == ["3", "2", "5"]
    assert check_graph(graph) == ()
    assert graph_from_json(graph_to_json(graph)) == graph
    past, rows = np.zeros((3, 6, 5), "f4"), np.ones((3, 2, 5), "f4")
    after = updated(call, {"past": past, update.rows: rows})["present"]
    np.testing.assert_array_equal(after[:, 2:4], rows)
    assert after.sum() == rows.sum()
    assert not past.any()


def test_keys_and_values_of_an_attention_are_written_together_where_data_tell(tmp_path):
    graph = import_model(attention(tmp_path / "m.onnx"), state="in-place").graph
    (call,) = graph.calls
    assert [port.tensor for port in call.outputs] == ["present_k", "present_v"]
    assert [text_of(each.place[2]) for each in call.updates] == ["k + y_earlier[i]"] * 2
    assert "t <= room" in [text_of(each.holds) for each in graph.constraints]
    assert check_graph(graph) == ()
    keys = next(node.expr for node in graph.nodes if node.name == "y_products")
    assert "room" not in {text_of(extent) for extent in keys.extents}, "rows behind the last token are no keys"


def test_without_being_asked_for_nothing_is_written_in_place(tmp_path):
    assert import_model(window(tmp_path / "m.onnx")).graph.calls == ()


def test_what_reads_a_state_before_stands_in_the_way(tmp_path):
    model = read_early(tmp_path / "m.onnx")
    assert import_model(model, state="in-place").graph.calls == ()
    with pytest.raises(ConfigError, match="node negative reads it too, and would see the new rows too early"):
        import_model(model, state={"past": "present"})


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ({"past": "mean"}, "not the same shape"),
        ({"pasd": "present"}, "'pasd', which is no input"),
        ({"past": "presents"}, "'presents', which is no output"),
        ({"rows": "present"}, "not the same shape"),
    ],
)
def test_pairs_that_are_no_states_are_refused_by_name(tmp_path, pairs, message):
    with pytest.raises(ConfigError, match=message):
        import_model(window(tmp_path / "m.onnx"), state=pairs)
