"""Models of which a part runs on onnxruntime: the placement line, what --strict and recipes refuse, what is written."""

import json
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest

import tilec
from cli import models

MODELS = {
    "selection": (models.selection, "2 of 3 nodes compiled, 1 on onnxruntime (NonMaxSuppression)", "choose"),
    "doubling": (models.doubling, "1 of 3 nodes compiled, 2 on onnxruntime (Loop, Add)", "loop"),
    "contributed": (models.contributed, "2 of 3 nodes compiled, 1 on onnxruntime (Binarizer)", "binarizer"),
}


@pytest.fixture(params=MODELS)
def case(request, tmp_path):
    build, line, node = MODELS[request.param]
    return build(tmp_path / "model.onnx"), line, node


@pytest.mark.feature("B19")
def test_what_cannot_be_compiled_runs_on_onnxruntime(cli, tmp_path, case):
    path, line, _ = case
    ran = cli("compile", path, "--device", "host", "-o", "build")
    assert ran.code == 0, ran.err
    assert f"placement: {line}\n" in ran.err
    assert "verified on: host" in ran.err
    assert (tmp_path / "build" / "fallback" / "0.onnx").is_file()
    reference = onnxruntime.InferenceSession(str(path))
    feeds = {i.name: np.random.default_rng(3).random(i.shape, np.float32) for i in reference.get_inputs()}
    session = tilec.load(tmp_path / "build", threads=1)
    for _ in range(2):
        np.testing.assert_allclose(session.run(feeds)["y"], reference.run(None, feeds)[0], rtol=1e-5)


@pytest.mark.feature("B20")
def test_a_model_that_compiles_as_a_whole_needs_no_onnxruntime(cli, tmp_path):
    models.mlp(tmp_path / "model.onnx")
    assert cli("compile", "model.onnx", "--device", "host", "-o", "build", "--strict", "--to", "codegen").code == 0
    code = "import sys, numpy, tilec; tilec.load('build').run({'x': numpy.zeros((4, 16), 'f')})"
    code += "; sys.exit('onnxruntime' in sys.modules or 'tvm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path).returncode == 0


def test_strict_names_the_nodes(cli, listing, case):
    path, _, node = case
    before = listing()
    ran = cli("compile", path, "--strict", "--device", "host", "-o", "build")
    assert ran.code == 5
    assert f"node '{node}'" in ran.err
    assert "Traceback" not in ran.err
    assert listing() == before


def test_a_recipe_allows_some_operators(cli, tmp_path):
    models.contributed(tmp_path / "model.onnx")
    (tmp_path / "one.yaml").write_text("kind: compile\nfallback: [Binarizer]\n")
    (tmp_path / "other.yaml").write_text("kind: compile\nfallback: [Loop]\n")
    assert cli("import", "model.onnx", "--recipe", "one.yaml").code == 0
    refused = cli("import", "model.onnx", "--recipe", "other.yaml")
    assert refused.code == 5
    assert "'binarizer'" in refused.err


def test_report_gives_reasons(cli, listing, tmp_path):
    models.selection(tmp_path / "model.onnx")
    before = listing()
    ran = cli("import", "model.onnx", "--report", "--json")
    assert ran.code == 0
    found = json.loads(ran.out)
    assert (found["compiled"], found["total"]) == (2, 3)
    assert [entry["node"] for entry in found["unsupported"]] == ["choose"]
    assert found["unsupported"][0]["reason"] == "its output's shape depends on the data"
    (reported,) = found["sizes"]["ranges"].items()
    assert (reported[0], reported[1]["origin"]) == ("nonmaxsuppression_1", "node choose (NonMaxSuppression)")
    assert "nonmaxsuppression_1: 0.." in cli("import", "model.onnx", "--report").out
    assert cli("import", "model.onnx", "--report", "--strict").code == 5
    assert listing() == before


def test_another_model_leaves_no_old_cluster(cli, tmp_path):
    models.selection(tmp_path / "model.onnx")
    assert cli("import", "model.onnx", "-o", "build").code == 0
    assert (tmp_path / "build" / "fallback" / "0.onnx").is_file()
    models.mlp(tmp_path / "model.onnx")
    assert cli("import", "model.onnx", "-o", "build").code == 0
    assert not (tmp_path / "build" / "fallback" / "0.onnx").exists()


@pytest.mark.slow_cases("a100")
@pytest.mark.parametrize("device", ["a100", "avx2"])
def test_devices_that_are_not_here(cli, tmp_path, device):
    models.contributed(tmp_path / "model.onnx")
    ran = cli("compile", "model.onnx", "--device", device, "-o", "build")
    assert ran.code == 0, ran.err
    assert "verified on:" in ran.err


def test_random_numbers_are_left_out_of_the_comparison(cli, tmp_path):
    models.noisy(tmp_path / "model.onnx")
    ran = cli("compile", "model.onnx", "--device", "host", "-o", "build")
    assert ran.code == 0, ran.err
    report = json.loads((tmp_path / "build" / "4-report.json").read_text())
    assert report["random"] == ["y"]
    assert list(report["outputs"]) == ["z"]


def test_a_cluster_that_was_changed_does_not_load(cli, tmp_path):
    models.contributed(tmp_path / "model.onnx")
    assert cli("compile", "model.onnx", "--device", "host", "-o", "build", "--to", "codegen").code == 0
    cluster = tmp_path / "build" / "fallback" / "0.onnx"
    cluster.write_bytes(cluster.read_bytes() + b"\0")
    with pytest.raises(tilec.errors.ArtifactError, match="not the file that was compiled"):
        tilec.load(tmp_path / "build")


def test_large_constants_lie_beside_their_cluster(cli, tmp_path, monkeypatch):
    monkeypatch.setattr("tilec.importer.clusters.MAX_EMBEDDED_BYTES", 8)
    path = models.distances(tmp_path / "model.onnx")
    assert cli("import", "model.onnx", "-o", "first").code == 0
    assert cli("schedule", "first", "--device", "host", "-o", "second").code == 0
    assert cli("codegen", "second", "-o", "build").code == 0
    assert cli("verify", "build").code == 0
    assert (tmp_path / "build" / "fallback" / "0.onnx.data").stat().st_size == 6 * 8 * 4
    feeds = {"x": np.random.default_rng(3).random((3, 8), np.float32)}
    expected = onnxruntime.InferenceSession(str(path)).run(None, feeds)[0]
    np.testing.assert_allclose(tilec.load(tmp_path / "build").run(feeds)["y"], expected, rtol=1e-5)


def test_what_cannot_be_drawn_is_not_verified_and_says_so(cli, tmp_path):
    models.given_sequence(tmp_path / "model.onnx")
    for more, code in (((), 7), ((), 7), (("--allow-unverified",), 0)):
        ran = cli("compile", "model.onnx", "--device", "host", "-o", "build", *more)
        assert ran.code == code, ran.err
        assert "verified on: nothing (input 'items', seq(tensor(float)), cannot be drawn at random)" in ran.err
    assert cli("verify", "build").code == 7
    assert cli("verify", "build", "--allow-unverified").code == 0
    x = np.ones(4, np.float32)
    found = tilec.load(tmp_path / "build").run({"items": [x, x], "x": x})
    assert found["n"] == 2
    np.testing.assert_allclose(found["y"], np.exp(x), rtol=1e-6)
