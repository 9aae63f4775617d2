"""A miscompile planted in bert-base: the group is named, and what is left of the model is a few nodes."""

import json
import shutil
import time

import miscompiled
import onnx
import pytest
from cli.conftest import cli  # noqa: F401


@pytest.mark.slow
def test_a_miscompile_in_bert_base_is_found_and_reduced(cli, monkeypatch, tmp_path):  # noqa: F811
    assert cli("zoo", "export", "bert-base", "-o", "bert.onnx").code == 0
    miscompiled.plant(monkeypatch, "exp")
    assert cli("compile", "bert.onnx", "--device", "host", "--to", "codegen", "--no-bounds").code == 0
    ran = cli("verify", "bert.tilec", "--per-group", "--json")
    assert ran.code == 4
    first = json.loads(ran.out)["per_group"]["diverging"][0]
    assert first["group"].startswith("encoder_layer_0_attention")
    begin = time.monotonic()
    ran = cli("verify", "--reduce", "bert.tilec", "-o", "repro")
    assert time.monotonic() - begin < 300
    assert ran.code == 0
    assert len(onnx.load(str(tmp_path / "repro" / "model.onnx")).graph.node) <= 5
    assert cli(*ran.out.split()[1:]).code == 4
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    shutil.rmtree(tmp_path / "repro" / "build")
    assert cli(*ran.out.split()[1:]).code == 0  # the compiler as it is makes no such mistake
