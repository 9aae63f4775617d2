"""A model whose file nobody has read as a whole yet is served at once, and read after the first run."""

import hashlib
import json
import os
import shutil
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import tilec
from api import models
from tilec.api import errands, left_undone
from tilec.api.cache import Cache
from tilec.api.model import Model
from tilec.api.model_source import present
from tilec.api.unidentified import Unidentified
from tilec.artifact import encode
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


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("file", ["model.onnx", "model.data"])
def test_files_that_are_gone_when_the_session_is_open_are_compiled(tmp_path, file, replaced):
    session = opened(models.external(tmp_path))
    (port,) = session.get_inputs()
    feeds = {port.name: np.ones(port.shape, np.float32)}
    content = (tmp_path / file).read_bytes()
    (tmp_path / file).unlink()
    if replaced:
        (tmp_path / file).write_bytes(bytes(len(content)))
    first = session.run(None, feeds)
    settled(session)
    session._model._dispatch._made[()].result(60)
    np.testing.assert_array_equal(session.run(None, feeds)[0], first[0])
    assert isinstance(session._model.fixed, tilec.Session)


def test_temporary_files_are_kept_in_the_cache_before_they_go(tmp_path, monkeypatch, path):
    for folder, kept in ((tmp_path, True), (tmp_path / "elsewhere", False)):
        folder.mkdir(exist_ok=True)
        monkeypatch.setattr("tempfile.tempdir", str(folder))
        session = tilec.InferenceSession(path, cache=tmp_path / f"cache{kept}", while_compiling="fallback")
        session.run(None, {"x": X})
        request = settled(session)._model._dispatch._request
        session._model._dispatch._made[()].result(60)
        assert request.model == str(path)
        assert bool(list(tmp_path.glob(f"cache{kept}/models/*/model.onnx"))) == kept
        path.unlink()
        copy = present(request)
        assert (copy.model != str(path)) == kept
        path.write_bytes(models.affine().SerializeToString())


@pytest.mark.filterwarnings("ignore:the cache .* cannot be written")
@pytest.mark.parametrize("cache", ["left over", "unwritable"])
def test_copies_need_no_tidy_cache(path, cache):
    session, content = opened(path), path.read_bytes()
    path.unlink()
    folder = path.parent / "cache"
    left = folder / "models" / hashlib.sha256(content).hexdigest()[:32] / ".model.onnx.0123abcd.tmp"
    if cache == "unwritable":
        shutil.rmtree(folder, ignore_errors=True)
        folder.write_text("")
    else:
        left.parent.mkdir(parents=True, exist_ok=True)
        left.write_text("half")
    session.run(None, {"x": X})
    settled(session)
    session._model._dispatch._made[()].result(60)
    assert isinstance(session._model, Model)
    assert not left.exists()


def test_a_copied_process_opens_a_file_that_is_gone(path):
    session = opened(path)
    path.unlink()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            np.testing.assert_array_equal(session.run(None, {"x": X})[0], 2 * X + 1)
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    session.run(None, {"x": X})
    settled(session)


def test_what_is_left_undone_has_the_files_that_are_gone(path, monkeypatch):
    asked = []
    monkeypatch.setattr(left_undone, "ask", asked.append)
    monkeypatch.setattr(os, "nice", lambda _: 0)
    session = opened(path)
    path.unlink()
    ((request, held),) = errands._errands.left()
    monkeypatch.setattr(sys, "argv", ["left_undone", json.dumps([[encode(request), encode(held)]])])
    left_undone.main()
    assert Path(asked[0].model).read_bytes() == models.affine().SerializeToString()
    assert asked[0].key
    session.run(None, {"x": X})
    settled(session)


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
