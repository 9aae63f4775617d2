"""States on a GPU: new rows go where data say, in the memory that the caller has there; nothing else is copied."""

import numpy as np
import pytest
from state_models import scattered, window
from verify.builds import generated

from tests.emulator.kernels import emulator_cache, needs_compiler
from tilec.abi.manifest import read_manifest
from tilec.errors import UsageError
from tilec.importer import import_model
from tilec.runtime import Session
from tilec.runtime.gpu.emulated import EmulatorDriver
from tilec.runtime.gpu.executor import GpuExecutor
from tilec.scheduler import schedule
from tilec.spec.recipe import ScheduleOptions
from tilec.spec.resolve import resolve_device

pytestmark = needs_compiler


def opened(folder, model):
    """A session over the emulator's driver, and the driver."""
    graph = import_model(model, state="in-place").graph
    generated(schedule(graph, resolve_device("a100"), ScheduleOptions(effort="quick", variants=1)), folder, "a100")
    manifest, driver = read_manifest(folder), EmulatorDriver(emulator_cache())
    return Session(manifest, folder, GpuExecutor(folder, manifest, driver), 1), driver


def downloaded(driver, array):
    found = np.empty(array.shape, array.dtype)
    driver.download(found, array.address)
    return found


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """A session whose rows go to places that an input tells, at any sizes."""
    folder = tmp_path_factory.mktemp("rows")
    return opened(folder, scattered(folder / "m.onnx", "run"))


def test_rows_go_where_data_say_and_states_of_the_host_come_back(rows):
    session, driver = rows
    generator = np.random.default_rng(0)
    for first, count, in_place in ((0, 3, True), (2, 5, False), (-2, 1, True)):
        past, new = (generator.standard_normal((2, 2, n, 3)).astype("f4") for n in (7, count))
        expected = past.copy()
        expected[:, :, range(first, first + count)] = new
        kept, feeds = past.copy(), {"past": past, "rows": new, "places": np.arange(first, first + count)}
        results = session.run(feeds, {"present": past} if in_place else {})
        assert (results["present"] is past) == in_place
        np.testing.assert_array_equal(results["present"], expected)
        np.testing.assert_array_equal(past, expected if in_place else kept)
        np.testing.assert_allclose(results["sums"], expected.sum((1, 3), keepdims=True), rtol=1e-5)
    assert driver.findings == []


def test_states_stay_where_they_are_on_the_device(rows, monkeypatch):
    session, driver = rows
    copied, copy = [], EmulatorDriver.copy
    monkeypatch.setattr(EmulatorDriver, "copy", lambda self, *places: (copied.append(places[2]), copy(self, *places)))
    generator = np.random.default_rng(1)
    expected = generator.standard_normal((1, 2, 9, 3)).astype("f4")
    past = session.to_device({"past": expected})["past"]
    for step in range(4):
        new = generator.standard_normal((1, 2, 1, 3)).astype("f4")
        expected[:, :, step] = new[:, :, 0]
        copied.clear()
        places = session.to_device({"places": np.array([step])})["places"]
        session.run({"past": past, "rows": new, "places": places}, {"present": past})
        np.testing.assert_array_equal(downloaded(driver, past), expected)
        assert (past.nbytes in copied) == (step == 0)
    with pytest.raises(UsageError, match="the index 9"):
        places = session.to_device({"places": np.array([9])})["places"]
        session.run({"past": past, "rows": new, "places": places}, {"present": past})
    np.testing.assert_array_equal(downloaded(driver, past), expected)
    assert driver.findings == []


def test_a_state_that_lies_apart_on_the_device_is_copied_first(tmp_path):
    session, driver = opened(tmp_path, window(tmp_path / "m.onnx"))
    past, new = np.arange(90, dtype="f4").reshape(3, 6, 5), np.full((3, 2, 5), 3, "f4")
    expected = past.copy()
    expected[:, 2:4] = 9
    placed = session.to_device({"past": past, "rows": new, "present": np.zeros_like(past), "mean": np.zeros((), "f4")})
    feeds, out = ({name: placed[name] for name in names} for names in (("past", "rows"), ("present", "mean")))
    call = session.streamed([past.shape, new.shape])
    ways = [lambda: session.run(feeds, out)] * 3
    ways += [lambda: call.run([each.address for each in placed.values()], 0)] * 3
    for way in ways:
        driver.fill(placed["present"].address, 0, past.nbytes)
        way()
        np.testing.assert_array_equal(downloaded(driver, placed["present"]), expected)
        np.testing.assert_array_equal(downloaded(driver, placed["past"]), past)
        assert downloaded(driver, placed["mean"]) == pytest.approx(expected.mean())
    assert driver.findings == []
