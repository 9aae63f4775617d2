"""Sessions over the emulator's driver: the same executor that runs on a GPU."""

import gc
from dataclasses import replace

import numpy as np
import pytest

from tests.emulator.kernels import emulator_cache, needs_compiler
from tests.runtime.gpu.models import BYTES, TEXT, check, feeds, write_gpu_model
from tilec.abi.manifest import CallInput, TensorSpec, read_manifest
from tilec.emulator import ORDERS
from tilec.errors import ArtifactError, UnavailableError, UsageError
from tilec.runtime import Session, load
from tilec.runtime.gpu.cuda import CudaDriver
from tilec.runtime.gpu.emulated import EmulatorDriver
from tilec.runtime.gpu.executor import GpuExecutor


class Device:
    """An array of a device, as other libraries hand it over."""

    def __init__(self, array):
        self.array = array


class Interface(Device):
    @property
    def __cuda_array_interface__(self):
        return self.array.__array_interface__


class Capsule(Device):
    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, *, stream):
        assert stream == 1
        return self.array.__dlpack__()


def opened(folder, **how):
    manifest, weights = write_gpu_model(folder)
    driver = EmulatorDriver(emulator_cache(), **how)
    executor = GpuExecutor(folder, read_manifest(folder), driver, check=True)
    assert read_manifest(folder) == manifest
    return Session(manifest, folder, executor, 1), weights, driver


@needs_compiler
def test_runs_are_right_in_any_order_and_launches_are_recorded_once(tmp_path, monkeypatch):
    recorded = []
    begin = EmulatorDriver.begin_graph
    monkeypatch.setattr(EmulatorDriver, "begin_graph", lambda self: (recorded.append(self), begin(self)))
    session, weights, driver = opened(tmp_path, order=ORDERS[3])
    for seed in range(3):
        x = feeds(seed)
        check(session.run({"x": x}), x, weights)
    assert len(recorded) == 1
    assert driver.findings == []
    spans = session.traced({"x": x})
    assert [span.name for span in spans] == ["a", "b"]


@needs_compiler
def test_outputs_are_written_where_asked_and_memory_is_given_back(tmp_path):
    session, weights, driver = opened(tmp_path)
    x, z = feeds(), np.empty((5, 74), np.float32)[:, ::2]
    outputs = session.run({"x": np.asfortranarray(x)}, {"z": z})
    assert outputs["z"] is z
    check(outputs, x, weights)
    blocks = driver._blocks
    assert len(blocks) == 5  # weights, x, y, z, the arena
    del session
    gc.collect()
    assert not blocks


@needs_compiler
@pytest.mark.parametrize("kind", [Interface, Capsule])
def test_arrays_may_lie_on_the_device(tmp_path, kind):
    session, weights, _ = opened(tmp_path)
    x, z = feeds(2), kind(np.zeros((5, 37), np.float32))
    outputs = session.run({"x": kind(x)}, {"z": z})
    assert outputs["z"] is z
    check({**outputs, "z": z.array}, x, weights)
    with pytest.raises(UsageError, match="not C-contiguous"):
        session.run({"x": kind(np.asfortranarray(x))})
    with pytest.raises(UsageError, match="shape"):
        session.run({"x": kind(x[:4])})


@needs_compiler
def test_arrays_on_the_device_are_used_in_place_when_they_come_again(tmp_path, monkeypatch):
    copied = []
    copy = EmulatorDriver.copy
    monkeypatch.setattr(EmulatorDriver, "copy", lambda self, *places: (copied.append(places), copy(self, *places)))
    session, weights, driver = opened(tmp_path)
    assert session.runs_on == "emulator"
    x, other = feeds(1), feeds(2)
    placed = session.to_device({"x": x})
    out = session.to_device({"y": np.zeros(5, np.float32), "z": np.zeros((5, 37), np.float32)})

    def results():
        found = {name: np.empty(each.shape, each.dtype) for name, each in out.items()}
        for name, each in out.items():
            driver.download(found[name], each.address)
        return found

    def clear():
        for each in out.values():
            driver.fill(each.address, 0, each.nbytes)

    for copies in (3, 0, 0):
        copied.clear()
        clear()
        session.run(placed, out)
        check(results(), x, weights)
        assert len(copied) == copies
    clear()
    session.run(session.to_device({"x": other}), out)
    check(results(), other, weights)
    copied.clear()
    inside = {**out, "y": replace(out["y"], address=placed["x"].address, owner=placed["x"])}
    for _ in range(2):
        session.run(placed, inside)
        assert len(copied) == 3
        driver.upload(placed["x"].address, x)
        copied.clear()
    here = session.run({"x": x}, {"z": out["z"]})
    check({**here, "z": results()["z"]}, x, weights)
    out.clear()
    del placed, inside, here
    gc.collect()
    assert len(driver._blocks) == 5


