"""Models that cannot be imported: message, exit code, nothing left behind."""

import pytest

from cli import models
from tests.importer.broken import CHANGES, broken
from tests.importer.test_broken_models import ACCEPTED_HERE_ALONE, SAID


def check(cli, listing, arguments, code, *said):
    before = listing()
    ran = cli(*arguments)
    assert ran.code == code, ran.err
    assert ran.out == ""
    assert ran.err.startswith("error: ")
    assert "Traceback" not in ran.err
    for words in said:
        assert words in ran.err
    assert listing() == before


def test_no_such_file(cli, listing, tmp_path):
    models.mlp(tmp_path / "model.onnx")
    check(cli, listing, ["import", "modle.onnx"], 2, "modle.onnx: no such file", "model.onnx")


def test_a_folder_is_not_a_model(cli, listing, tmp_path):
    (tmp_path / "folder").mkdir()
    check(cli, listing, ["import", "folder"], 2, "folder, not a model")


@pytest.mark.parametrize("content", [b"", b"hello, this is text\n", b"\x89PNG\r\n\x1a\n" + bytes(64)])
def test_not_onnx(cli, listing, tmp_path, content):
    (tmp_path / "model.onnx").write_bytes(content)
    check(cli, listing, ["import", "model.onnx"], 2, "model.onnx", "not an ONNX model")


@pytest.mark.parametrize("share", [0.3, 0.7, 0.99])
def test_truncated(cli, listing, tmp_path, share):
    whole = models.mlp(tmp_path / "model.onnx").read_bytes()
    (tmp_path / "model.onnx").write_bytes(whole[: int(share * len(whole))])
    check(cli, listing, ["import", "model.onnx"], 2, "model.onnx", "truncated")


@pytest.mark.parametrize(
    ("build", "code", "said"),
    [
        (models.cycle, 2, ["cycle", "one"]),
        (models.duplicate, 2, ["'y' is also defined by node 'one'"]),
        (models.undefined, 2, ["'wieght'", "Did you mean 'weight'?"]),
        (models.mismatch, 2, ["product", "16", "15"]),
        (models.outside, 2, ["../weights.bin", "outside the model's folder"]),
        (lambda path: models.unary(path, "Frobnicate"), 5, ["strange", "Frobnicate"]),
    ],
    ids=["cycle", "duplicate", "undefined", "mismatch", "outside", "unknown"],
)
def test_broken_models(cli, listing, tmp_path, build, code, said):
    build(tmp_path / "models" / "model.onnx")
    check(cli, listing, ["import", "models/model.onnx", "-o", "build"], code, "model.onnx", *said)
    check(cli, listing, ["compile", "models/model.onnx", "--device", "a100", "-o", "build"], code, *said)


@pytest.mark.parametrize("name", [name for name in CHANGES if name in SAID or "twice" in name or "opset" in name])
def test_a_model_that_breaks_a_rule_leaves_nothing_behind(cli, listing, tmp_path, name):
    (tmp_path / "model.onnx").write_bytes(broken(name).SerializeToString())
    if name not in ACCEPTED_HERE_ALONE | {"opset_twice": ""}:
        code = 5 if name in ("node_unknown_domain", "ir_99", "opset_99") else 2
        check(cli, listing, ["compile", "model.onnx", "--device", "a100"], code, "model.onnx", SAID.get(name, ""))
        check(cli, listing, ["import", "model.onnx", "-o", "build"], code)


def test_report_lists_unsupported_nodes_and_writes_nothing(cli, listing, tmp_path):
    models.unary(tmp_path / "model.onnx", "Frobnicate")
    before = listing()
    ran = cli("import", "model.onnx", "--report")
    assert ran.code == 0
    assert "strange (Frobnicate): " in ran.out
    assert "0 of 1 node compiles" in ran.err
    assert cli("import", "model.onnx", "--report", "--strict").code == 5
    assert listing() == before


def test_unknown_symbol(cli, listing, tmp_path):
    models.mlp(tmp_path / "model.onnx", "batch")
    check(cli, listing, ["import", "model.onnx", "--shape", "bacth=2"], 2, "'bacth'", "Did you mean 'batch'?")


@pytest.mark.parametrize("text", ["batch", "batch=", "batch=-1", "batch=two", "=3", "batch=1,batch=2"])
def test_malformed_shapes(cli, listing, tmp_path, text):
    models.mlp(tmp_path / "model.onnx", "batch")
    check(cli, listing, ["import", "model.onnx", "--shape", text], 2, "--shape")
