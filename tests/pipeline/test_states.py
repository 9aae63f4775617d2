"""Models with states, compiled: rows are written where they stay, and nothing else of a state is touched."""

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from state_models import GROUPS, HEADS, SIZE, attention, growing, scattered, window
from verify.builds import generated

from tilec.errors import UsageError
from tilec.importer import import_model
from tilec.ir.formats import parse_format
from tilec.runtime import load
from tilec.scheduler import schedule
from tilec.spec.recipe import ScheduleOptions
from tilec.spec.resolve import resolve_device

ROOM = 24


def _compiled(folder: Path, model: Path, **types: str) -> Path:
    formats = {pattern: parse_format(text) for pattern, text in types.items()}
    imported = import_model(model, state="in-place", types=formats)
    assert imported.graph.calls
    if imported.owned_file:
        (folder / imported.owned_file).write_bytes(b"".join(imported.weights))
    generated(
        schedule(imported.graph, resolve_device("host"), ScheduleOptions(effort="quick", variants=1)), folder, "host"
    )
    return folder


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attention")
    return _compiled(folder, attention(folder / "m.onnx"))


def _feeds(generator, batch, new, valid, caches):
    x = generator.standard_normal((batch, new, SIZE * HEADS)).astype("f4")
    mask = (np.arange(max(valid)) < np.array(valid)[:, None]).astype("i8")
    return {"x": x, "mask": mask, "past_k": caches[0], "past_v": caches[1]}


def test_tokens_after_tokens_in_one_memory(decoder):
    session, peer = load(decoder), onnxruntime.InferenceSession(decoder / "m.onnx")
    generator = np.random.default_rng(0)
    ours, theirs = ([np.zeros((1, GROUPS, ROOM, SIZE), "f4") for _ in range(2)] for _ in range(2))
    for cache in ours:
        cache[:, :, 11:] = np.nan
    total = 0
    for new in (7, 1, 1, 1, 1):
        total += new
        feeds = _feeds(generator, 1, new, [total], ours)
        results = session.run(feeds, {"present_k": ours[0], "present_v": ours[1]})
        assert results["present_k"] is ours[0]
        expected = peer.run(None, {**feeds, "past_k": theirs[0], "past_v": theirs[1]})
        theirs = expected[1:]
        np.testing.assert_allclose(results["y"], expected[0], rtol=1e-4, atol=1e-5)
    for cache, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(cache[:, :, :total], other[:, :, :total], rtol=1e-5)
        assert np.isnan(cache[:, :, total:]).all(), "rows behind the last token were touched"


def test_batches_of_different_lengths_write_at_places_of_their_own(decoder):
    generator = np.random.default_rng(1)
    past = [generator.standard_normal((3, GROUPS, ROOM, SIZE)).astype("f4") for _ in range(2)]
    feeds = _feeds(generator, 3, 1, [5, 9, 2], past)
    for cache in past:
        for batch, valid in enumerate((5, 9, 2)):
            cache[batch, :, valid:] = np.nan
    results = load(decoder).run(feeds)
    assert np.isfinite(results["y"]).all(), "what lies behind the last token of a batch took part"
    y, keys, _ = onnxruntime.InferenceSession(decoder / "m.onnx").run(None, feeds)
    np.testing.assert_allclose(results["y"], y, rtol=1e-4, atol=1e-5)
    for batch, last in enumerate((4, 8, 1)):
        np.testing.assert_allclose(results["present_k"][batch, :, last], keys[batch, :, last], rtol=1e-5)
        left = np.delete(results["present_k"][batch], last, axis=1)
        np.testing.assert_array_equal(left, np.delete(past[0][batch], last, axis=1))


@pytest.mark.parametrize("bound", [False, True])
def test_a_state_that_lies_apart_is_copied_first(tmp_path, bound):
    session = load(_compiled(tmp_path, window(tmp_path / "m.onnx")))
    past, rows = np.arange(90, dtype="f4").reshape(3, 6, 5), np.full((3, 2, 5), 3, "f4")
    expected = past.copy()
    expected[:, 2:4] = 9
    kept = past.copy()
    feeds = {"past": past, "rows": rows}
    out = {"present": np.empty_like(past), "mean": np.empty((), "f4")}
    run = session.bound(feeds, out) if bound else lambda: session.run(feeds)
    for _ in range(3):
        results = run()
        np.testing.assert_array_equal(results["present"], expected)
        assert results["mean"] == pytest.approx(expected.mean())
        np.testing.assert_array_equal(past, kept)
    half = np.empty((4, 6, 5), "f4")
    half[:3] = past
    moved = session.run({"past": half[:3], "rows": rows}, {"present": half[1:]})  # overlaps, and is not the same
    np.testing.assert_array_equal(moved["present"], expected)


