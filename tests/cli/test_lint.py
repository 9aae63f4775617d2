"""`tilec lint`: what it takes, what it prints, how it exits."""

import json

import pytest

from cli import models


def test_what_comes_with_tilec_is_clean(cli):
    ran = cli("lint", "a100", "default", "bounds/gqa", "--strict")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == "lint: 3 files: no findings\n"


def test_errors_fail_and_warnings_do_not_unless_strict(cli, tmp_path):
    (tmp_path / "warn.yaml").write_text("verify: {seeds: [1]}\n")
    ran = cli("lint", "warn.yaml")
    assert ran.code == 0
    assert ran.out.splitlines()[0] == "warn.yaml:1:17: warning few-seeds: verify.seeds has one seed"
    assert cli("lint", "warn.yaml", "--strict").code == 1
    (tmp_path / "wrong.yaml").write_text("devise: a100\n")
    ran = cli("lint", "warn.yaml", "wrong.yaml")
    assert ran.code == 1
    assert "wrong.yaml:1:1: error unknown-key: unknown key 'devise'\n  Did you mean 'device'?" in ran.out
    assert ran.err == "lint: 2 files: 1 error, 1 warning\n"


def test_a_folder_of_artifacts_and_all_forms(cli, tmp_path):
    models.selection(tmp_path / "model.onnx")
    assert cli("compile", "model.onnx", "--device", "a100", "--to", "schedule", "--no-bounds", "-o", "b").code == 0
    ran = cli("lint", "b")
    assert ran.code == 0
    assert "b/1-graph.json#/placement/fallback: warning falls-back: 1 of 3 nodes run on onnxruntime" in ran.out
    assert ran.err.startswith("lint: 3 files: ")
    told = json.loads(cli("lint", "b", "--json").out)
    assert told == json.loads(cli("lint", "b", "--format", "json").out)
    assert {each["code"] for each in told["findings"]} == {"falls-back"}
    assert json.loads(cli("lint", "b", "--format", "sarif").out)["version"] == "2.1.0"
    assert cli("lint", "b", "--format", "github", "-q").out.startswith("::warning file=b/1-graph.json,")
    assert cli("lint", "b", "--format", "github", "-q").err == ""
    page = cli("explain", "falls-back")
    assert page.code == 0
    assert "nodes of the model run on onnxruntime" in page.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "FILE"),
        (["none.yaml"], "none.yaml: no such file"),
        (["a1000"], "Did you mean 'a100'?"),
        (["model.onnx"], "this is no .yaml or .json file"),
        (["binary.yaml"], "this is no text"),
        (["empty"], "nothing to look at"),
        (["a100", "--format", "sarfi"], "Did you mean 'sarif'?"),
        (["a100", "--format", "xml"], "Known: table, json, sarif, github."),
        (["a100", "--json", "--format", "sarif"], "two forms"),
    ],
)
def test_usage_errors(cli, tmp_path, arguments, said):
    (tmp_path / "model.onnx").write_text("?")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "empty").mkdir()
    ran = cli("lint", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
