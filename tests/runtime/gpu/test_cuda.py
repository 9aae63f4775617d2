"""The driver of CUDA against a library that has its functions: calls, argument types, contexts, graphs."""

import ctypes
import gc
import shutil
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.runtime.gpu.models import check, feeds, write_gpu_model
from tilec.codegen.backend import backend_of
from tilec.errors import ArtifactError, UnavailableError
from tilec.runtime import load
from tilec.spec import gpus
from tilec.spec.resolve import resolve_device

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("stub") / "libcuda-stub.so"
    source = Path(__file__).with_name("driver_stub.c")
    subprocess.run(["gcc", "-O0", "-w", "-shared", "-fPIC", "-o", str(path), str(source)], check=True)
    return str(path)


@pytest.fixture(autouse=True)
def _stub(library, monkeypatch):
    monkeypatch.setattr(gpus, "LIBRARIES", ("libcuda-of-nobody.so", library))


def test_a_model_runs_through_the_driver_api_from_any_thread(tmp_path, library):
    _, weights = write_gpu_model(tmp_path, binary=b"cubin")
    session, stub = load(tmp_path, check=True), ctypes.CDLL(library)
    results = {}

    def work(session, seed):
        for _ in range(3):
            results[seed] = session.run({"x": feeds(seed)})

    threads = [threading.Thread(target=work, args=(session, seed)) for seed in range(3)]
    for thread in threads:
        thread.start()
        thread.join()
    for seed, outputs in results.items():
        check(outputs, feeds(seed), weights)
    spans = session.traced({"x": np.zeros((5, 37), np.float32)})
    assert [(span.name, span.end - span.begin) for span in spans] == [("a", 1_000_000), ("b", 1_000_000)]
    assert stub.stub_allocated() == 5
    threads.clear()
    del session, thread
    gc.collect()
    assert stub.stub_allocated() == stub.stub_handles() == 0


def test_refusals_carry_the_drivers_words(tmp_path, library):
    write_gpu_model(tmp_path, binary=b"other")
    with pytest.raises(UnavailableError, match=r"refuses cuModuleLoadData: no kernel image for device \(209\)"):
        load(tmp_path)
    (tmp_path / "kernels.cubin").write_bytes(b"changed")
    with pytest.raises(ArtifactError, match="not those that were compiled"):
        load(tmp_path)
    write_gpu_model(tmp_path)
    with pytest.raises(ArtifactError, match="written but not compiled"):
        load(tmp_path)
    ctypes.CDLL(library).stub_devices(0)
    try:
        with pytest.raises(UnavailableError, match="no GPU here: the driver knows 0 devices"):
            load(tmp_path)
    finally:
        ctypes.CDLL(library).stub_devices(1)


def test_the_gpu_of_this_machine_decides_which_code_runs_and_is_timed(library):
    (gpu,) = gpus.gpus()
    assert (gpu.name, gpu.processor, gpu.multiprocessors) == ("stub of a GPU", "sm_90", 132)

    def answers(name):
        device = resolve_device(name)
        backend = backend_of(device)
        why = backend.can_run(device, None)
        return why or backend.can_time(device, None)

    assert answers("h100") is None
    assert answers("h200") == "its GPU (stub of a GPU) has 79 GiB of memory, h200 has 131 GiB"
    assert answers("a100") == "the GPU of this machine is a sm_90 (stub of a GPU), the code is for sm_80"
    assert answers("mi250") == "no mi250 is known to be in this machine"
    ctypes.CDLL(library).stub_devices(0)
    try:
        assert gpus.gpus() == ()
        assert answers("h100") == "no h100 is known to be in this machine"
    finally:
        ctypes.CDLL(library).stub_devices(1)


def test_machine_code_runs_on_later_processors_of_its_generation():
    ampere, hopper = gpus.Gpu("", 8, 6, 82, 24 << 30), gpus.Gpu("", 9, 0, 132, 80 << 30)
    assert [ampere.runs(each) for each in ("sm_80", "sm_86", "sm_89", "sm_90a", "gfx90a", "")] == [
        *(True, True, False, False, False, False)
    ]
    assert (hopper.runs("sm_90a"), replace(hopper, minor=1).runs("sm_90a")) == (True, False)