def test_a_state_in_place_is_the_short_way_too(tmp_path):
    session = load(_compiled(tmp_path, window(tmp_path / "m.onnx")))
    past, rows = np.arange(90, dtype="f4").reshape(3, 6, 5), np.full((3, 2, 5), 3, "f4")
    expected = past.copy()
    expected[:, 2:4] = 9
    for _ in range(3):
        assert session.run({"past": past, "rows": rows}, {"present": past})["present"] is past
        np.testing.assert_array_equal(past, expected)
    run = session.bound({"past": past, "rows": rows}, {"present": past})
    rows[:] = 2
    run()
    assert (past[:, 2:4] == 4).all()


@pytest.mark.parametrize("form", ["run", "places"])
def test_rows_go_where_a_scatter_places_them(tmp_path, form):
    session = load(_compiled(tmp_path, scattered(tmp_path / "m.onnx", form)))
    generator = np.random.default_rng(0)
    for places in ([0, 1, 2], [-1], [-2, -1, 0, 1], [3], *([[2, 5, 2]] if form == "places" else [])):
        past, rows = (generator.standard_normal((2, 2, n, 3)).astype("f4") for n in (7, len(places)))
        expected = past.copy()
        for row, place in enumerate(places):
            expected[:, :, place] = rows[:, :, row]
        results = session.run({"past": past, "rows": rows, "places": np.array(places)}, {"present": past})
        assert results["present"] is past
        np.testing.assert_array_equal(past, expected)
        np.testing.assert_allclose(results["sums"], expected.sum((1, 3), keepdims=True), rtol=1e-5)


def test_a_cache_that_grows_has_room_and_new_rows_behind_those_that_there_are(tmp_path):
    model = growing(tmp_path / "m.onnx")
    session, peer = load(_compiled(tmp_path, model)), onnxruntime.InferenceSession(model)
    generator = np.random.default_rng(0)
    names, width = ("past_k", "past_v"), SIZE * HEADS
    ours = {name: np.full((2, ROOM, width), np.nan, "f4") for name in names}
    theirs = {name: np.zeros((2, 0, width), "f4") for name in names}
    assert session.states == {name: name.replace("past", "present") for name in names}
    rows = 0
    for new in (7, 1, 1, 3, 1):
        feeds = {"x": generator.standard_normal((2, new, width)).astype("f4")}
        out = {session.states[name]: array for name, array in ours.items()}
        result = session.run({**feeds, **ours, "past": np.zeros(rows, "?")}, out)["y"]
        expected, *caches = peer.run(None, {**feeds, **theirs})
        theirs = dict(zip(names, caches, strict=True))
        rows += new
        np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-4)
        for name in names:
            np.testing.assert_allclose(ours[name][:, :rows], theirs[name], rtol=1e-4, atol=1e-5)
            assert np.isnan(ours[name][:, rows:]).all()
    with pytest.raises(UsageError, match="'past' is missing") as missing:
        session.run({**feeds, **ours})
    assert missing.value.hint == "Its length is the number of rows in caches that have room: numpy.zeros(past, bool)."
    with pytest.raises(UsageError, match="demands new \\+ past <= capacity"):
        session.run({**feeds, **ours, "past": np.zeros(ROOM, "?")})


def test_a_cache_of_a_float_model_is_kept_in_8_bits(tmp_path):
    model = growing(tmp_path / "m.onnx")
    peer = onnxruntime.InferenceSession(model)
    session = load(_compiled(tmp_path, model, **{"past_?": "i8[16]*f16"}))
    generator = np.random.default_rng(0)
    names, width = ("past_k", "past_v"), SIZE * HEADS
    codes = {name: np.full((2, ROOM, width), 77, "i1") for name in names}
    scales = {f"{name}_scales": np.full((2, ROOM, width // 16), np.nan, "f2") for name in names}
    ours, theirs = {**codes, **scales}, {name: np.zeros((2, 0, width), "f4") for name in names}
    assert session.states == {name: name.replace("past", "present") for name in ours}
    assert sum(array.nbytes for array in ours.values()) * 32 == 9 * sum(4 * array.size for array in codes.values())
    rows = 0
    for new in (7, 1, 3):
        x = generator.standard_normal((2, new, width)).astype("f4")
        out = {session.states[name]: array for name, array in ours.items()}
        result = session.run({"x": x, **ours, "past": np.zeros(rows, "?")}, out)["y"]
        expected, *caches = peer.run(None, {"x": x, **theirs})
        theirs = dict(zip(names, caches, strict=True))
        rows += new
        off = np.linalg.norm(result - expected) / np.linalg.norm(expected)
        assert 1e-5 < off < 5e-2
        for name in names:
            groups = theirs[name].reshape(2, rows, -1, 16)
            steps = np.abs(groups).max(-1, keepdims=True) / 127
            told = ours[name][:, :rows].reshape(groups.shape) * ours[f"{name}_scales"][:, :rows, :, None].astype("f4")
            assert (np.abs(told - groups) <= 0.56 * steps).all()
            assert (ours[name][:, rows:] == 77).all()
            assert np.isnan(ours[f"{name}_scales"][:, rows:]).all()
