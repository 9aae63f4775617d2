"""Models for sizes that are seen often: compiled behind everything else, dispatched to, bounded."""

import gc
import logging
import threading

import pytest

import tilec
from api import models
from api.stand_ins import Compiler, feeds
from tilec.api import observed_sizes, specializations
from tilec.api.cache import Cache
from tilec.api.size_counts import FILE, read_counts
from tilec.errors import UsageError

DATA = models.two_inputs().SerializeToString()


@pytest.fixture
def compiler(monkeypatch):
    return Compiler(monkeypatch)


def run(session, batch, times=1):
    for _ in range(times):
        assert (session.run(["p"], feeds(batch))[0] == 6).all()


def at_rest(session):
    """Everything that waits in the session's queue is done."""
    done = threading.Event()
    session._queue.add(done.set, specializations.LATER + 1)
    assert done.wait(60)


def test_sizes_seen_often_get_a_model_of_their_own(tmp_path, compiler):
    session = tilec.InferenceSession(DATA, cache=tmp_path, specialize="likely")
    run(session, 5, 31)
    at_rest(session)
    assert compiler.sizes == [{}]
    compiler.gate.clear()
    run(session, 5, 3)  # the model for any size serves until the other is there
    assert compiler.loaded[0].calls == 34
    compiler.gate.set()
    at_rest(session)
    run(session, 5, 2)
    run(session, 6)
    assert compiler.sizes == [{}, {"batch": 5}]
    assert [model.calls for model in compiler.loaded] == [35, 2]
    assert [request.background for request in compiler.requests] == [False, True]


def test_nothing_is_specialised_unless_it_is_asked_for(tmp_path, compiler, monkeypatch):
    session = tilec.InferenceSession(DATA, cache=tmp_path)
    run(session, 5, 50)
    at_rest(session)
    assert compiler.sizes == [{}]
    monkeypatch.setenv("TILEC_SPECIALIZE", "likely")
    session = tilec.InferenceSession(DATA, cache=tmp_path)
    run(session, 5, 50)
    at_rest(session)
    assert compiler.sizes == [{}, {"batch": 5}]
    session = tilec.InferenceSession(DATA, cache=tmp_path, specialize="off")
    assert session._serving.specialize == "off"


def test_modes_that_are_none(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match='specialize is \'yes\', it is "off" or "likely"'):
        tilec.InferenceSession(DATA, cache=tmp_path, specialize="yes")
    monkeypatch.setenv("TILEC_SPECIALIZE", "1")
    with pytest.raises(UsageError, match='TILEC_SPECIALIZE is \'1\', it is "off" or "likely"'):
        tilec.InferenceSession(DATA, cache=tmp_path)


def test_the_number_of_models_is_bounded(tmp_path, compiler, monkeypatch):
    monkeypatch.setattr(specializations, "MOST", 2)
    monkeypatch.setattr(observed_sizes, "FREQUENT", 2)
    session = tilec.InferenceSession(DATA, cache=tmp_path, specialize="likely")
    for batch in (1, 2, 3, 4):
        run(session, batch, 3)
    at_rest(session)
    assert compiler.sizes == [{}, {"batch": 1}, {"batch": 2}]


def test_a_full_cache_is_left_as_it_is(tmp_path, compiler, monkeypatch, caplog):
    monkeypatch.setattr(specializations, "room", lambda _: 99)
    monkeypatch.setattr(specializations, "folder_bytes", lambda _: 100)
    session = tilec.InferenceSession(DATA, cache=tmp_path, specialize="likely")
    with caplog.at_level(logging.INFO, "tilec"):
        run(session, 5, 40)
        at_rest(session)
    assert compiler.sizes == [{}]
    assert "not specialised for batch=5: the cache is full" in caplog.text


def test_what_fails_is_told_to_the_log_and_not_tried_again(tmp_path, compiler, caplog, monkeypatch):
    session = tilec.InferenceSession(DATA, cache=tmp_path, specialize="likely")
    compiler.refuses = ("other",)
    with caplog.at_level(logging.INFO, "tilec"):
        run(session, 5, 40)
        at_rest(session)
        run(session, 5, 40)
    assert compiler.sizes == [{}, {"batch": 5}]
    assert "not specialised for batch=5: the size other is not bound" in caplog.text


def test_sizes_are_kept_when_the_session_ends(tmp_path, compiler):
    session = tilec.InferenceSession(DATA, cache=tmp_path)
    run(session, 5, 3)
    with pytest.raises(tilec.FeedError):
        session.run(None, {"a": feeds(2)["a"], "c": feeds(3)["c"]})
    place = Cache(tmp_path).model(session._opened.sha256) / FILE
    assert not place.exists()
    del session
    gc.collect()
    counts = read_counts(place)
    assert (counts.calls, [(dict(each.sizes), each.calls) for each in counts.counts]) == (3, [({"batch": 5}, 3)])
