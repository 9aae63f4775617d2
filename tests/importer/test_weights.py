"""Values of initializers: raw, typed fields, external files; and where they must not lie."""

import hashlib
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.importer.reference import compare, normal, run
from tilec.errors import ConfigError, UnsupportedError
from tilec.importer import import_model
from tilec.importer.element_types import ELEMENT_TYPES
from tilec.importer.loader import load_model
from tilec.ir.graph import Inline, WeightRef
from tilec.ir.types import TTYPES, numpy_dtype


def write(folder: Path, *tensors: Any, kind: int = TensorProto.FLOAT) -> Path:
    """A model whose only output is the first tensor."""
    output = helper.make_tensor_value_info(tensors[0].name, kind, None)
    graph = helper.make_graph([], "g", [], [output], list(tensors))
    path = folder / "model.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("code", sorted(ELEMENT_TYPES))
@pytest.mark.parametrize("raw", [True, False])
def test_every_element_type(tmp_path: Path, code: int, raw: bool) -> None:
    dtype = numpy_dtype(ELEMENT_TYPES[code])
    values = np.array([0, 1, 1, 0, 2, 3][: 4 if dtype == np.bool_ else 6]).astype(dtype).reshape(2, -1)
    if raw:
        tensor = numpy_helper.from_array(values, "w")
    elif dtype == ml_dtypes.bfloat16:
        tensor = helper.make_tensor("w", code, values.shape, values.astype(np.float32).ravel().tolist())
    else:
        tensor = helper.make_tensor("w", code, values.shape, values.ravel().tolist())
    stored = load_model(write(tmp_path, tensor, kind=code)).initializers["w"]
    assert stored.shape == values.shape
    if TTYPES[stored.ttype].coded:
        np.testing.assert_array_equal(stored.codes, values.view(np.uint8))
        whole_rows = values.shape[1] % TTYPES[stored.ttype].per_word == 0
        assert (stored.ref is not None) == (raw and whole_rows)
    else:
        assert stored.array.dtype == dtype
        np.testing.assert_array_equal(stored.array, values)
        assert (stored.ref is not None) == raw


def test_small_values_stand_in_the_graph_and_large_typed_ones_are_written(tmp_path: Path) -> None:
    tensor = helper.make_tensor("w", TensorProto.FLOAT, [100], normal(100).tolist())
    imported = import_model(write(tmp_path, tensor))
    ref = imported.graph.constants["w"]
    assert isinstance(ref, WeightRef)
    assert (ref.file, ref.owned) == (imported.owned_file, True)
    digest = hashlib.sha256(b"".join(imported.weights)).hexdigest()
    assert imported.graph.files == {imported.owned_file: digest}
    np.testing.assert_array_equal(run(imported, tmp_path, {})[0], normal(100))
    small = helper.make_tensor("w", TensorProto.FLOAT, [2], [0.5, float("nan")])
    imported = import_model(write(tmp_path, small))
    assert isinstance(imported.graph.constants["w"], Inline)
    assert imported.weights == ()


def external(name: str, shape: tuple[int, ...], **entries: str | int) -> Any:
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def test_external_data_is_referenced_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    values = normal(10, 10)
    (tmp_path / "sub" / "w.bin").write_bytes(b"\0" * 12 + values.tobytes())
    path = write(tmp_path, external("w", (10, 10), location="sub/w.bin", offset=12, length=400))
    graph = compare(path, {})
    assert graph.constants["w"] == WeightRef("sub/w.bin", 12, 400)
    assert graph.files.keys() == {"sub/w.bin"}


def test_external_data_that_onnx_saved(tmp_path: Path) -> None:
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    infos = [helper.make_tensor_value_info(n, 1, s) for n, s in (("x", [2, 30]), ("y", [2, 20]))]
    graph = helper.make_graph([node], "g", infos[:1], infos[1:], [numpy_helper.from_array(normal(30, 20), "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=8)
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    assert compare(tmp_path / "m.onnx", {"x": normal(2, 30)}, rtol=1e-4).files.keys() == {"m.data"}


@pytest.mark.parametrize("location", ["../w.bin", "/etc/passwd", "a/../../w.bin", "link.bin", "..\\w.bin"])
def test_external_data_outside_the_folder_is_refused(tmp_path: Path, location: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(normal(100).tobytes())
    (folder / "link.bin").symlink_to(tmp_path / "w.bin")
    path = write(folder, external("w", (100,), location=location))
    with pytest.raises(ConfigError, match="lies outside the model's folder") as error:
        import_model(path)
    assert error.value.exit_code == 2
    assert error.value.place == "model.onnx: initializer 'w'"


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"location": "gone.bin"}, "'gone.bin' cannot be read: No such file"),
        ({"location": "w.bin", "offset": 4}, "holds 400 bytes, the tensor ends at byte 404"),
        ({"location": "w.bin", "length": 396}, "takes 400 bytes, the file holds 396"),
        ({"location": "w.bin", "offset": -4}, "the tensor ends at byte 396"),
        ({"location": "w.bin", "offset": "x"}, "a bad offset or length"),
        ({"offset": 0}, "external data without a location"),
    ],
)
def test_external_data_that_does_not_fit(tmp_path: Path, entries: dict[str, str | int], message: str) -> None:
    (tmp_path / "w.bin").write_bytes(normal(100).tobytes())
    with pytest.raises(ConfigError, match=message) as error:
        import_model(write(tmp_path, external("w", (100,), **entries)))
    assert error.value.exit_code == 2


def test_sizes_are_checked_before_anything_is_allocated(tmp_path: Path) -> None:
    huge = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[1 << 40, 1 << 40], raw_data=b"1234")
    with pytest.raises(ConfigError, match="takes 4835703278458516698824704 bytes, the file holds 4"):
        import_model(write(tmp_path, huge))
    typed = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[1 << 40, 1 << 40], float_data=[1.0])
    with pytest.raises(ConfigError, match="the values do not fit shape"):
        import_model(write(tmp_path, typed))
    negative = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[-1], raw_data=b"1234")
    with pytest.raises(ConfigError, match="has a negative extent"):
        import_model(write(tmp_path, negative))


def test_element_types_without_a_ttype(tmp_path: Path) -> None:
    text = helper.make_tensor("w", TensorProto.STRING, [1], [b"a"])
    with pytest.raises(UnsupportedError, match=r"output 'w', which is a tensor\(string\), is made by no node"):
        import_model(write(tmp_path, text, kind=TensorProto.STRING))
