"""The cache of compiled models: found again, shared by processes, never half-written, never wrong."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

import tilec
from api import models
from api.stand_ins import Compiler, feeds
from tilec.api import compiling, worker
from tilec.api.cache import Cache
from tilec.api.compiling import compiled_folder
from tilec.api.model_source import open_model, request_for
from tilec.api.request import Request, keyed
from tilec.pipeline.provenance import tools

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
X = np.arange(6, dtype=np.float32).reshape(3, 2)


@pytest.fixture
def counted(monkeypatch):
    """The requests that were compiled, as they come."""
    seen = []

    def build(request):
        seen.append(request)
        worker.build(request)

    monkeypatch.setattr(compiling, "_run", build)
    return seen


def test_a_model_is_compiled_once(tmp_path, counted):
    data = models.affine().SerializeToString()
    (tmp_path / "model.onnx").write_bytes(data)
    for source in (data, tmp_path / "model.onnx", str(tmp_path / "model.onnx")):
        assert tilec.InferenceSession(source, cache=tmp_path / "cache").run(None, {"x": X})[0].shape == (3, 2)
    assert len(counted) == 1


def test_the_models_of_single_sizes_used_last_stay_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("tilec.api.model_dispatch.KEPT", 2)
    compiler = Compiler(monkeypatch, refuses=("batch",))
    with pytest.warns(UserWarning, match="for each set of sizes"):
        session = tilec.InferenceSession(models.two_inputs().SerializeToString(), cache=tmp_path)
    for batch in (1, 2, 3, 1, 2, 3):
        session.run(None, feeds(batch))
    assert compiler.sizes == [{}, {"batch": 1}, {"batch": 2}, {"batch": 3}]
    assert len(session._model._dispatch._made) == 2


def test_the_key_changes_with_all_that_the_code_depends_on(monkeypatch, tmp_path):
    request = Request("model.onnx", "0" * 64, "host", str(tmp_path))
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("kind: compile\n")
    others = [
        replace(request, sha256="1" * 64),
        replace(request, device="avx2"),
        replace(request, sizes={"n": 1}),
        replace(request, weights={"a": "0" * 64}),
        replace(request, recipe="default"),
        replace(request, recipe=str(recipe)),
    ]
    keys = [keyed(each).key for each in (request, *others)]
    assert keyed(replace(request, model="elsewhere.onnx", cache="b", background=True)).key == keys[0]
    recipe.write_text("kind: compile\nschedule: {fusion: none}\n")
    keys.append(keyed(others[-1]).key)
    recipe.write_text("kind: compile\nschedule: {record: r.json}\n")
    keys.append(keyed(others[-1]).key)
    (tmp_path / "r.json").write_text("{}")
    keys.append(keyed(others[-1]).key)
    monkeypatch.setenv("TILEC_SCHEDULE_FUSION", "none")
    keys.append(keyed(request).key)
    monkeypatch.setattr("tilec.api.request.tools", lambda: {**tools(), "onnx": "0"})
    keys.append(keyed(request).key)
    assert len(set(keys)) == len(keys)
    monkeypatch.setenv("TILEC_THREADS", "1")
    monkeypatch.setenv("TILEC_SPECIALIZE", "likely")
    assert keyed(request).key == keys[-1]


def test_digests_are_remembered_while_a_file_stays_as_it_is(tmp_path, monkeypatch):
    read = []
    monkeypatch.setattr("tilec.api.cache.digest_file", lambda path: read.append(path) or "d" * 64)
    cache, file = Cache(tmp_path / "cache"), tmp_path / "file"
    file.write_text("one")
    cache.digest(file)
    cache.digest(file)  # written a moment ago: its times might not show another write
    assert len(read) == 2
    monkeypatch.setattr("tilec.api.cache.SETTLED", -1)
    cache.digest(file)
    assert cache.digest(file) == "d" * 64
    assert len(read) == 3
    file.write_text("two")
    cache.digest(file)
    assert len(read) == 4


def test_digests_of_files_from_the_future_are_remembered(tmp_path, monkeypatch):
    """A clock was set back."""
    cache, file = Cache(tmp_path / "cache"), tmp_path / "file"
    file.write_text("one")
    now = time.time_ns()
    monkeypatch.setattr("tilec.api.cache.time.time_ns", lambda: now - 10**13)
    digest = cache.digest(file)
    assert cache.known_digest(file) == digest


def test_a_model_that_moved_or_changed_is_never_served_with_other_weights(tmp_path, counted):
    """Compiled code reads weights where they are; the cache must not trust the place that it was compiled from."""
    x = np.zeros(4096, np.float32)
    path = models.external(tmp_path / "one")
    expected = np.arange(4096, dtype=np.float32)
    np.testing.assert_array_equal(tilec.InferenceSession(path, cache=tmp_path / "c").run(None, {"x": x})[0], expected)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    (tmp_path / "one" / "model.data").write_bytes(bytes(4 * 4096))
    moved = tilec.InferenceSession(tmp_path / "two" / "model.onnx", cache=tmp_path / "c")
    np.testing.assert_array_equal(moved.run(None, {"x": x})[0], expected)
    assert len(counted) == 1
    changed = tilec.InferenceSession(path, cache=tmp_path / "c")
    assert not changed.run(None, {"x": x})[0].any()
    assert len(counted) == 1  # the code is the same


def test_a_model_that_changes_under_an_open_session_is_refused(tmp_path):
    x, path = np.zeros(4096, np.float32), models.external(tmp_path)
    options = tilec.SessionOptions()
    data = (tmp_path / "model.data").read_bytes()
    tilec.InferenceSession(path, options, cache=tmp_path / "cache").run(None, {"x": x})
    opened = open_model(path, options, Cache(tmp_path / "cache"))
    request = keyed(request_for(opened, "host", None, {}, tmp_path / "cache"))
    assert compiled_folder(request).is_dir()
    (tmp_path / "model.data").write_bytes(data[::-1])
    with pytest.raises(tilec.errors.UsageError, match="model.data: the file changed since the session was opened"):
        compiled_folder(request)


def test_bytes_find_their_external_data(tmp_path, monkeypatch):
    path = models.external(tmp_path / "model")
    x = np.zeros(4096, np.float32)
    options = tilec.SessionOptions()
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(path.parent))
    session = tilec.InferenceSession(path.read_bytes(), options, cache=tmp_path / "cache")
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], np.arange(4096))
    monkeypatch.chdir(path.parent)
    session = tilec.InferenceSession(path.read_bytes(), cache=tmp_path / "cache")
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], np.arange(4096))


def test_external_data_outside_of_the_folder_is_not_read(tmp_path):
    path = models.external(tmp_path / "model")
    proto = onnx.load(str(path), load_external_data=False)
    proto.graph.initializer[0].external_data[0].value = "../model.data"
    (path.parent / "model.data").rename(tmp_path / "model.data")
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(tilec.errors.ConfigError, match="'../model.data' lies outside the model's folder"):
        tilec.InferenceSession(path, cache=tmp_path / "cache")


@pytest.mark.parametrize(
    ("file", "data"),
    [("*.a", b""), ("links.json", b"{"), ("links.json", b'{"../x": ""}'), ("links.json", b'{"x": "elsewhere"}')],
)
def test_a_damaged_compiled_model_is_compiled_again(tmp_path, counted, file, data):
    model = models.affine().SerializeToString()
    tilec.InferenceSession(model, cache=tmp_path)
    [damaged] = tmp_path.glob(f"sessions/*/{file}")
    damaged.write_bytes(data)
    session = tilec.InferenceSession(model, cache=tmp_path)
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], 2 * X + 1)
    assert len(counted) == 2
    assert not list(tmp_path.glob("sessions/*.old"))


def test_damaged_notes_are_written_anew(tmp_path, counted, monkeypatch):
    monkeypatch.setattr("tilec.api.cache.SETTLED", -1)
    (tmp_path / "model.onnx").write_bytes(models.affine().SerializeToString())
    tilec.InferenceSession(tmp_path / "model.onnx", cache=tmp_path)
    notes = [*tmp_path.glob("digests/*"), *tmp_path.glob("models/*/header-*.json")]
    assert len(notes) >= 2
    for note in notes:
        note.write_text("soup")
    session = tilec.InferenceSession(tmp_path / "model.onnx", cache=tmp_path)
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], 2 * X + 1)
    assert len(counted) == 1
    assert all(note.read_text() != "soup" for note in notes)


def test_a_cache_that_cannot_be_written_is_told(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(compiling, "temporary_cache", lambda: str(tmp_path / "other"))
    monkeypatch.setattr("tilec.api.model_source.temporary_cache", lambda: str(tmp_path / "other"))
    with pytest.warns(UserWarning, match="file/cache cannot be written: compiled models are kept for this process"):
        session = tilec.InferenceSession(models.affine().SerializeToString(), cache=tmp_path / "file" / "cache")
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], 2 * X + 1)


@pytest.mark.slow
def test_the_compiler_stays_out_of_the_users_process(tmp_path, children):
    program = (
        "import sys, numpy, tilec\n"
        f"session = tilec.InferenceSession({str(tmp_path / 'model.onnx')!r}, cache={str(tmp_path / 'cache')!r})\n"
        "session.run(None, {'x': numpy.zeros((3, 2), numpy.float32)})\n"
        "print(','.join(n for n in ('tvm', 'onnx', 'onnxruntime', 'pydantic', 'rich') if n in sys.modules))\n"
    )
    (tmp_path / "model.onnx").write_bytes(models.affine().SerializeToString())

    def imported():
        command = [sys.executable, "-c", program]
        return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=True).stdout.strip()

    assert "tvm" not in imported()
    assert "" in (imported() for _ in range(3))  # a start compiles again when the package was edited meanwhile


def test_processes_wait_for_one_another(tmp_path, children):
    """Two at once on one cache: one compiles, both run."""
    data = models.affine().SerializeToString()
    results = []
    threads = [
        threading.Thread(
            target=lambda: results.append(tilec.InferenceSession(data, cache=tmp_path).run(None, {"x": X})[0])
        )
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(children) == len(results) == 2
    np.testing.assert_array_equal(results[0], results[1])
    names = sorted(path.name for path in (tmp_path / "sessions").iterdir())
    assert len(names) == 2
    assert names[1] == f"{names[0]}.lock"


def test_a_killed_compiler_is_reported(tmp_path, children, monkeypatch):
    data, said = models.affine().SerializeToString(), []

    def opened():
        with pytest.raises(tilec.errors.TilecError) as caught:
            tilec.InferenceSession(data, cache=tmp_path)
        said.append(str(caught.value))

    thread = threading.Thread(target=opened)
    thread.start()
    while not compiling._running:
        time.sleep(0.001)
    next(iter(compiling._running)).send_signal(signal.SIGKILL)
    thread.join()
    assert said == ["model.onnx: the compiler was ended by signal SIGKILL"]
    monkeypatch.setattr(compiling, "_run", worker.build)
    np.testing.assert_array_equal(tilec.InferenceSession(data, cache=tmp_path).run(None, {"x": X})[0], 2 * X + 1)


def test_what_a_killed_compiler_left_does_not_count(tmp_path, counted):
    data = models.affine().SerializeToString()
    tilec.InferenceSession(data, cache=tmp_path)
    [folder] = [path for path in (tmp_path / "sessions").iterdir() if path.is_dir()]
    (folder / "3-kernels.json").unlink()
    folder.rename(folder.with_suffix(".tmp"))
    np.testing.assert_array_equal(tilec.InferenceSession(data, cache=tmp_path).run(None, {"x": X})[0], 2 * X + 1)
    assert len(counted) == 2
    assert not list(tmp_path.glob("sessions/*.tmp"))


def test_an_interrupted_compiler_leaves_nothing(tmp_path, monkeypatch):
    def compile_model(_job, _model, folder, **_options):
        folder.mkdir(parents=True)
        (folder / "1-graph.json").write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr("tilec.pipeline.compile_model", compile_model)
    with pytest.raises(KeyboardInterrupt):
        tilec.InferenceSession(models.affine().SerializeToString(), cache=tmp_path)
    assert [path.suffix for path in tmp_path.glob("sessions/*")] == [".lock"]


def test_errors_travel_from_the_compilers_process(tmp_path, children, monkeypatch):
    """Modules in the current folder are not the compiler's."""
    (tmp_path / "onnx.py").write_text("raise SystemExit('wrong onnx')")
    monkeypatch.chdir(tmp_path)
    proto = models.affine()
    proto.graph.node[0].input[0] = "nowhere"
    with pytest.raises(tilec.errors.ConfigError) as caught:
        tilec.InferenceSession(proto.SerializeToString(), cache=tmp_path)
    assert "nowhere" in caught.value.message
    assert not [path for path in (tmp_path / "sessions").iterdir() if path.suffix != ".lock"]


