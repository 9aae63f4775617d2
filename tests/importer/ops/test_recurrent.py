"""Recurrences, unrolled and as loops: directions, lengths, layout, sizes, what is refused - against onnxruntime."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from tests.importer.ops.cells import GATES, OUTPUTS, operands
from tests.importer.reference import check, helper, run, save, single
from tilec.errors import ConfigError
from tilec.importer import import_model
from tilec.importer.ops import recurrent
from tilec.importer.ops.recurrent import MAX_EXPRESSIONS
from tilec.ir.verify.graph import check_graph

KINDS = tuple(GATES)
DIRECTIONS = ("forward", "reverse", "bidirectional")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("lengths", [None, (4, 4, 4), (1, 4, 2), (4, 0, 3)])
def test_directions_and_lengths(tmp_path: Path, kind: str, direction: str, lengths: tuple[int, ...] | None) -> None:
    directions = 2 if direction == "bidirectional" else 1
    options = {"direction": direction, "hidden_size": 6, "outputs": OUTPUTS[kind]}
    for full in (False, True):
        arrays = operands(kind, directions=directions, lengths=lengths, full=full)
        check(tmp_path, kind, *arrays, known=[1, 2, 3], **options)
        if lengths is not None:
            check(tmp_path, kind, *arrays, known=[1, 2, 3, 4], **options)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (1, 3, 2, 4), (2, 1, 7, 1)])
def test_sizes(tmp_path: Path, kind: str, sizes: tuple[int, int, int, int]) -> None:
    for opset in (7, 14, 22):
        check(tmp_path, kind, *operands(kind, sizes), hidden_size=sizes[3], outputs=OUTPUTS[kind], opset=opset)


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_batch_which_ends_the_reference(tmp_path: Path, kind: str) -> None:
    path, feeds = single(tmp_path, kind, *operands(kind, (3, 0, 2, 2)), hidden_size=2, outputs=2)
    every, last = run(import_model(path), tmp_path, feeds)
    assert every.shape == (3, 1, 0, 2)
    assert last.shape == (1, 0, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_no_times_at_all(tmp_path: Path, kind: str) -> None:
    arrays = operands(kind, (0, 2, 3, 4))
    path, feeds = single(tmp_path, kind, *arrays, hidden_size=4, outputs=2)
    every, last = run(import_model(path), tmp_path, feeds)
    assert every.shape == (0, 1, 2, 4)
    np.testing.assert_array_equal(last, arrays[5])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_batches_outermost(tmp_path: Path, kind: str, direction: str) -> None:
    arrays = operands(kind, directions=2 if direction == "bidirectional" else 1, lengths=(1, 4, 2))
    options = {"hidden_size": 6, "outputs": OUTPUTS[kind], "direction": direction, "opset": 14}
    path, feeds = single(tmp_path, kind, *arrays, **options)
    every, *last = run(import_model(path), tmp_path, feeds)

    def turned(array: NDArray[np.float32] | None, *order: int) -> NDArray[np.float32]:
        assert array is not None
        return array.transpose(order)

    for position in (0, 5, 6)[: 3 if kind == "LSTM" else 2]:
        arrays[position] = turned(arrays[position], 1, 0, 2)
    path, feeds = single(tmp_path, kind, *arrays, layout=1, **options)
    found = run(import_model(path), tmp_path, feeds)
    np.testing.assert_array_equal(found[0], turned(every, 2, 0, 1, 3))
    for a, b in zip(found[1:], last, strict=True):
        np.testing.assert_array_equal(a, turned(b, 1, 0, 2))


def test_only_the_last_state_is_wanted(tmp_path: Path) -> None:
    arrays = [a for a in operands("GRU", full=False) if a is not None]
    node = helper.make_node("GRU", ["x", "w", "r"], ["", "h"], hidden_size=6)
    given = dict(zip("xwr", arrays, strict=True))
    path = save(tmp_path / "m.onnx", [node], {n: ("float32", a.shape) for n, a in given.items()}, ["h"])
    (found,) = run(import_model(path), tmp_path, given)
    path, feeds = single(tmp_path, "GRU", *arrays, hidden_size=6, outputs=2)
    np.testing.assert_array_equal(found, run(import_model(path), tmp_path, feeds)[1])


def test_more_steps_than_are_put_together_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurrent, "MAX_EXPRESSIONS", 260)
    arrays = operands("RNN", (130, 1, 2, 2), directions=2)
    check(tmp_path, "RNN", *arrays, hidden_size=2, outputs=2, direction="bidirectional", atol=1e-5)


def test_all_steps_share_one_projection(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "LSTM", *operands("LSTM", (5, 1, 2, 3), full=False), hidden_size=3, outputs=3)
    nodes = import_model(path).graph.nodes
    assert [n.name for n in nodes if "x0" in str(n.expr.body)] == ["y0_input"]
    assert len(nodes) == 1 + 2 + 4 * 3 + 3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("lengths", [None, (0, 2, 1)])
def test_a_loop_computes_what_unrolled_steps_do(
    tmp_path: Path, kind: str, direction: str, lengths: tuple[int, ...] | None
) -> None:
    directions = 2 if direction == "bidirectional" else 1
    arrays = operands(kind, directions=directions, lengths=lengths)
    options = {"hidden_size": 6, "outputs": OUTPUTS[kind], "direction": direction, "known": [1, 2, 3]}
    path, feeds = single(tmp_path, kind, *arrays, **options)
    path = with_symbolic_steps(path)
    loop = import_model(path)
    assert [call.loop for call in loop.graph.calls] == ["start", "end"]
    assert loop.graph.placement.compiled == 1
    for steps in (0, 1, 2, 4) if lengths is None else (2, 4):
        given = {**feeds, "x0": feeds["x0"][:steps]}
        unrolled = import_model(path, sizes={"time": steps})
        assert not unrolled.graph.calls
        for one, other in zip(run(loop, tmp_path, given, {"time": steps}), run(unrolled, tmp_path, given), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", KINDS)
def test_a_loop_carries_states_of_sizes_of_their_own(tmp_path: Path, kind: str) -> None:
    """Two rows of as many as there are: nothing in the model says that there are two, which the operator assumes."""
    x, w, r, b, _, state, *_ = operands(kind, directions=2)
    ends = {"zero": np.array([0]), "two": np.array([2])}
    rows = helper.make_node("Slice", ["states", "zero", "two", "zero"], ["state"])
    states = ["state"] * (2 if kind == "LSTM" else 1)
    cell = helper.make_node(
        kind, ["x", "w", "r", "b", "", *states], ["y0", "y1"], hidden_size=6, direction="bidirectional"
    )
    inputs = {"x": ("float32", ("time", 3, 5)), "states": ("float32", ("rows", 3, 6))}
    path = save(tmp_path / "m.onnx", [rows, cell], inputs, ["y0", "y1"], {"w": w, "r": r, "b": b, **ends})
    sizes, feeds = {"time": 4, "rows": 4}, {"x": x, "states": np.concatenate([state, state])}
    loop = import_model(path)
    assert not check_graph(loop.graph)
    found = run(loop, tmp_path, feeds, sizes)
    unrolled = run(import_model(path, sizes=sizes), tmp_path, feeds)
    for one, other in zip(found, unrolled, strict=True):
        np.testing.assert_array_equal(one, other)


def test_batches_outermost_in_a_loop(tmp_path: Path) -> None:
    arrays = operands("GRU", directions=2, full=False)
    x = arrays[0]
    assert x is not None
    arrays[0] = x.transpose(1, 0, 2)
    path, feeds = single(tmp_path, "GRU", *arrays, hidden_size=6, outputs=2, direction="bidirectional", layout=1)
    path = with_symbolic_steps(path, 1)
    found = run(import_model(path), tmp_path, feeds, {"time": 4})
    unrolled = run(import_model(path, sizes={"time": 4}), tmp_path, feeds)
    np.testing.assert_array_equal(found[0], unrolled[0])
    np.testing.assert_array_equal(found[1], unrolled[1])


def with_symbolic_steps(path: Path, dimension: int = 0) -> Path:
    """The model with a symbol for its number of steps."""
    model = onnx.load(path)
    model.graph.input[0].type.tensor_type.shape.dim[dimension].dim_param = "time"
    onnx.save(model, path)
    return path


def test_more_steps_than_are_unrolled_are_a_loop(tmp_path: Path) -> None:
    steps = MAX_EXPRESSIONS // 3 + 1
    path, _ = single(tmp_path, "LSTM", *operands("LSTM", (steps, 1, 2, 2)), hidden_size=2)
    assert len(import_model(path).graph.nodes) < 20
    check(tmp_path, "LSTM", *operands("LSTM", (steps, 1, 2, 2)), hidden_size=2, outputs=3, atol=1e-5)


@pytest.mark.parametrize(
    ("position", "shape", "message"),
    [
        (1, (1, 6, 4), "W .*: 4 and 5 differ"),
        (2, (2, 6, 6), "R .*: 2 and 1 differ"),
        (3, (1, 11), "B .*: 11 and 12 differ"),
        (5, (1, 2, 6), "initial_h .*: 2 and 3 differ"),
        (5, (1, 6), "initial_h .*: the ranks differ"),
    ],
)
def test_operands_that_do_not_fit(tmp_path: Path, position: int, shape: tuple[int, ...], message: str) -> None:
    arrays = operands("RNN")
    arrays[position] = np.zeros(shape, np.float32)
    path, _ = single(tmp_path, "RNN", *arrays, hidden_size=6)
    with pytest.raises(ConfigError, match=message):
        import_model(path)


def test_an_unknown_direction(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "RNN", *operands("RNN"), direction="both")
    with pytest.raises(ConfigError, match="direction is 'both'"):
        import_model(path)
