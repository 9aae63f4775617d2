"""ONNX's backend interface: what is prepared, when it compiles, and what it answers."""

import gc
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tilec.backend as backend
from tilec.backend import rep
from tilec.errors import UnsupportedError, UsageError
from tilec.importer.specialise import open_inputs

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def model(nodes, inputs, outputs, opset=20, **options):
    infos = [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()]
    ports = [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in outputs.items()]
    graph = helper.make_graph(nodes, "g", infos, ports)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9, **options)


def relu(shape=(2, 3)):
    ports = {"y": (TensorProto.FLOAT, list(shape))}
    return model([helper.make_node("Relu", ["x"], ["y"])], {"x": (TensorProto.FLOAT, list(shape))}, ports)


def reshape():
    inputs = {"x": (TensorProto.FLOAT, [2, 3]), "shape": (TensorProto.INT64, [2])}
    return model([helper.make_node("Reshape", ["x", "shape"], ["y"])], inputs, {"y": (TensorProto.FLOAT, [None] * 2)})


@pytest.fixture
def compilations(monkeypatch):
    """The models that are compiled, in order."""
    seen = []

    def compiled(given, strict):
        seen.append(given)
        return original(given, strict)

    original = rep.compiled
    monkeypatch.setattr(rep, "compiled", compiled)
    return seen


def test_only_the_cpu_is_supported():
    assert backend.supports_device("CPU")
    assert backend.supports_device("CPU:0")
    assert not backend.supports_device("CUDA")
    assert not backend.supports_device("toaster")
    assert backend.is_compatible(relu())
    with pytest.raises(UsageError, match="does not know the device 'CUDA'"):
        backend.prepare(relu(), "CUDA")


def test_a_prepared_model_runs_and_says_that_it_is_native():
    prepared = backend.prepare(relu())
    assert prepared.native is True
    found = prepared.run([X - 2])
    np.testing.assert_array_equal(found.y, np.maximum(X - 2, 0))
    np.testing.assert_array_equal(found[0], found["y"])
    assert prepared.placement.compiled == prepared.placement.total == 1


def test_inputs_by_name_alone_or_in_a_list():
    prepared = backend.prepare(relu())
    for inputs in (X, [X], (X,), {"x": X}):
        np.testing.assert_array_equal(prepared.run(inputs)[0], X)
    with pytest.raises(UsageError, match="2 inputs, the model has 1"):
        prepared.run([X, X])
    with pytest.raises(UsageError, match="input 'x' is missing"):
        prepared.run({"z": X})


def test_a_model_that_breaks_the_rules_is_told_by_onnx():
    with pytest.raises(onnx.checker.ValidationError):
        backend.prepare(model([helper.make_node("Relu", ["nothing"], ["y"])], {}, {"y": (1, [2])}))


def test_open_sizes_are_compiled_once(compilations):
    prepared = backend.prepare(relu([None, "n"]))
    assert prepared.native is True
    for shape in ((2, 3), (4, 1), (2, 3), (0, 5)):
        x = np.full(shape, -1, np.float32)
        assert prepared.run([x])[0].shape == shape
    assert len(compilations) == 1


@pytest.fixture
def only_known_sizes(monkeypatch, compilations):
    """The compiler refuses open sizes."""

    def compiled(given, strict):
        if open_inputs(given):
            compilations.append(given)
            raise UnsupportedError("the size n is not bound")
        return original(given, strict)

    original = rep.compiled
    monkeypatch.setattr(rep, "compiled", compiled)


def test_open_sizes_that_must_be_known_are_bound_when_it_runs(compilations, only_known_sizes):
    prepared = backend.prepare(relu([None, "n"]))
    assert len(compilations) == 1
    assert prepared.native is None
    assert prepared.placement is None
    for shape in ((2, 3), (4, 1), (2, 3), (0, 5)):
        x = np.full(shape, -1, np.float32)
        assert prepared.run([x])[0].shape == shape
    assert len(compilations) == 4
    assert prepared.native is True


def test_values_that_decide_shapes_are_frozen_once_each(compilations):
    prepared = backend.prepare(reshape())
    before = len(compilations)
    for shape in ([3, 2], [1, 6], [3, 2]):
        np.testing.assert_array_equal(prepared.run([X, np.array(shape)])[0], X.reshape(shape))
    assert prepared.native is True
    assert [len(m.graph.initializer) for m in compilations[before:]].count(1) == 2


def test_the_least_recent_of_many_variants_is_dropped(monkeypatch, only_known_sizes):
    monkeypatch.setattr(rep, "MOST_VARIANTS", 2)
    prepared = backend.prepare(relu([None]))
    for size in (1, 2, 3, 1):
        assert prepared.run([np.ones(size, np.float32)])[0].shape == (size,)
    assert len(prepared._variants) == 2


def test_what_cannot_be_compiled_falls_back():
    nonzero = helper.make_node("NonZero", ["x"], ["y"])
    prepared = backend.prepare(model([nonzero], {"x": (1, [2, 3])}, {"y": (TensorProto.INT64, [2, None])}))
    assert prepared.native is False
    assert [each.op for each in prepared.placement.fallback] == ["NonZero"]
    np.testing.assert_array_equal(prepared.run([X])[0], np.nonzero(X))


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"])
def test_floats_of_eight_bits_go_in_and_out(name):
    dtype = np.dtype(getattr(ml_dtypes, name))
    kind = helper.np_dtype_to_tensor_dtype(dtype)
    there = model([helper.make_node("Cast", ["x"], ["y"], to=kind)], {"x": (1, [2, 3])}, {"y": (kind, [2, 3])})
    found = backend.run_model(there, [X])[0]
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.astype(np.float32), X)
    back = model([helper.make_node("Cast", ["x"], ["y"], to=1)], {"x": (kind, [2, 3])}, {"y": (1, [2, 3])})
    np.testing.assert_array_equal(backend.run_model(back, [found])[0], X)


def test_run_model_and_run_node():
    np.testing.assert_array_equal(backend.run_model(relu(), [-X])[0], 0 * X)
    node = helper.make_node("Clip", ["x", "", "high"], ["y"])
    found = backend.run_node(node, [X, np.float32(3)], outputs_info=[(np.dtype("float32"), (2, 3))])
    np.testing.assert_array_equal(found[0], np.minimum(X, 3))
    softmax = helper.make_node("Softmax", ["x"], ["y"])
    old = backend.run_node(softmax, [X[None]], opset_version=11)[0]
    np.testing.assert_allclose(old.sum(), 1, rtol=1e-6)
    np.testing.assert_allclose(backend.run_node(softmax, [X[None]])[0].sum(-1), 1, rtol=1e-6)


def test_the_folder_goes_with_the_prepared_model(compilations):
    prepared = backend.prepare(relu())
    folder = Path(prepared._last.folder.name)
    assert (folder / "build").is_dir()
    del prepared
    gc.collect()
    assert not folder.exists()
