"""Reading model files: structure without weights, and files that are no models."""

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.importer.reference import normal, save
from tilec.errors import ConfigError, UsageError
from tilec.importer.loader import load_model


@pytest.fixture
def path(tmp_path: Path) -> Path:
    weights = {"w": normal(40, 5), "b": np.arange(3)}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    return save(tmp_path / "model.onnx", nodes, {"x": ("float32", [2, 40])}, ["y"], weights)


def test_weights_are_views_of_the_file_and_not_in_the_structure(path: Path) -> None:
    model = load_model(path)
    assert not model.proto.graph.initializer
    assert [node.op_type for node in model.proto.graph.node] == ["MatMul"]
    data = path.read_bytes()
    for name, expected in (("w", normal(40, 5)), ("b", np.arange(3))):
        stored = model.initializers[name]
        np.testing.assert_array_equal(stored.array, expected)
        assert not stored.array.flags.owndata
        assert stored.ref is not None
        assert stored.ref.file == "model.onnx"
        assert data[stored.ref.offset : stored.ref.offset + stored.ref.size] == expected.tobytes()


def test_the_rest_of_the_model_is_what_onnx_reads(path: Path) -> None:
    expected = onnx.load(path)
    del expected.graph.initializer[:]
    assert load_model(path).proto == expected


def test_no_such_file(tmp_path: Path, path: Path) -> None:
    with pytest.raises(UsageError, match="no such file") as error:
        load_model(tmp_path / "modle.onnx")
    assert error.value.exit_code == 2
    assert error.value.place == str(tmp_path / "modle.onnx")
    assert error.value.hint == "In that folder: model.onnx."
    with pytest.raises(UsageError, match="this is a folder"):
        load_model(tmp_path)
    with pytest.raises(UsageError, match="no such file"):
        load_model(tmp_path / "no" / "folder.onnx")


@pytest.mark.parametrize(
    "data", [b"", b"PK\x03\x04 a zip file", b"# Just text\n" * 20, b"\x00" * 64, bytes(range(256)), b'{"json": 1}']
)
def test_not_onnx(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "m.onnx").write_bytes(data)
    with pytest.raises(ConfigError, match="this is not an ONNX model") as error:
        load_model(tmp_path / "m.onnx")
    assert error.value.exit_code == 2


def test_a_message_of_another_kind(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(numpy_helper.from_array(normal(30)).SerializeToString())
    with pytest.raises(ConfigError, match="this is not an ONNX model"):
        load_model(tmp_path / "m.onnx")


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.99])
def test_truncated(tmp_path: Path, path: Path, part: float) -> None:
    data = path.read_bytes()
    (tmp_path / "cut.onnx").write_bytes(data[: int(len(data) * part)])
    with pytest.raises(ConfigError, match="truncated") as error:
        load_model(tmp_path / "cut.onnx")
    assert error.value.exit_code == 2


def test_every_truncation_is_an_error_of_ours(tmp_path: Path) -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    data = save(tmp_path / "m.onnx", [node], {"x": ("float32", [2])}, ["y"]).read_bytes()
    for size in range(len(data)):
        (tmp_path / "cut.onnx").write_bytes(data[:size])
        with pytest.raises(ConfigError):
            load_model(tmp_path / "cut.onnx")


def test_names_that_are_no_text(tmp_path: Path, path: Path) -> None:
    (tmp_path / "bad.onnx").write_bytes(path.read_bytes().replace(b"MatMul", b"\xff\xfeMul!"))
    with pytest.raises(ConfigError, match="not UTF-8 text|not an ONNX model"):
        load_model(tmp_path / "bad.onnx")


def test_an_initializer_twice(tmp_path: Path) -> None:
    tensor = numpy_helper.from_array(normal(3), "w")
    output = onnx.ValueInfoProto(name="w")
    graph = helper.make_graph([], "g", [], [output], [tensor, tensor])
    (tmp_path / "m.onnx").write_bytes(helper.make_model(graph).SerializeToString())
    with pytest.raises(ConfigError, match="initializer 'w' is defined twice"):
        load_model(tmp_path / "m.onnx")


def test_a_pipe_is_no_model(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.onnx")
    with pytest.raises(UsageError, match="this is no file"):
        load_model(tmp_path / "model.onnx")
