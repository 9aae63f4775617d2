"""Models that onnxruntime has to help with: sizes that only a run tells, text, sequences."""

import numpy as np
import onnxruntime
import pytest

import tilec
from api import models


@pytest.fixture
def both(cache):
    """Runs a model on a session and on onnxruntime."""

    def run(proto, *feeds, **options):
        data = proto.SerializeToString()
        session, theirs = tilec.InferenceSession(data, cache=cache, **options), onnxruntime.InferenceSession(data)
        for method in ("get_inputs", "get_outputs"):
            told, expected = (getattr(each, method)() for each in (session, theirs))
            assert [(a.name, a.type, a.shape) for a in told] == [(a.name, a.type, a.shape) for a in expected]
        return [(session.run(None, each), theirs.run(None, each)) for each in feeds]

    return run


def boxes(count, seed=0):
    generator = np.random.default_rng(seed)
    low, size = generator.random((2, 1, count, 2), np.float32)
    scores = generator.random((1, 1, count), np.float32)
    return {"boxes": np.concatenate([low, low + size], -1), "scores": scores}


@pytest.mark.parametrize("while_compiling", ["wait", "fallback"])
def test_sizes_that_only_a_run_tells(both, while_compiling):
    feeds = (boxes(6), boxes(6, seed=1), boxes(9))
    for ours, theirs in both(models.selection(), *feeds, while_compiling=while_compiling):
        np.testing.assert_array_equal(ours[0], theirs[0])


def test_text(both):
    x = np.arange(3, dtype=np.float32)
    for text in (np.array(["a", "bc"], object), np.array(["a", "bc"]), ["a", "bc"]):
        [(ours, theirs)] = both(models.words(), {"text": np.asarray(text, object), "x": x})
        assert ours[0].tolist() == theirs[0].tolist() == ["aa", "bcbc"]
        np.testing.assert_array_equal(ours[1], theirs[1])


def test_lists_of_words_are_fed_as_they_are(cache):
    session = tilec.InferenceSession(models.words().SerializeToString(), cache=cache)
    assert session.run(["twice"], {"text": ["a", "b"], "x": [1, 2, 3]})[0].tolist() == ["aa", "bb"]


def test_sequences(both):
    items = [np.zeros(2, np.float32), np.ones(3, np.float32)]
    [(ours, theirs)] = both(models.pieces(), {"s": items, "x": np.full(2, 7, np.float32)})
    assert [each.tolist() for each in ours[0]] == [each.tolist() for each in theirs[0]]
    assert len(ours[0]) == 3


def test_bindings_of_sizes_that_only_a_run_tells(cache):
    session = tilec.InferenceSession(models.selection().SerializeToString(), cache=cache)
    binding = session.io_binding()
    for name, array in boxes(6).items():
        binding.bind_cpu_input(name, array)
    binding.bind_output("kept")
    session.run_with_iobinding(binding)
    assert binding.get_outputs()[0].shape()[1] == 3


def test_messages_for_other_kinds_of_inputs(cache):
    session = tilec.InferenceSession(models.words().SerializeToString(), cache=cache)
    with pytest.raises(tilec.FeedError) as caught:
        session.run(None, {"x": np.zeros(3, np.float32)})
    assert str(caught.value) == "input 'text' is missing\n  It is tensor(string)[n]."
