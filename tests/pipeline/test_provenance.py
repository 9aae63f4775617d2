"""What run.json tells of the programs that made the artifacts beside it."""

import json

import pytest

from tilec.artifact import tools
from tilec.errors import TilecError
from tilec.pipeline import read_run
from tilec.pipeline.provenance import outdated, write_run


def test_what_the_programs_of_now_made_is_up_to_date(tmp_path):
    write_run("import", tmp_path, None)
    assert outdated("import", tmp_path) is None
    assert read_run(tmp_path)["made_by"] == {"import": tools()}


def test_a_change_of_any_program_is_told_with_both_versions(tmp_path, monkeypatch):
    write_run("import", tmp_path, None)
    now = tools()
    monkeypatch.setattr("tilec.pipeline.provenance.tools", lambda: {**now, "onnx": "99"})
    assert outdated("import", tmp_path) == f"made by onnx {now['onnx']}, here is onnx 99"
    monkeypatch.setattr("tilec.pipeline.provenance.tools", lambda: {**now, "onnx": "", "tilec": "2"})
    assert outdated("import", tmp_path) == f"made by tilec {now['tilec']}, here is tilec 2"
    monkeypatch.setattr("tilec.pipeline.provenance.tools", lambda: {**now, "onnx": ""})
    assert outdated("import", tmp_path) == f"made by onnx {now['onnx']}, here is no onnx"


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"made_by": 3}', '{"made_by": {"import": 3}}'])
def test_nothing_known_is_nothing_changed_and_is_mended(tmp_path, text):
    if text is not None:
        (tmp_path / "run.json").write_text(text)
    assert outdated("import", tmp_path) is None
    write_run("import", tmp_path, None)
    assert read_run(tmp_path)["made_by"]["import"] == tools()


def test_what_is_told_replaces_what_was_told_and_not_the_makers(tmp_path):
    write_run("import", tmp_path, None)
    write_run("verify", tmp_path, {"draws": [1], "latency_us": 3})
    write_run("schedule", tmp_path, None)
    assert read_run(tmp_path)["draws"] == [1]
    write_run("verify", tmp_path, {"draws": [2]})
    record = json.loads((tmp_path / "run.json").read_text())
    assert record.keys() == {"draws", "made_by"}
    assert record["made_by"].keys() == {"import", "schedule", "verify"}


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TilecError, match="file"):
        write_run("import", tmp_path / "file", None)
