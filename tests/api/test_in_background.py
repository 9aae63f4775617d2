"""Models that the compiler in the background makes: for this session, and for programs that start later."""

import logging
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import tilec
from api import models
from api.conftest import ASK
from tilec.api import in_background
from tilec.api.request import Request, keyed_if_known
from tilec.api.while_compiling import chosen_while_compiling
from tilec.background import Failure, Queue
from tilec.errors import ConfigError, UnsupportedError, UsageError

X = np.arange(6, dtype=np.float32).reshape(3, 2)
PATH = {"PYTHONPATH": str(Path(tilec.__file__).parent.parent)}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache whose compiler in the background ends with the test; sessions do what they do for users."""
    monkeypatch.setattr(in_background, "ask", ASK)
    monkeypatch.delenv("TILEC_WHILE_COMPILING")
    yield tmp_path / "cache"
    Queue(tmp_path / "cache").stop()


@pytest.fixture
def unstarted(cache, monkeypatch):
    """The same, and no compiler is started: orders wait."""
    monkeypatch.setattr(in_background, "start", lambda queue: None)
    yield cache
    for order in Queue(cache).waiting():
        Queue(cache).remove(order)


def open_session(cache, **options):
    return tilec.InferenceSession(models.affine().SerializeToString(), cache=cache, **options)


@pytest.mark.feature("A19")
def test_a_program_that_ends_at_once_finds_its_model_compiled_at_a_later_start(cache, tmp_path):
    (tmp_path / "model.onnx").write_bytes(models.affine().SerializeToString())
    script = tmp_path / "program.py"
    script.write_text(
        textwrap.dedent("""
        import os, sys
        import numpy as np
        import onnxruntime
        session = onnxruntime.InferenceSession("model.onnx", cache="cache")
        print(session.run(None, {"x": np.ones((3, 2), np.float32)})[0].tolist(), "onnxruntime.capi" in sys.modules)
        print(session._model.fixed is not None, "tvm" in sys.modules, "tilec.scheduler" in sys.modules)
        """)
    )
    command = [sys.executable, "-m", "tilec.as_onnxruntime", "program.py"]
    options = {"cwd": tmp_path, "env": {**os.environ, **PATH}, "capture_output": True, "text": True}
    first = subprocess.run(command, **options)
    assert first.stdout.splitlines()[1:] == ["False False False"], first.stderr
    assert first.stderr == ""
    queue = Queue(cache)
    end = time.monotonic() + 300
    while not (list(cache.glob("sessions/*.lock")) or queue.failures()) and time.monotonic() < end:
        time.sleep(0.1)
    while queue.waiting() and time.monotonic() < end:
        time.sleep(0.1)
    assert queue.failures() == []
    second = subprocess.run(command, **options)
    assert second.stdout.splitlines()[1:] == ["True False False"], second.stderr
    assert first.stdout.splitlines()[0].partition("]] ")[0] == second.stdout.splitlines()[0].partition("]] ")[0]


def test_the_switch_is_between_two_calls_and_told_once(cache, caplog):
    caplog.set_level(logging.INFO, "tilec")
    session = open_session(cache)
    end = time.monotonic() + 300
    while session._model.fixed is None and time.monotonic() < end:
        np.testing.assert_array_equal(session.run(None, {"x": X})[0], 2 * X + 1)
        time.sleep(0.05)
    assert isinstance(session._model.fixed, tilec.Session)
    said = [record.message for record in caplog.records if record.message.startswith("model.onnx: ")]
    assert said == [
        "model.onnx: onnxruntime serves until it is compiled (`tilec cache list`)",
        "model.onnx: it is compiled, and serves from the next call on",
    ]


def test_what_failed_is_not_tried_again(unstarted):
    session = open_session(unstarted)
    (order,) = asked(unstarted)
    Queue(unstarted).fail(order, Failure("model.onnx", "UnsupportedError", "too strange", None, None, time.time()))
    again = open_session(unstarted)
    assert str(again._model._dispatch._made[()].exception(60)) == "too strange"
    with pytest.warns(UserWarning, match="stays on onnxruntime: too strange"):
        again.run(None, {"x": X})
    np.testing.assert_array_equal(again.run(None, {"x": X})[0], 2 * X + 1)
    assert Queue(unstarted).waiting() == []
    with pytest.raises(UnsupportedError, match="too strange"):
        in_background.made(in_background.keyed_if_known(_request(session)))


def asked(cache):
    """The orders in the queue, once there are any."""
    end = time.monotonic() + 60
    while not (orders := Queue(cache).waiting()) and time.monotonic() < end:
        time.sleep(0.02)
    return orders


def _request(session):
    return session._model._dispatch._request


def test_what_the_compiler_gives_up_stays_on_onnxruntime(unstarted):
    session = open_session(unstarted)
    (order,) = asked(unstarted)
    Queue(unstarted).remove(order)
    (future,) = session._model._dispatch._made.values()
    assert "gave it up" in str(future.exception(timeout=60))
    with pytest.warns(UserWarning, match="stays on onnxruntime"):
        np.testing.assert_array_equal(session.run(None, {"x": X})[0], 2 * X + 1)


def test_a_compiler_that_ended_is_started_again(cache, monkeypatch):
    started = []
    monkeypatch.setattr(in_background, "RESTARTS", (0.05, 0.1))
    monkeypatch.setattr(in_background, "start", started.append)
    session = open_session(cache)
    end = time.monotonic() + 30
    while len(started) < 3 and time.monotonic() < end:
        time.sleep(0.02)
    assert len(started) >= 3
    Queue(cache).remove(Queue(cache).waiting()[0])
    del session


def test_a_machine_that_was_not_measured_is_measured_in_the_background(unstarted, monkeypatch):
    monkeypatch.setattr("tilec.spec.resolve.known_text", lambda: None)
    monkeypatch.setattr("tilec.spec.resolve.probed_text", lambda: pytest.fail("this machine was measured"))
    session = open_session(unstarted)
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], 2 * X + 1)
    (order,) = asked(unstarted)
    assert order.result == ""
    assert '"key"' not in order.given


@pytest.mark.parametrize("given", ["bytes", "file"])
def test_a_copied_process_goes_on(unstarted, tmp_path, given):
    data = models.affine().SerializeToString()
    (tmp_path / "model.onnx").write_bytes(data)
    session = tilec.InferenceSession(data if given == "bytes" else tmp_path / "model.onnx", cache=unstarted)
    session.run(None, {"x": X})
    child = os.fork()
    if child == 0:
        code = 1
        try:
            for _ in range(2):
                np.testing.assert_array_equal(session.run(None, {"x": X})[0], 2 * X + 1)
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("way", ["folder", "process"])
def test_without_a_compiler_in_the_background_this_process_compiles(cache, monkeypatch, way):
    if way == "folder":
        cache.mkdir()
        (cache / "queue").write_text("")
    else:
        monkeypatch.setattr(in_background, "start", lambda queue: (_ for _ in ()).throw(OSError("no more processes")))
    session = open_session(cache)
    session._model._dispatch._made[()].result(60)
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], 2 * X + 1)
    assert isinstance(session._model.fixed, tilec.Session)
    assert Queue(cache).waiting() == []


def test_option_before_variable_before_recipe_before_default(tmp_path, monkeypatch):
    monkeypatch.delenv("TILEC_WHILE_COMPILING")
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("kind: compile\nwhile_compiling: wait\n")
    assert chosen_while_compiling(None, None, "fallback") == "fallback"
    assert chosen_while_compiling(None, str(recipe), "fallback") == "wait"
    monkeypatch.setenv("TILEC_WHILE_COMPILING", "fallback")
    assert chosen_while_compiling(None, str(recipe), "wait") == "fallback"
    assert chosen_while_compiling("wait", str(recipe), "fallback") == "wait"
    monkeypatch.setenv("TILEC_WHILE_COMPILING", "sometimes")
    with pytest.raises(UsageError, match='TILEC_WHILE_COMPILING is \'sometimes\', it is "wait" or "fallback"'):
        chosen_while_compiling(None, None, "wait")
    monkeypatch.delenv("TILEC_WHILE_COMPILING")
    recipe.write_text("while_compiling: sometimes\n")
    with pytest.raises(ConfigError):
        chosen_while_compiling(None, str(recipe), "wait")


def test_sessions_wait_where_other_results_would_surprise(unstarted):
    assert open_session(unstarted, while_compiling="wait")._model.fixed is not None
    same = tilec.SessionOptions()
    same.use_deterministic_compute = True
    assert open_session(unstarted / "same", sess_options=same)._model.fixed is not None
    assert open_session(unstarted / "other", device="avx2")._model.fixed is not None


def test_what_is_wrong_with_the_request_is_raised(unstarted):
    with pytest.raises(UsageError, match="no-such-recipe"):
        open_session(unstarted, recipe="no-such-recipe")
    assert keyed_if_known(Request("m", "0", "avx2", str(unstarted))).key
