"""InferenceSession: results, descriptions, sizes from feeds, errors in words."""

import json
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

import tilec
from api import models
from tilec.errors import ConfigError, UnavailableError, UsageError


@pytest.fixture(scope="module")
def affine(cache):
    return tilec.InferenceSession(models.affine().SerializeToString(), cache=cache)


@pytest.fixture(scope="module")
def pair(cache):
    """A session whose batch is read off the feeds."""
    return tilec.InferenceSession(models.two_inputs().SerializeToString(), cache=cache)


X = np.arange(6, dtype=np.float32).reshape(3, 2)


def message(call):
    with pytest.raises(tilec.FeedError) as caught:
        call()
    return str(caught.value)


def test_run_returns_what_onnxruntime_returns(affine):
    import onnxruntime

    theirs = onnxruntime.InferenceSession(models.affine().SerializeToString())
    for feeds in ({"x": X}, {"x": X, "b": np.array([5, 6], np.float32)}):
        for names in (None, [], ["y"]):
            ours = affine.run(names, feeds)
            assert isinstance(ours, list)
            np.testing.assert_array_equal(ours[0], theirs.run(names, feeds)[0])


def test_descriptions_are_onnxruntimes(affine, pair):
    import onnxruntime

    for session, proto in ((affine, models.affine()), (pair, models.two_inputs())):
        theirs = onnxruntime.InferenceSession(proto.SerializeToString())
        for method in ("get_inputs", "get_outputs", "get_overridable_initializers"):
            told = [(arg.name, arg.type, arg.shape) for arg in getattr(session, method)()]
            assert told == [(arg.name, arg.type, arg.shape) for arg in getattr(theirs, method)()]
        mine, meta = session.get_modelmeta(), theirs.get_modelmeta()
        for field in ("producer_name", "graph_name", "domain", "description", "graph_description", "version"):
            assert getattr(mine, field) == getattr(meta, field)
        assert mine.custom_metadata_map == meta.custom_metadata_map


def test_lists_numbers_and_ort_values_are_fed_as_arrays_are(affine):
    expected = affine.run(None, {"x": X})[0]
    for fed in (X.tolist(), tilec.OrtValue.ortvalue_from_numpy(X), np.asfortranarray(X)):
        np.testing.assert_array_equal(affine.run(None, {"x": fed})[0], expected)


def test_sizes_come_from_the_feeds(pair):
    for batch in (1, 3, 1, 0):
        a, c = np.full((batch, 4), 2, np.float32), np.full((batch, 4), 3, np.float32)
        s, p = pair.run(["s", "p"], {"a": a, "c": c})
        assert s.shape == p.shape == (batch, 4)
        assert (s == 5).all()
        assert (p == 6).all()
    assert pair.run(["p"], {"c": c, "a": a})[0].shape == (0, 4)


def test_messages_say_what_does_not_fit(affine, pair):
    assert message(lambda: affine.run(None, {})) == "input 'x' is missing\n  It is tensor(float)[3, 2]."
    assert message(lambda: affine.run(None, {"x": None})) == "input 'x' is missing\n  It is tensor(float)[3, 2]."
    assert message(lambda: affine.run(None, {"X": X, "x": X})) == "the model has no input 'X'\n  Did you mean 'x'?"
    assert message(lambda: affine.run(["why"], {"x": X})) == "the model has no output 'why'\n  The outputs are 'y'."
    assert message(lambda: affine.run(None, {"x": X.astype(float)})) == (
        "input 'x' has element type float64, the model has float32\n  Pass array.astype('float32')."
    )
    assert message(lambda: affine.run(None, {"x": X.T})) == "input 'x' has shape [2, 3], the model has [3, 2]"
    assert message(lambda: affine.run(None, {"x": [["a", "b"]] * 3})).startswith("input 'x' is no tensor(float): ")
    assert message(lambda: affine.run(None, [X])) == ("inputs are fed as a mapping of names to arrays, this is a list")
    a = np.zeros((2, 4), np.float32)
    assert message(lambda: pair.run(None, {"a": a})) == "input 'c' is missing\n  It is tensor(float)[batch, 4]."
    assert message(lambda: pair.run(None, {"a": a, "c": a[0]})) == ("input 'c' has shape [4], the model has [batch, 4]")
    assert message(lambda: pair.run(None, {"a": a, "c": a[:1]})).startswith("input 'c' has ")


