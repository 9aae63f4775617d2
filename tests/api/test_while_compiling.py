"""`while_compiling="fallback"`: onnxruntime serves until the compiled model is there."""

import threading
import time
import warnings

import numpy as np
import pytest

import tilec
from api import models
from tilec.api import compiling, worker
from tilec.api.onnxruntime_peer import OnnxruntimePeer
from tilec.errors import TilecError, UnsupportedError

X = np.arange(6, dtype=np.float32).reshape(3, 2)


@pytest.fixture
def gate(monkeypatch):
    """The compiler waits until the gate is set."""
    opened = threading.Event()

    def build(request):
        assert request.background
        opened.wait(60)
        worker.build(request)

    monkeypatch.setattr(compiling, "_run", build)
    return opened


def settled(session):
    for _ in range(3000):
        if all(future.done() for future in session._model._dispatch._made.values()):
            return
        time.sleep(0.01)


def _run_when_settled(data, cache):
    session = tilec.InferenceSession(data, cache=cache, while_compiling="fallback")
    settled(session)
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], 2 * X + 1)
    return session


@pytest.mark.feature("A19")
def test_onnxruntime_serves_until_the_model_is_compiled(tmp_path, gate):
    session = tilec.InferenceSession(models.affine().SerializeToString(), cache=tmp_path, while_compiling="fallback")
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], 2 * X + 1)
    assert session._model.fixed is None
    binding = session.io_binding()
    target = tilec.OrtValue.ortvalue_from_shape_and_type([3, 2], np.float32)
    binding.bind_cpu_input("x", X)
    binding.bind_ortvalue_output("y", target)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(target.numpy(), 2 * X + 1)
    gate.set()
    settled(session)
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], 2 * X + 1)
    assert isinstance(session._model.fixed, tilec.Session)
    assert not session._model._peers


def test_what_is_compiled_already_needs_no_onnxruntime(tmp_path, monkeypatch):
    data = models.affine().SerializeToString()
    tilec.InferenceSession(data, cache=tmp_path)
    monkeypatch.setattr("tilec.api.model.OnnxruntimePeer.__init__", lambda *_: pytest.fail("onnxruntime was asked"))
    session = tilec.InferenceSession(data, cache=tmp_path, while_compiling="fallback")
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], 2 * X + 1)


def test_what_onnxruntime_cannot_load_waits_for_the_compiled_model(tmp_path, gate, monkeypatch):
    def refuse(*_):
        raise TilecError("onnxruntime cannot load the model")

    monkeypatch.setattr("tilec.api.model.OnnxruntimePeer.__init__", refuse)
    threading.Timer(0.2, gate.set).start()
    session = tilec.InferenceSession(models.affine().SerializeToString(), cache=tmp_path, while_compiling="fallback")
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], 2 * X + 1)


def test_what_cannot_be_compiled_stays_on_onnxruntime_and_is_told_once(tmp_path, monkeypatch):
    def build(request):
        raise UnsupportedError("too strange", "model.onnx")

    monkeypatch.setattr(compiling, "_run", build)
    data = models.affine().SerializeToString()
    with pytest.warns(UserWarning, match="stays on onnxruntime: model.onnx: too strange"):
        session = _run_when_settled(data, tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session.run(None, {"x": X})
    assert isinstance(session._model._peer(), OnnxruntimePeer)


def test_feeds_are_checked_while_onnxruntime_serves(tmp_path, gate):
    session = tilec.InferenceSession(models.affine().SerializeToString(), cache=tmp_path, while_compiling="fallback")
    with pytest.raises(tilec.FeedError, match="input 'x' has shape"):
        session.run(None, {"x": X.T})
    gate.set()
    settled(session)


def test_without_the_fallback_an_error_is_raised_and_the_next_session_tries_again(tmp_path, monkeypatch):
    built = []

    def build(request):
        built.append(request)
        if len(built) == 1:
            raise UnsupportedError("too strange", "model.onnx")
        worker.build(request)

    monkeypatch.setattr(compiling, "_run", build)
    data = models.affine().SerializeToString()
    with pytest.raises(UnsupportedError, match="too strange"):
        tilec.InferenceSession(data, cache=tmp_path)
    assert tilec.InferenceSession(data, cache=tmp_path).run(None, {"x": X})[0].shape == (3, 2)
    assert len(built) == 2
