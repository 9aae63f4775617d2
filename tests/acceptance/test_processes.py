"""What a process needs to compile or run a model, how many threads it has, and that these change no bit."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from acceptance.building import build, contents, folder_of, plan_of, python, tilec
from acceptance.miniatures import LONG, SMALL, miniature
from tilec.runtime import load
from tilec.verify.inputs import Draw, random_inputs

TVM = ("tvm", "tvm_ffi", "tvm_ffi_orcjit")
CORES = len(os.sched_getaffinity(0))


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """A small layer of a transformer, compiled."""
    path = miniature("llama-layer-decode", "fused", tmp_path_factory.mktemp("model"))
    build(path)
    return path


def test_import_and_schedule_work_without_tvm(tmp_path):
    device = ("--device", "avx2")
    tilec("import", miniature("nerf-mlp", "fused", tmp_path), "-o", "g.json", folder=tmp_path, without=TVM)
    tilec("schedule", "g.json", *device, "-o", "p.json", folder=tmp_path, without=TVM)
    ran = tilec("codegen", "p.json", *device, "-o", "out", folder=tmp_path, without=TVM, code=6)
    assert "error: TVM, which compiles for avx2, cannot be imported" in ran.stderr
    assert all(path.is_symlink() for path in (tmp_path / "out").iterdir())


@pytest.mark.slow
def test_small_models_are_imported_and_scheduled_without_tvm(tmp_path):
    names = [name for name in SMALL if name not in LONG]
    for name in names:
        (tmp_path / name).mkdir()
        miniature(name, "decomposed", tmp_path / name)
    planned = ("nerf-mlp", "llama-layer-decode")
    program = """
import sys
from pathlib import Path
sys.modules.update(dict.fromkeys(("tvm", "tvm_ffi", "tvm_ffi_orcjit")))
from tilec.importer import import_model
from tilec.scheduler import schedule
from tilec.spec.resolve import resolve_device
planned = sys.argv[1].split()
for name in sys.argv[2:]:
    graph = import_model(Path(name, "model.onnx")).graph
    assert name not in planned or schedule(graph, resolve_device("avx2")).groups
"""
    python(program, " ".join(planned), *names, folder=tmp_path)


def test_loading_and_running_imports_no_compiler_and_no_onnx(model, tmp_path):
    feeds = random_inputs(plan_of(folder_of(model)), Draw(0))
    np.savez(tmp_path / "x.npz", **feeds)
    program = """
import sys
sys.modules["tvm"] = None
import numpy as np
from tilec.runtime import load
with np.load("x.npz") as feeds:
    np.savez("y.npz", **load(sys.argv[1]).run(dict(feeds)))
heavy = {"tvm", "onnx", "onnxruntime", "pydantic", "ruamel", "rich", "typer"} & {n for n, m in sys.modules.items() if m}
assert not heavy, heavy
"""
    python(program, folder_of(model), folder=tmp_path)
    with np.load(tmp_path / "y.npz") as found:
        for name, array in load(folder_of(model)).run(feeds).items():
            np.testing.assert_array_equal(found[name], array)


@pytest.mark.slow
def test_no_compiler_or_linker_is_needed(model, tmp_path):
    empty = tmp_path / "bin"
    empty.mkdir()
    environment = {"PATH": str(empty), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    device = ("--device", folder_of(model) / "device.yaml")
    (tmp_path / "model.onnx").write_bytes(model.read_bytes())
    tilec("compile", "model.onnx", *device, "-o", "out", folder=tmp_path, **environment)
    program = """
import shutil, sys
assert not [tool for tool in ("cc", "gcc", "clang", "ld", "ld.lld", "as") if shutil.which(tool)]
import numpy as np
from tilec.runtime import load
session = load("out")
shapes = {"f32": np.float32, "i64": np.int64}
session.run({spec.name: np.zeros(spec.shape, shapes[spec.ttype]) for spec in session.inputs})
"""
    python(program, folder=tmp_path, **environment)
    assert contents(tmp_path / "out", "3-kernels.json") == contents(folder_of(model), "3-kernels.json")


def test_results_do_not_depend_on_the_number_of_threads(model):
    feeds = random_inputs(plan_of(folder_of(model)), Draw(3))
    expected = load(folder_of(model), threads=1).run(feeds)
    for threads in (2, 3, 5):
        session = load(folder_of(model), threads=threads)
        for _ in range(5):
            for name, array in session.run(feeds).items():
                assert array.tobytes() == expected[name].tobytes()


def test_eight_threads_may_call_one_session(model):
    plan = plan_of(folder_of(model))
    session = load(folder_of(model))
    feeds = [random_inputs(plan, Draw(seed)) for seed in range(8)]
    expected = [session.run(each) for each in feeds]
    wrong: list[int] = []
    start = threading.Barrier(8)

    def call(number: int) -> None:
        start.wait()
        for _ in range(40):
            found = session.run(feeds[number])
            if any(array.tobytes() != expected[number][name].tobytes() for name, array in found.items()):
                wrong.append(number)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_eight_callers_need_no_more_than_cores_and_eight_threads(model, tmp_path):
    np.savez(tmp_path / "x.npz", **random_inputs(plan_of(folder_of(model)), Draw(0)))
    program = """
import json, os, sys, threading
import numpy as np
from tilec.runtime import load
session = load(sys.argv[1])
with np.load("x.npz") as file:
    feeds = dict(file)
most = []
start = threading.Barrier(8)
def call():
    start.wait()
    for _ in range(50):
        session.run(feeds)
        most.append(len(os.listdir("/proc/self/task")))
threads = [threading.Thread(target=call) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(json.dumps(max(most)))
"""
    ran = python(program, folder_of(model), folder=tmp_path, OPENBLAS_NUM_THREADS="1")
    assert json.loads(ran.stdout) <= CORES + 8