def test_errors_of_feeds_are_those_that_onnxruntimes_users_catch(affine):
    with pytest.raises(ValueError, match="missing"):
        affine.run(None, {})
    with pytest.raises(RuntimeError, match="shape"):
        affine.run(None, {"x": X.T})


@pytest.mark.parametrize(
    ("source", "error", "said"),
    [
        ("nowhere.onnx", UsageError, "nowhere.onnx: no such file"),
        (".", UsageError, "this is a folder"),
        (b"\x00\x01", ConfigError, "this is not an ONNX model"),
        (b"", ConfigError, "this is not an ONNX model: it is empty"),
        (7, UsageError, "a model is a path or bytes, this is a int"),
    ],
)
def test_what_is_no_model_is_refused(cache, source, error, said):
    with pytest.raises(error, match=said):
        tilec.InferenceSession(source, cache=cache)


def test_a_device_that_is_not_here_is_refused(cache):
    data = models.affine().SerializeToString()
    with pytest.raises(UnavailableError, match="models for ipu-mk2 cannot run: it has no code generator yet"):
        tilec.InferenceSession(data, device="ipu-mk2", cache=cache)
    with pytest.raises(UsageError, match="no device is called 'a1000'"):
        tilec.InferenceSession(data, device="a1000", cache=cache)
    with pytest.raises(UsageError, match='while_compiling is \'later\', it is "wait" or "fallback"'):
        tilec.InferenceSession(data, while_compiling="later", cache=cache)


def test_errors_of_compilation_are_those_of_the_command_line(cache):
    from onnx import helper

    proto = models.affine()
    proto.graph.node.append(helper.make_node("Add", ["y", "nothing"], ["z"]))
    proto.graph.output.append(models.value("z", 3, 2))
    with pytest.raises(ConfigError, match="nothing"):
        tilec.InferenceSession(proto.SerializeToString(), cache=cache)


def test_unknown_options_are_told_once(cache):
    data = models.affine().SerializeToString()
    with pytest.warns(UserWarning, match="no option 'disabled_optimizers'") as caught:
        [tilec.InferenceSession(data, cache=cache, disabled_optimizers=["x"]) for _ in range(2)]
    assert len(caught) == 1
    with pytest.warns(UserWarning, match="the provider 'CUDAExecutionProvider' is not available"):
        tilec.InferenceSession(data, providers=["CUDAExecutionProvider", "CPUExecutionProvider"], cache=cache)


