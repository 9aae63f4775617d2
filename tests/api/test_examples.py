"""What onnxruntime's documentation shows, with one line changed: each example runs on both modules alike."""

import json
from pathlib import Path

import numpy as np
import onnxruntime as original
import pytest
from onnxruntime.datasets import get_example

import tilec
from api import models

MODULES = pytest.mark.parametrize("onnxruntime", [tilec, original], ids=["tilec", "onnxruntime"])
X = np.arange(6, dtype=np.float32).reshape(3, 2)
Y = 2 * X + 1


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, cache):
    """The folder that the examples run in, with `model.onnx`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tilec.api.session._default_cache", lambda: cache)
    (tmp_path / "model.onnx").write_bytes(models.affine().SerializeToString())


@MODULES
def test_load_and_run(onnxruntime):
    session = onnxruntime.InferenceSession("model.onnx", providers=onnxruntime.get_available_providers())
    first, result = session.get_inputs()[0], session.get_outputs()[0]
    assert (first.name, first.type, first.shape) == ("x", "tensor(float)", [3, 2])
    np.testing.assert_array_equal(session.run([result.name], {first.name: X})[0], Y)
    np.testing.assert_array_equal(session.run(None, {first.name: X})[0], Y)


@MODULES
def test_example_models(onnxruntime):
    """The models that onnxruntime brings along."""
    for name in ("sigmoid.onnx", "mul_1.onnx"):
        session = onnxruntime.InferenceSession(get_example(name), providers=onnxruntime.get_available_providers())
        source = session.get_inputs()[0]
        x = np.random.default_rng(0).random(source.shape).astype(np.float32)
        [expected] = original.InferenceSession(get_example(name)).run(None, {source.name: x})
        np.testing.assert_allclose(session.run(None, {source.name: x})[0], expected, rtol=1e-5)


@MODULES
def test_a_classifier_of_another_domain(onnxruntime):
    """Its nodes are not ONNX's own; it gives labels, and a map for each row."""
    session = onnxruntime.InferenceSession(get_example("logreg_iris.onnx"), providers=["CPUExecutionProvider"])
    assert [arg.type for arg in session.get_outputs()] == ["tensor(int64)", "seq(map(int64,tensor(float)))"]
    x = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    labels, probabilities = session.run(None, {session.get_inputs()[0].name: x})
    assert labels.tolist() == [0, 0, 0]
    assert [max(row, key=row.get) for row in probabilities] == [0, 0, 0]
    assert session.run(["probabilities"], {"float_input": x})[0] == probabilities


@MODULES
def test_metadata(onnxruntime):
    meta = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"]).get_modelmeta()
    assert (meta.producer_name, meta.graph_name, meta.version) == ("tests", "affine", 7)
    assert (meta.description, meta.domain, meta.custom_metadata_map) == ("twice and one", "", {"owner": "tests"})


@MODULES
@pytest.mark.filterwarnings("ignore:SessionOptions:UserWarning")
def test_session_options(onnxruntime):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = False
    session = onnxruntime.InferenceSession("model.onnx", sess_options=options, providers=["CPUExecutionProvider"])
    run_options = onnxruntime.RunOptions()
    run_options.log_severity_level = 3
    np.testing.assert_array_equal(session.run(["y"], {"x": X}, run_options)[0], Y)


@MODULES
def test_profiling(onnxruntime):
    options = onnxruntime.SessionOptions()
    options.enable_profiling = True
    session = onnxruntime.InferenceSession("model.onnx", options, providers=onnxruntime.get_available_providers())
    session.run(None, {"x": X})
    events = json.loads(Path(session.end_profiling()).read_text())
    assert {"name", "ts", "dur", "ph"} <= set(events[-1])
    assert any(event["name"] == "model_run" for event in events)


@MODULES
def test_ort_values(onnxruntime):
    value = onnxruntime.OrtValue.ortvalue_from_numpy(X)
    assert value.device_name() == "cpu"
    assert value.shape() == [3, 2]
    assert value.data_type() == "tensor(float)"
    assert value.is_tensor()
    np.testing.assert_array_equal(value.numpy(), X)
    session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(session.run(["y"], {"x": value})[0], Y)


@MODULES
def test_binding_scenario_1_an_array_in_a_new_array_out(onnxruntime):
    session = onnxruntime.InferenceSession("model.onnx")
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], Y)