def test_the_worker_reads_requests_and_answers_in_json(tmp_path):
    request = json.dumps({"model": "none.onnx", "sha256": "", "device": "host", "cache": str(tmp_path), "key": "k"})
    ran = subprocess.run(
        [sys.executable, "-m", "tilec.api.worker"], input=request, env=ENVIRONMENT, capture_output=True, text=True
    )
    assert ran.returncode == 2
    said = json.loads(ran.stdout)
    assert (said["kind"], said["message"], said["place"]) == ("UsageError", "no such file", "none.onnx")
    assert Path(tmp_path, "sessions", "k.lock").exists()


def test_a_process_that_ends_takes_its_compiler_along(tmp_path):
    program = (
        "import numpy, tilec\n"
        "from tilec.api import compiling\n"
        f"session = tilec.InferenceSession({str(tmp_path / 'model.onnx')!r}, cache={str(tmp_path / 'cache')!r},\n"
        "    while_compiling='fallback')\n"
        "session.run(None, {'x': numpy.zeros((3, 2), numpy.float32)})\n"
        "print(*[child.pid for child in compiling._running])\n"
    )
    (tmp_path / "model.onnx").write_bytes(models.affine().SerializeToString())
    ran = subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    for pid in ran.stdout.split():
        assert not Path("/proc", pid).exists()
    assert not list(tmp_path.glob("cache/sessions/*.tmp"))