def test_providers_are_told_whatever_is_asked_for(affine):
    assert (
        affine.get_providers() == tilec.get_available_providers() == ["TilecExecutionProvider", "CPUExecutionProvider"]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        affine.set_providers(["CPUExecutionProvider"])
    assert set(affine.get_provider_options()) == set(affine.get_providers())
    affine.disable_fallback()
    affine.enable_fallback()
    with pytest.raises(UsageError, match=r"\(\) is no provider"):
        affine.set_providers([()])
    assert affine.end_profiling() == ""
    assert affine.get_profiling_start_time_ns() == 0


def test_options_of_other_kinds_are_refused(cache):
    data = models.affine().SerializeToString()
    with pytest.raises(UsageError, match="sess_options is builtins.dict\n  Pass tilec.SessionOptions."):
        tilec.InferenceSession(data, {}, cache=cache)
    with pytest.raises(UsageError, match="providers is a list of names"):
        tilec.InferenceSession(data, providers="CPUExecutionProvider", cache=cache)
    with pytest.raises(UsageError, match="1 provider_options do not go with 0 providers"):
        tilec.InferenceSession(data, provider_options=[{}], cache=cache)


def test_lists_of_floats_are_no_integers(cache):
    from onnx import TensorProto, helper

    port = [models.value(name, 2, type_=TensorProto.UINT8) for name in "xy"]
    proto = models.model([helper.make_node("Add", ["x", "x"], ["y"])], port[:1], port[1:])
    session = tilec.InferenceSession(proto.SerializeToString(), cache=cache)
    assert session.run(None, {"x": [1, 2]})[0].tolist() == [2, 4]
    assert message(lambda: session.run(None, {"x": [1.5, 2]})) == (
        "input 'x' is no tensor(uint8): float64 numbers would be cut"
    )
    assert message(lambda: session.run(None, {"x": [1, 300]})).startswith("input 'x' is no tensor(uint8): ")


def test_a_size_that_no_input_has_is_told(cache):
    options = tilec.SessionOptions()
    options.add_free_dimension_override_by_name("bacth", 2)
    with pytest.warns(UserWarning, match="no input has a dimension 'bacth': its size has no effect"):
        tilec.InferenceSession(models.two_inputs().SerializeToString(), options, cache=cache)


def test_overridden_sizes_and_threads_are_honoured(cache):
    options = tilec.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_free_dimension_override_by_name("batch", 2)
    session = tilec.InferenceSession(models.two_inputs().SerializeToString(), options, cache=cache)
    assert [arg.shape for arg in session.get_inputs()] == [[2, 4], [2, 4]]
    assert session.get_session_options() is options
    assert session._model.fixed.threads == 1
    a = np.ones((2, 4), np.float32)
    assert (session.run(["s"], {"a": a, "c": a})[0] == 2).all()
    assert message(lambda: session.run(None, {"a": a[:1], "c": a[:1]})) == (
        "input 'a' has size 1 along dimension 0, expected was 2"
    )


def test_extents_without_a_name_are_read_off_every_call(cache):
    """`?` for unrelated extents, as exporters write it: two sizes in one call, others in the next."""
    nodes = [helper.make_node("Transpose", ["b"], ["t"]), helper.make_node("MatMul", ["a", "t"], ["y"])]
    proto = models.model(nodes, [models.value("a", "?", 4), models.value("b", "?", 4)], [models.value("y", "?", "?")])
    session = tilec.InferenceSession(proto.SerializeToString(), cache=cache)
    assert [arg.shape for arg in session.get_inputs()] == [["?", 4], ["?", 4]]
    for m, n in ((2, 3), (3, 1)):
        a, b = np.ones((m, 4), np.float32), np.ones((n, 4), np.float32)
        np.testing.assert_array_equal(session.run(None, {"a": a, "b": b})[0], np.full((m, n), 4))
    options = tilec.SessionOptions()
    options.add_free_dimension_override_by_name("?", 2)
    fixed = tilec.InferenceSession(proto.SerializeToString(), options, cache=cache)
    assert fixed.run(None, {"a": np.ones((2, 4), np.float32), "b": np.ones((2, 4), np.float32)})[0].shape == (2, 2)


def test_an_index_outside_of_a_table_is_refused(cache):
    nodes = [helper.make_node("Gather", ["table", "ids"], ["y"], name="words")]
    inputs = [models.value("ids", 2, type_=TensorProto.INT64), models.value("table", 5, 4)]
    proto = models.model(nodes, inputs, [models.value("y", 2, 4)])
    session = tilec.InferenceSession(proto.SerializeToString(), cache=cache)
    table = np.arange(20, dtype=np.float32).reshape(5, 4)
    np.testing.assert_array_equal(session.run(None, {"ids": np.array([4, -5]), "table": table})[0], table[[4, 0]])
    for index in (5, -6):
        assert message(lambda index=index: session.run(None, {"ids": np.array([0, index]), "table": table})) == (
            f"input 'ids' has the index {index} at [1], outside of -5 to 4\n"
            "  Node 'words' takes it as an index: pass -5 to 4 there."
        )


def test_initializers_can_be_replaced(cache, tmp_path):
    options = tilec.SessionOptions()
    options.add_initializer("two", tilec.OrtValue.ortvalue_from_numpy(np.float32(10).reshape(())))
    session = tilec.InferenceSession(models.affine().SerializeToString(), options, cache=cache)
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], 10 * X + 1)
    options.add_initializer("tow", tilec.OrtValue.ortvalue_from_numpy(np.zeros(1)))
    with pytest.raises(UsageError, match="no initializer is called 'tow'\n  Did you mean 'two'?"):
        tilec.InferenceSession(models.affine().SerializeToString(), options, cache=cache)
    path = models.external(tmp_path)
    (tmp_path / "model.data").unlink()
    options = tilec.SessionOptions()
    options.add_external_initializers(["w"], [tilec.OrtValue.ortvalue_from_numpy(np.full(4096, 3, np.float32))])
    x = np.zeros(4096, np.float32)
    assert (tilec.InferenceSession(path, options, cache=cache).run(None, {"x": x})[0] == 3).all()


