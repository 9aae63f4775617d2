"""A model whose file nobody has read as a whole yet is served at once, and read after the first run."""

import os
import time

import numpy as np
import pytest

import tilec
from api import models
from tilec.api import errands
from tilec.api.cache import Cache
from tilec.api.model import Model
from tilec.api.unidentified import Unidentified
from tilec.errors import TilecError

X = np.arange(6, dtype=np.float32).reshape(3, 2)


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """What is put off waits for the first run."""
    monkeypatch.setattr(errands, "PATIENCE", 3600.0)
    yield
    for errand in list(errands._errands._undone):
        errand.gate.open()


@pytest.fixture
def path(tmp_path):
    """A model's file."""
    (tmp_path / "model.onnx").write_bytes(models.affine().SerializeToString())
    return tmp_path / "model.onnx"


def opened(path, **options):
    return tilec.InferenceSession(path, cache=path.parent / "cache", while_compiling="fallback", **options)


def settled(session):
    """The session, once nothing is put off."""
    end = time.monotonic() + 60
    while errands._errands._undone and time.monotonic() < end:
        time.sleep(0.01)
    return session


@pytest.mark.feature("A19")
def test_a_model_is_read_after_its_first_run(path, monkeypatch):
    read = []
    digest = Cache.digest
    monkeypatch.setattr(Cache, "digest", lambda *given: read.append(given[1]) or digest(*given))
    session = opened(path)
    assert isinstance(session._model, Unidentified)
    assert [port.shape for port in session.get_inputs()] == [[3, 2]]
    assert not read
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], 2 * X + 1)
    assert isinstance(settled(session)._model, Model)
    assert read[0] == path
    session._model._dispatch._made[()].result(60)
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], 2 * X + 1)
    assert isinstance(session._model.fixed, tilec.Session)


def test_a_model_that_was_read_before_is_known(path, monkeypatch):
    monkeypatch.setattr("tilec.api.cache.SETTLED", -1)
    Cache(path.parent / "cache").digest(path)
    assert isinstance(opened(path)._model, Model)


@pytest.mark.parametrize("file", ["model.onnx", "model.data"])
def test_a_file_that_changed_meanwhile_is_not_taken_for_the_model(tmp_path, caplog, file):
    session = opened(models.external(tmp_path))
    (port,) = session.get_inputs()
    feeds = {port.name: np.ones(port.shape, np.float32)}
    os.utime(tmp_path / file, ns=(1, 1))
    first = session.run(None, feeds)
    settled(session)
    assert isinstance(session._model, Unidentified)
    assert "changed since the session was opened" in caplog.text
    np.testing.assert_array_equal(session.run(None, feeds)[0], first[0])


def test_feeds_are_checked(path):
    session = opened(path)
    with pytest.raises(tilec.FeedError, match="input 'x' has shape"):
        session.run(None, {"x": X.T})
    with pytest.raises(tilec.FeedError, match="input 'x' is missing"):
        session.run(None, {})
    session.run(None, {"x": X})
    settled(session)


def test_what_onnxruntime_cannot_load_is_compiled_first(path, monkeypatch):
    def refuse(*_):
        raise TilecError("onnxruntime cannot load the model")

    monkeypatch.setattr("tilec.api.onnxruntime_peer.OnnxruntimePeer.__init__", refuse)
    session = opened(path)
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], 2 * X + 1)
    assert isinstance(session._model.fixed, tilec.Session)


def test_what_is_asked_of_the_request_is_known_at_once(path, tmp_path):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("kind: compile\n")
    assert isinstance(opened(path, recipe=str(recipe))._model, Model)
    assert isinstance(opened(path, device="avx2")._model, Model)