@needs_compiler
def test_addresses_of_the_device_are_run_on_with_an_arena_for_every_stream(tmp_path):
    session, weights, driver = opened(tmp_path)
    call = session.streamed([(5, 37)])
    assert call.alignment == 256
    assert call.ranges == ()
    with pytest.raises(UsageError, match="shape"):
        session.streamed([(5, 36)])
    held = []
    for stream, seed in ((0, 1), (0, 2), (7, 3)):
        placed = session.to_device({"x": feeds(seed)})
        out = session.to_device({"y": np.zeros(5, np.float32), "z": np.zeros((5, 37), np.float32)})
        blocks = len(driver._blocks)
        held.append((placed, out))
        for _ in range(3):
            call.run([each.address for each in (*placed.values(), *out.values())], stream)
            found = {name: np.empty(each.shape, each.dtype) for name, each in out.items()}
            for name, each in out.items():
                driver.download(found[name], each.address)
            check(found, feeds(seed), weights)
        assert len(driver._blocks) - blocks == (seed != 2)
    assert driver.findings == []


@needs_compiler
def test_each_launch_runs_alone_for_an_observer(tmp_path):
    session, weights, _ = opened(tmp_path)
    x, seen = feeds(), {}
    product = CallInput("p", "arena", 0, TensorSpec("p", "f32", x.shape))

    class Observer:
        def before(self, group, memory):
            seen[group, "before"] = memory(product).copy()

        def after(self, group, memory):
            seen[group, "after"] = memory(product).copy()

    session.stepwise({"x": x}, Observer())
    doubled = {"a": CallInput("x", "input", 0, product.tensor), "b": product}
    sums = CallInput("y", "output", 0, TensorSpec("y", "f32", (5,)))

    class Doubling:
        """Changes what a launch reads before it runs."""

        def before(self, group, memory):
            memory(doubled[group])[:] *= 2

        def after(self, group, memory):
            seen[group, "doubled"] = memory(product if group == "a" else sums).copy()

    session.stepwise({"x": np.array(x)}, Doubling())
    np.testing.assert_array_equal(seen["a", "doubled"], 2 * x * weights)
    np.testing.assert_array_equal(seen["b", "doubled"], 4 * (x * weights).sum(1))
    assert np.isnan(seen["a", "before"]).all()
    np.testing.assert_array_equal(seen["a", "after"], x * weights)
    np.testing.assert_array_equal(seen["b", "before"], seen["a", "after"])


@needs_compiler
def test_races_of_a_run_are_kept_with_their_kernel(tmp_path):
    manifest, _ = write_gpu_model(tmp_path, TEXT.replace("t_barrier();", ""))
    driver = EmulatorDriver(emulator_cache())
    Session(manifest, tmp_path, GpuExecutor(tmp_path, manifest, driver), 1).run({"x": feeds()})
    assert {(kernel, finding.kind) for kernel, finding in driver.findings} == {("rows", "race")}
    outside = TEXT.replace("i >= 185", "i >= 192")
    manifest, _ = write_gpu_model(tmp_path, outside)
    driver = EmulatorDriver(emulator_cache())
    Session(manifest, tmp_path, GpuExecutor(tmp_path, manifest, driver), 1).run({"x": feeds()})
    assert {(kernel, finding.kind) for kernel, finding in driver.findings} == {("scaled", "out of bounds")}


def test_without_a_gpu_loading_says_so(tmp_path, monkeypatch):
    write_gpu_model(tmp_path)
    monkeypatch.setattr(CudaDriver, "LIBRARIES", ("libcuda-of-nobody.so.1",))
    with pytest.raises(UnavailableError, match=r"no GPU here: libcuda-of-nobody.so.1, the driver, is not found"):
        load(tmp_path)


def test_launches_that_leave_their_memory_are_refused(tmp_path):
    write_gpu_model(tmp_path)
    path = tmp_path / "3-kernels.json"
    text = path.read_text()
    assert f'"bytes": {BYTES}' in text
    path.write_text(text.replace('"arena_bytes": 740', '"arena_bytes": 736'))
    with pytest.raises(ArtifactError, match="outside the arena"):
        read_manifest(tmp_path)