def addresses(onnxruntime, device):
    """The input bound by its address; returns session, binding and the value, which has to stay."""
    x = onnxruntime.OrtValue.ortvalue_from_numpy(X, device, 0)
    session = onnxruntime.InferenceSession("model.onnx")
    binding = session.io_binding()
    binding.bind_input(
        name="x",
        device_type=x.device_name(),
        device_id=0,
        element_type=np.float32,
        shape=x.shape(),
        buffer_ptr=x.data_ptr(),
    )
    return session, binding, x


SOMEWHERE = pytest.mark.parametrize(
    ("onnxruntime", "device"),
    [(tilec, "cpu"), (tilec, "cuda"), (original, "cpu")],
    ids=["tilec", "cuda", "onnxruntime"],
)


@SOMEWHERE
@pytest.mark.filterwarnings("ignore:there is no device:UserWarning")
def test_binding_scenario_2_an_address_in(onnxruntime, device):
    session, binding, _x = addresses(onnxruntime, device)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], Y)


@SOMEWHERE
@pytest.mark.filterwarnings("ignore:there is no device:UserWarning")
def test_binding_scenario_3_addresses_in_and_out(onnxruntime, device):
    session, binding, _x = addresses(onnxruntime, device)
    y = onnxruntime.OrtValue.ortvalue_from_shape_and_type([3, 2], np.float32, device, 0)
    binding.bind_output(
        name="y",
        device_type=y.device_name(),
        device_id=0,
        element_type=np.float32,
        shape=y.shape(),
        buffer_ptr=y.data_ptr(),
    )
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(y.numpy(), Y)


@SOMEWHERE
@pytest.mark.filterwarnings("ignore:there is no device:UserWarning")
def test_binding_scenario_4_an_output_on_a_device(onnxruntime, device):
    session, binding, _x = addresses(onnxruntime, device)
    binding.bind_output("y", device)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.get_outputs()[0].numpy(), Y)


@SOMEWHERE
@pytest.mark.filterwarnings("ignore:there is no device:UserWarning")
def test_binding_scenario_5_values_in_and_out(onnxruntime, device):
    x = onnxruntime.OrtValue.ortvalue_from_numpy(X, device, 0)
    y = onnxruntime.OrtValue.ortvalue_from_shape_and_type([3, 2], np.float32, device, 0)
    session = onnxruntime.InferenceSession("model.onnx")
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", x)
    binding.bind_ortvalue_output("y", y)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(y.numpy(), Y)


@MODULES
def test_an_asynchronous_run(onnxruntime):
    import threading

    class Received:
        def __init__(self):
            self.event, self.results, self.error = threading.Event(), None, None

        def save(self, results, error):
            self.results, self.error = results, error
            self.event.set()

    def callback(results, received, error):
        received.save(results, error)

    received = Received()
    session = onnxruntime.InferenceSession("model.onnx")
    session.run_async(["y"], {"x": X}, callback, received)
    assert received.event.wait(60)
    assert not received.error
    np.testing.assert_array_equal(received.results[0], Y)


@MODULES
def test_common_errors(onnxruntime):
    session = onnxruntime.InferenceSession("model.onnx")
    wrong = [
        (["y"], {"x": X.astype(np.float64)}),
        (["misspelled"], {"x": X}),
        (["y"], {"misspelled": X}),
        (["y"], {"x": X[:, :1]}),
        (["y"], {"x": X.ravel()}),
    ]
    for names, feeds in wrong:
        with pytest.raises((RuntimeError, ValueError, original.capi.onnxruntime_pybind11_state.InvalidArgument)):
            session.run(names, feeds)


@MODULES
def test_a_dimension_fixed_by_name(onnxruntime):
    options = onnxruntime.SessionOptions()
    options.add_free_dimension_override_by_name("batch", 2)
    session = onnxruntime.InferenceSession(models.two_inputs().SerializeToString(), options)
    a = np.ones((2, 4), np.float32)
    np.testing.assert_array_equal(session.run(["s"], {"a": a, "c": a})[0], a + a)


@MODULES
def test_initializers_from_the_application(onnxruntime):
    options = onnxruntime.SessionOptions()
    two = onnxruntime.OrtValue.ortvalue_from_numpy(np.array(3, np.float32))
    options.add_initializer("two", two)
    session = onnxruntime.InferenceSession("model.onnx", sess_options=options)
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], 3 * X + 1)
