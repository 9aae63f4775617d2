"""Models with symbols over the emulator's driver: every size from one compilation, memory that grows."""

import numpy as np
import onnxruntime
import pytest
from verify.builds import generated, planned_for_sizes

from tests.emulator.kernels import emulator_cache, needs_compiler
from tilec.abi.manifest import read_manifest
from tilec.errors import UsageError
from tilec.ir.sizes import SymbolRange
from tilec.runtime import Session
from tilec.runtime.gpu.emulated import EmulatorDriver
from tilec.runtime.gpu.evaluate_numbers import NumbersEvaluator
from tilec.runtime.gpu.executor import GpuExecutor

pytestmark = needs_compiler


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sized")
    path, plan = planned_for_sizes(folder, "a100", batch=SymbolRange(1, 200))
    generated(plan, folder, "a100")
    return folder, path


@pytest.mark.feature("B01", "A20")
def test_one_compilation_serves_every_size(model):
    folder, path = model
    manifest, driver = read_manifest(folder), EmulatorDriver(emulator_cache())
    session = Session(manifest, folder, GpuExecutor(folder, manifest, driver), 1)
    reference = onnxruntime.InferenceSession(str(path))
    name, columns = manifest.inputs[0].name, manifest.inputs[0].shape[1]
    for size in (3, 1, 130, 17, 200, 3):
        x = np.random.default_rng(size).normal(size=(size, columns)).astype(np.float32)
        (expected,) = reference.run(None, {name: x})
        (found,) = session.run({name: x}).values()
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert driver.findings == []
    with pytest.raises(UsageError, match="1 to 200"):
        session.run({name: np.zeros((201, columns), np.float32)})


def test_addresses_of_the_device_have_every_size_too(model):
    folder, path = model
    manifest, driver = read_manifest(folder), EmulatorDriver(emulator_cache())
    session = Session(manifest, folder, GpuExecutor(folder, manifest, driver), 1)
    reference = onnxruntime.InferenceSession(str(path))
    name, columns = manifest.inputs[0].name, manifest.inputs[0].shape[1]
    for size in (3, 130, 1, 3):
        x = np.random.default_rng(size).normal(size=(size, columns)).astype(np.float32)
        call = session.streamed([x.shape])
        ((shape, dtype),) = call.outputs
        placed = session.to_device({"x": x, "y": np.zeros(shape, dtype)})
        call.run([each.address for each in placed.values()], 0)
        driver.download(found := np.empty(shape, dtype), placed["y"].address)
        np.testing.assert_allclose(found, reference.run(None, {name: x})[0], rtol=1e-4, atol=1e-5)
    assert driver.findings == []


def test_numbers_follow_from_symbols_and_earlier_numbers(model):
    sizes = read_manifest(model[0]).sizes
    evaluate = NumbersEvaluator(sizes)
    numbers = np.zeros(len(sizes.numbers), np.int64)
    numbers[0] = 10
    evaluate(numbers, 0)
    for position in range(1, len(numbers)):
        text = sizes.numbers[position]
        scope = {"numbers": numbers.tolist(), sizes.symbols[0].name: 10, "minimum": min, "maximum": max}
        scope["where"] = lambda condition, yes, no: yes if condition else no
        assert numbers[position] == eval(text, scope), text
