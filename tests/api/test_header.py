"""Headers are read without onnx; what is no sound model is told by who reads it best."""

import subprocess
import sys

import onnx
import pytest

from api import models
from tilec.api import header
from tilec.api.header import read_header
from tilec.errors import ConfigError


def saved(folder, proto):
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


@pytest.mark.parametrize("name", ["affine", "two_inputs", "selection", "words", "pieces", "encoder"])
def test_the_header_is_what_onnx_reads(tmp_path, monkeypatch, name):
    from tilec.importer.loader import load_structure

    path = saved(tmp_path, getattr(models, name)())
    found = read_header(path)
    onnxs = load_structure(path)
    monkeypatch.setattr(header, "_structure", lambda _: (onnxs.proto, [tensor for tensor, _ in onnxs.tensors]))
    assert read_header(path) == found
    assert found.inputs


def test_a_header_needs_no_onnx(tmp_path):
    path = saved(tmp_path, models.affine())
    code = "import sys, pathlib, tilec.api.header as h; h.read_header(pathlib.Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", f"{code}; assert 'onnx' not in sys.modules", str(path)], check=True)


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-3], lambda _: b"", lambda _: onnx.ModelProto().SerializeToString()]
)
def test_what_is_no_model_is_told(tmp_path, damage):
    path = tmp_path / "model.onnx"
    path.write_bytes(damage(models.affine().SerializeToString()))
    with pytest.raises(ConfigError):
        read_header(path)
