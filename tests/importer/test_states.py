"""States that are updated in place: which outputs are states, what is written, and what is refused."""

import numpy as np
import onnx
import pytest
from state_models import SCATTERS, attention, read_early, scattered, window

from tests.importer.reference import run
from tests.language_models.written import standard
from tilec.errors import ConfigError
from tilec.importer import import_model
from tilec.importer.states import with_states
from tilec.ir.bind import bind
from tilec.ir.codec import graph_from_json, graph_to_json
from tilec.ir.evaluate import evaluate
from tilec.ir.expr import Const, Var
from tilec.ir.graph import Graph, Node, Port, Tensor
from tilec.ir.text import parse_tensor, text_of
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


def test_a_state_that_grows_has_room_and_an_input_that_tells_its_rows(tmp_path):
    graph = import_model(standard(tmp_path / "m.onnx"), state="in-place").graph
    assert check_graph(graph) == ()
    assert graph_from_json(graph_to_json(graph)) == graph
    (call,) = graph.calls
    assert [text_of(each.place[2]) for each in call.updates] == ["k + past"] * 2
    assert (graph.inputs[-1].name, graph.tensors[graph.inputs[-1].tensor]) == ("past", Tensor((Var("past"),), "bool"))
    assert [text_of(room.rows) for room in graph.rooms] == ["past", "new + past"] * 2
    assert {text_of(graph.tensors[room.tensor].shape[2]) for room in graph.rooms} == {"capacity"}
    assert [text_of(each.holds) for each in graph.constraints] == ["new + past <= capacity"]
    assert [text_of(room.rows) for room in bind(graph, {"past": 5}).rooms] == ["5", "new + 5"] * 2
    keys = [node.expr for node in graph.nodes if "past" in node.name or "Present" in node.name]
    assert all("capacity" not in {text_of(extent) for extent in each.extents} for each in keys)


def test_a_state_that_grows_and_is_read_before_is_none(tmp_path):
    model = onnx.load(standard(tmp_path / "m.onnx"))
    model.graph.node.append(onnx.helper.make_node("Neg", ["past_key_values.0.key"], ["negative"]))
    model.graph.output.append(onnx.ValueInfoProto(name="negative"))
    onnx.save(model, tmp_path / "m.onnx")
    graph = import_model(tmp_path / "m.onnx", state="in-place").graph
    shapes = {port.name: [text_of(e) for e in graph.tensors[port.tensor].shape] for port in graph.inputs}
    assert shapes["past_key_values.0.key"] == ["batch", "2", "past", "16"]
    assert shapes["past_key_values.0.value"] == ["batch", "2", "capacity", "16"]
    with pytest.raises(ConfigError, match="node negative reads it too"):
        import_model(tmp_path / "m.onnx", state={"past_key_values.0.key": "present.0.key"})


PLACES = ([0], [3, 4], [-1], [-2, -1, 0], [4, 1], [2, 2], [-4, 2, 2, 1])
"""From the end, across it, more than once."""


