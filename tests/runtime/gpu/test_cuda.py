"""The driver of CUDA against a library that has its functions: calls, argument types, contexts, graphs."""

import ctypes
import gc
import shutil
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest

from tests.runtime.gpu.models import check, feeds, write_gpu_model
from tilec.codegen.backend import backend_of
from tilec.errors import ArtifactError, UnavailableError
from tilec.runtime import load
from tilec.runtime.gpu.cuda import CudaDriver
from tilec.runtime.gpu.hip import HipDriver
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
    libraries = ("libcuda-of-nobody.so", library)
    monkeypatch.setattr(gpus, "LIBRARIES", libraries)
    monkeypatch.setattr(CudaDriver, "LIBRARIES", libraries)


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


def test_runs_are_asked_for_on_the_stream_of_the_caller(tmp_path, library):
    _, weights = write_gpu_model(tmp_path, binary=b"cubin")
    session, stub = load(tmp_path), ctypes.CDLL(library)
    stub.stub_others.restype = ctypes.c_void_p
    call = session.streamed([(5, 37)])
    assert call.outputs == [((5,), np.float32), ((5, 37), np.float32)]
    others, launched, graphs = stub.stub_others(), stub.stub_launched(), stub.stub_graphs()

    def asked(x):
        y, z = np.zeros(5, np.float32), np.zeros((5, 37), np.float32)
        call.run([each.ctypes.data for each in (x, y, z)], others)
        check({"y": y, "z": z}, x, weights)
        return (y, z), stub.stub_launched() - launched, stub.stub_graphs() - graphs

    held = [asked(feeds(seed)) for seed in range(2)]  # so that no address comes again
    assert [counts for _, *counts in held] == [[2, 0], [4, 0]]
    x, y, z = feeds(3), np.zeros(5, np.float32), np.zeros((5, 37), np.float32)
    for counts in ((6, 0), (6, 1), (6, 2)):
        x += 1
        call.run([each.ctypes.data for each in (x, y, z)], others)
        check({"y": y, "z": z}, x, weights)
        assert (stub.stub_launched() - launched, stub.stub_graphs() - graphs) == counts
    stub.stub_record(1)
    try:
        call.run([each.ctypes.data for each in (x, y, z)], others)
    finally:
        stub.stub_record(0)
    assert (stub.stub_launched() - launched, stub.stub_graphs() - graphs) == (8, 2)


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
    def runs(here, *processors):
        return [gpus.Gpu("", here, 82, 24 << 30).runs(each) for each in processors]

    assert runs("sm_86", "sm_80", "sm_86", "sm_89", "sm_90a", "gfx90a", "") == [True, True, False, False, False, False]
    assert runs("sm_90", "sm_90a", "sm_90") == runs("gfx90a", "gfx90a", "gfx90a") == [True, True]
    assert runs("sm_91", "sm_90a", "sm_90") == [False, True]
    assert runs("sm_120", "sm_120a", "sm_20", "sm_100") == [True, False, False]


def test_gpus_of_amd_are_those_that_linux_lists(tmp_path, monkeypatch):
    monkeypatch.setattr(gpus, "LIBRARIES", ())
    assert gpus.gpus(tmp_path) == ()
    for number, version in ((0, 0), (1, 90010), (10, 110001)):
        folder = tmp_path / "sys/class/kfd/kfd/topology/nodes" / str(number)
        (folder / "mem_banks/0").mkdir(parents=True)
        (folder / "properties").write_text(f"simd_count 416\nsimd_per_cu 4\ngfx_target_version {version}\n")
        (folder / "mem_banks/0/properties").write_text("heap_type 1\nsize_in_bytes 68702699520\n")
    (folder / "name").write_text("navi31\n")
    assert gpus.gpus(tmp_path) == (
        gpus.Gpu("gfx90a", "gfx90a", 104, 68702699520),
        gpus.Gpu("navi31", "gfx1101", 104, 68702699520),
    )


def test_models_of_amd_run_through_the_functions_of_hip(tmp_path, tmp_path_factory, monkeypatch):
    path = tmp_path_factory.mktemp("stub") / "libamdhip64-stub.so"
    names = [f"-D{here}={there}" for here, there in HipDriver.FUNCTIONS.items()]
    source = str(Path(__file__).with_name("driver_stub.c"))
    subprocess.run(["gcc", "-O0", "-w", "-shared", "-fPIC", "-DANY_SHARED", *names, "-o", path, source], check=True)
    monkeypatch.setattr(HipDriver, "LIBRARIES", (str(path),))
    _, weights = write_gpu_model(tmp_path, binary=b"cubin", processor="gfx90a")
    session = load(tmp_path)
    assert session.runs_on == "stub of a GPU"
    for seed in range(2):
        check(session.run({"x": feeds(seed)}), feeds(seed), weights)
    write_gpu_model(tmp_path, binary=b"other", processor="gfx90a")
    with pytest.raises(UnavailableError, match=r"refuses hipModuleLoadData: no kernel image for device \(209\)"):
        load(tmp_path)
