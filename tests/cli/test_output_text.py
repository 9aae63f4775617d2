"""Names that the encoding of the locale lacks: escaped on standard output, refused as file names."""

import json
import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx import helper

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def tilec(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    environment = {**os.environ, **ASCII, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "tilec", *arguments]
    return subprocess.run([each.encode() for each in command], cwd=folder, env=environment, capture_output=True)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    ports = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["größe", 4]) for name in ("вход", "🦊")]
    graph = helper.make_graph([helper.make_node("Relu", ["вход"], ["🦊"])], "модель", ports[:1], ports[1:])
    onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    return tmp_path


def test_names_of_a_model_are_escaped(model: Path) -> None:
    shown = tilec(model, "inspect", "m.onnx")
    assert (shown.returncode, shown.stderr) == (0, b"")
    assert b"\\u0432\\u0445\\u043e\\u0434  tensor(float)  [gr\\u00f6\\u00dfe, 4]" in shown.stdout
    data = json.loads(tilec(model, "inspect", "m.onnx", "--json").stdout.decode("ascii"))
    assert [port["name"] for port in (*data["inputs"], *data["outputs"])] == ["вход", "🦊"]


def test_a_file_name_that_is_no_text_is_an_error_of_the_locale(model: Path) -> None:
    (model / "m.onnx").rename(model / "größe.onnx")
    ran = tilec(model, "import", "größe.onnx")
    assert ran.returncode == 2
    assert ran.stderr.startswith(b"error: a name has '\\udcc3\\udcb6\\udcc3\\udc9f', which is no text where file names")
    assert b"PYTHONUTF8=1" in ran.stderr