@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("form", SCATTERS)
def test_rows_that_a_scatter_places_are_those_that_it_makes(tmp_path, form, places):
    model, room, rows = scattered(tmp_path / "m.onnx", form), 6, len(places)
    sizes = {"b": 2, "room": room, "s": rows}
    at_import = sizes if form == "elements" else {}  # its search is too long for open sizes
    imported = import_model(model, state="in-place", sizes=at_import)
    (call,) = imported.graph.calls
    (update,) = call.updates
    assert imported.graph.tensors[update.rows].shape[2] == (Const(rows) if at_import else Var("s"))
    assert ("s <= room" in [text_of(each.holds) for each in imported.graph.constraints]) is (form == "run")
    generator = np.random.default_rng(0)
    past, new = (generator.standard_normal((2, 2, n, 3)).astype("f4") for n in (room, rows))
    told = np.arange(places[0], places[0] + rows) if form == "run" else np.array(places)
    present, sums = run(imported, tmp_path, {"past": past, "rows": new, "places": told}, {} if at_import else sizes)
    expected = past.copy()
    for row, place in enumerate(told):
        expected[:, :, place] = new[:, :, row]
    np.testing.assert_array_equal(present, expected)
    np.testing.assert_allclose(sums, expected.sum((1, 3), keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("n", range(9))
@pytest.mark.parametrize("s", [0, 1, 3])
def test_rows_that_sizes_place_stay_inside_of_the_state(n, s):
    text = "present[i, j] = where(j >= n - 1, where(j < n + s - 1, rows[i, j - n + 1] * 2.0, past[i, j]), past[i, j])"
    node = Node(parse_tensor(text, {"i": Const(2), "j": Const(6)}))
    tensors = {name: Tensor((Const(2), Const(6)), "f32") for name in ("past", "present")}
    tensors |= {"rows": Tensor((Const(2), Var("s")), "f32"), "skipped": Tensor((Var("n"),), "f32")}
    ports = tuple(Port(name, name) for name in ("past", "rows", "skipped"))
    plain = Graph("m", ("n", "s"), ports, (Port("present", "present"),), tensors, {}, (node,))
    whole = bind(with_states(plain, "in-place", "m.onnx"), {"n": n, "s": s})
    arrays = {"past": np.arange(12, dtype="f4").reshape(2, 6), "rows": np.full((2, s), 50, "f4") + np.arange(s)}
    arrays["rows"] = arrays["rows"].astype("f4")
    expected = evaluate(bind(plain, {"n": n, "s": s}).nodes[0].expr, arrays, ttype="f32")
    (call,), (rows,) = whole.calls, whole.nodes
    after = updated(call, {**arrays, rows.name: evaluate(rows.expr, arrays, ttype="f32")})
    np.testing.assert_array_equal(after["present"], expected)


def test_states_of_one_shape_leave_the_inputs_as_they_are(tmp_path):
    grown = import_model(standard(tmp_path / "m.onnx"), state="same-shape").graph
    assert "past_key_values.0.key" in [port.name for port in grown.inputs]
    assert (grown.calls, "capacity" in grown.symbols) == ((), False)
    (call,) = import_model(window(tmp_path / "w.onnx"), state="same-shape").graph.calls
    assert call.updates


@pytest.mark.parametrize("starts", [(0, 4), (5, 3), (-2, 13)])
def test_rows_that_go_on_at_the_beginning_are_those_of_a_ring(tmp_path, starts):
    info, room, rows = onnx.helper.make_tensor_value_info, 6, 3
    node = onnx.helper.make_node("TensorScatter", ["past", "rows", "starts"], ["present"], axis=2, mode="circular")
    cache = ["b", 2, "room", 3]
    inputs = [info("past", 1, cache), info("rows", 1, ["b", 2, "s", 3]), info("starts", 7, ["b"])]
    graph = onnx.helper.make_graph([node], "ring", inputs, [info("present", 1, cache)])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 24)], ir_version=10)
    onnx.save(model, tmp_path / "m.onnx")
    imported = import_model(tmp_path / "m.onnx", state="in-place")
    assert [call.file for call in imported.graph.calls] == ["state/present"]
    assert [text_of(each.holds) for each in imported.graph.constraints] == ["s <= room"]
    generator = np.random.default_rng(0)
    past, new = (generator.standard_normal((2, 2, n, 3)).astype("f4") for n in (room, rows))
    feeds = {"past": past, "rows": new, "starts": np.array(starts)}
    (present,) = run(imported, tmp_path, feeds, {"b": 2, "room": room, "s": rows})
    expected = past.copy()
    for batch, start in enumerate(starts):
        for row in range(rows):
            expected[batch, :, (start + row) % room] = new[batch, :, row]
    np.testing.assert_array_equal(present, expected)
    assert check_graph(imported.graph) == ()
