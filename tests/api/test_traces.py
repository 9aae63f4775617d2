"""Many sizes through one session, from file to numbers: one compilation, one model in memory and in the cache, and the
results of onnxruntime."""

import threading

import numpy as np
import pytest

import tilec
from api import models
from tilec.api import compiling, worker
from tilec.api.size_counts import FILE, read_counts
from tilec.report.cache_listing import entries


@pytest.fixture
def counted(monkeypatch):
    """The sizes that models were compiled for, as they come."""
    seen = []

    def build(request):
        seen.append(dict(request.sizes))
        worker.build(request)

    monkeypatch.setattr(compiling, "_run", build)
    return seen


def tokens(n):
    return {"ids": np.random.default_rng(n).integers(0, 100, (1 + n % 3, n))}


def images(n):
    return {"x": np.random.default_rng(n).standard_normal((n, 3, 16, 16)).astype(np.float32)}


LENGTHS = (*range(1, 56, 2), 64, 2, 1)


@pytest.mark.quick_cases("ModelProto-ranges1-images-input 'x' has 65 along dimension 0, the model takes 1 to")
@pytest.mark.parametrize(
    ("proto", "ranges", "feeds", "refused"),
    [
        (
            models.encoder(),
            {},
            tokens,
            r"input 'ids' has 65 along dimension 1, the model takes \d to 64 for seq \(node",
        ),
        (models.convolutions(), {"batch": (1, 64)}, images, "input 'x' has 65 along dimension 0, the model takes 1 to"),
    ],
)
def test_a_trace_of_sizes(tmp_path, counted, proto, ranges, feeds, refused):
    import onnxruntime

    data = proto.SerializeToString()
    theirs = onnxruntime.InferenceSession(data)
    ours = tilec.InferenceSession(data, cache=tmp_path, sizes=ranges)
    right = {n: theirs.run(None, feeds(n))[0] for n in LENGTHS}

    def agrees(n):
        return np.allclose(ours.run(None, feeds(n))[0], right[n], rtol=1e-4, atol=1e-5)

    assert [n for n in LENGTHS if not agrees(n)] == []
    wrong = []

    def work(first):
        wrong.extend(n for n in LENGTHS[first::8] if not agrees(n))

    threads = [threading.Thread(target=work, args=(first,)) for first in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    with pytest.raises(tilec.FeedError, match=refused):
        ours.run(None, feeds(65))
    assert agrees(1)

    assert counted == [{}]
    assert len(ours._model._dispatch._made) == 1
    assert len(list(entries(tmp_path, ("sessions",)))) == 1
    ours._model._observed.keep()
    counts = read_counts(next(tmp_path.glob(f"models/*/{FILE}")))
    assert counts.calls == 2 * len(LENGTHS) + 1
    assert len(counts.counts) == len(set(LENGTHS))


def test_a_recipe_binds_and_limits(tmp_path, counted):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("kind: compile\nshapes: {batch: 2}\n")
    data = models.two_inputs().SerializeToString()
    session = tilec.InferenceSession(data, cache=tmp_path, recipe=str(recipe))
    two = np.ones((2, 4), np.float32)
    assert session.run(["s"], {"a": two, "c": two})[0].shape == (2, 4)
    with pytest.raises(tilec.FeedError, match="input 'a' has shape"):
        session.run(["s"], {"a": two[:1], "c": two[:1]})
    recipe.write_text("kind: compile\nshapes: {batch: {range: [2, 4]}}\n")
    session = tilec.InferenceSession(data, cache=tmp_path, recipe=str(recipe))
    with pytest.raises(tilec.FeedError, match="the model takes 2 to 4 for batch"):
        session.run(["s"], {"a": two[:1], "c": two[:1]})
    assert session.run(["s"], {"a": two, "c": two})[0].shape == (2, 4)
    assert counted == [{}, {}]


def test_sizes_seen_often_are_compiled_and_dispatched_to(tmp_path, counted):
    session = tilec.InferenceSession(
        models.convolutions().SerializeToString(), cache=tmp_path, sizes={"batch": (1, 64)}, specialize="likely"
    )
    first = session.run(None, images(5))[0]
    for _ in range(32):
        session.run(None, images(5))
    done = threading.Event()
    session._queue.add(done.set, 9)
    assert done.wait(60)
    assert counted == [{}, {"batch": 5}]
    special = session._model._often.ready(((5, 3, 16, 16),))
    assert special.inputs[0].shape == (5, 3, 16, 16)
    np.testing.assert_allclose(session.run(None, images(5))[0], first, rtol=1e-4, atol=1e-5)
    assert session.run(None, images(6))[0].shape == (6, 10)