def test_values_bindings_and_callbacks(pair):
    a, c = np.ones((2, 4), np.float32), np.full((2, 4), 3, np.float32)
    feeds = {name: tilec.OrtValue.ortvalue_from_numpy(array) for name, array in (("a", a), ("c", c))}
    [product] = pair.run_with_ort_values(["p"], feeds)
    assert (product.numpy() == 3).all()
    binding = pair.io_binding()
    binding.bind_cpu_input("a", a)
    binding.bind_ortvalue_input("c", feeds["c"])
    target = tilec.OrtValue.ortvalue_from_shape_and_type([2, 4], np.float32)
    binding.bind_ortvalue_output("p", target)
    binding.bind_output("s")
    a[:] = 2  # what is bound counts when the run begins
    pair.run_with_iobinding(binding)
    assert (target.numpy() == 6).all()
    assert binding.get_outputs()[0].data_ptr() == target.data_ptr()
    assert [array[0, 0] for array in binding.copy_outputs_to_cpu()] == [6, 5]
    binding.clear_binding_outputs()
    assert binding.get_outputs() == []
    with pytest.raises(UsageError, match="the model has no output 'q'"):
        binding.bind_output("q")
    with pytest.raises(UsageError, match="output 'p': an address needs element_type and shape"):
        binding.bind_output("p", buffer_ptr=64)
    binding.clear_binding_inputs()
    with pytest.raises(tilec.FeedError, match="input 'a' is missing"):
        pair.run_with_iobinding(binding)


def test_run_async_calls_back(pair):
    done, said = threading.Event(), []

    def callback(results, user_data, error):
        said.append((results, user_data, error))
        done.set()

    a = np.ones((2, 4), np.float32)
    pair.run_async(["s"], {"a": a, "c": a}, callback, "mine")
    assert done.wait(60)
    assert (said[0][0][0] == 2).all()
    assert said[0][1:] == ("mine", "")
    done.clear()
    pair.run_async(["s"], {"a": a}, callback, None)
    assert done.wait(60)
    assert said[1][2].startswith("input 'c' is missing")


def test_a_profile_lists_the_runs(cache, tmp_path):
    options = tilec.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "run_")
    session = tilec.InferenceSession(models.affine().SerializeToString(), options, cache=cache)
    session.run(None, {"x": X})
    assert session.get_profiling_start_time_ns() > 0
    file = session.end_profiling()
    assert file.startswith(str(tmp_path / "run_"))
    events = json.loads(Path(file).read_text())
    assert [event["name"] for event in events] == ["session_initialization", "model_run"]
    assert session.run(None, {"x": X})


def test_many_threads_share_a_session(cache, monkeypatch):
    monkeypatch.setattr("tilec.api.model_dispatch.KEPT", 2)
    pair, errors = tilec.InferenceSession(models.two_inputs().SerializeToString(), cache=cache), []

    def work(batch):
        a = np.full((batch, 4), batch, np.float32)
        results = [pair.run(["p"], {"a": a, "c": a})[0] for _ in range(5)]
        errors.extend(batch for result in results if not (result == batch * batch).all())

    threads = [threading.Thread(target=work, args=(batch,)) for batch in (1, 2, 3, 1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(pair._model._dispatch._made) <= 3


def test_every_public_name_is_there():
    from tilec import api

    assert set(api.__all__) <= set(tilec.__all__)
    for name in tilec.__all__:
        assert getattr(tilec, name) is not None


def test_the_module_tells_onnxruntimes_facts(capsys):
    assert tilec.get_device() == "CPU"
    assert tilec.get_all_providers() == tilec.get_available_providers()
    assert tilec.__version__ in tilec.get_build_info()
    assert tilec.get_version_string() == tilec.__version__
    assert tilec.OrtDevice.make("cpu", 0).device_type() == 0
    assert not tilec.has_collective_ops()
    tilec.disable_telemetry_events()
    with pytest.raises(UsageError, match="there is no severity 9"):
        tilec.set_default_logger_severity(9)
