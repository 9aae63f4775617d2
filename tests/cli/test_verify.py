"""`tilec verify` beyond its plain use: groups on their own, given inputs, JUnit, a planted miscompile reduced."""

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

import miscompiled
import numpy as np
import onnx
import pytest
from onnx import helper

from cli import models
from tilec.cli.plan_origin import planned_recipe
from tilec.pipeline import read_source


def attention(path):
    """A product, a softmax over its rows and another product between elementwise nodes."""
    nodes = [
        helper.make_node("Tanh", ["x"], ["t"], name="squash"),
        helper.make_node("MatMul", ["t", "w1"], ["scores"], name="scores"),
        helper.make_node("Softmax", ["scores"], ["rows"], name="rows", axis=-1),
        helper.make_node("MatMul", ["rows", "w2"], ["mixed"], name="mixed"),
        helper.make_node("Relu", ["mixed"], ["y"], name="clip"),
    ]
    weights = [models.weight("w1", 4, 8), models.weight("w2", 8, 2)]
    return models.save(path, nodes, [models.value("x", 3, 4)], [models.value("y", 3, 2)], weights)


def test_right_groups_are_all_compared(cli, build, tmp_path):
    ran = cli("verify", "model.tilec", "--per-group", "--junit", "out/verify.xml", "--json")
    assert ran.code == 0
    told = json.loads(ran.out)
    total = told["per_group"]["total"]
    assert told["per_group"] == {"compared": total, "diverging": [], "total": total}
    assert f"per group: {total} of {total} compared, all right" in ran.err.splitlines()
    run = json.loads((build / "run.json").read_text())
    assert len(run["groups"]) == total
    for group in run["groups"].values():
        assert group["error"] <= group["tolerance"]
    suite = ElementTree.parse(tmp_path / "out" / "verify.xml").find("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == (str(2 + total), "0")
    assert "per_group" not in json.loads(cli("verify", "model.tilec", "--json").out)


def test_given_inputs_stand_for_random_ones(cli, build, tmp_path):
    np.savez(tmp_path / "in.npz", x=np.ones((4, 16), np.float32))
    assert cli("verify", "model.tilec", "--inputs", "in.npz", "-v").err.count("y, in.npz: off by") == 1
    (draw,) = json.loads((build / "run.json").read_text())["draws"]
    assert draw["inputs"] == "in.npz"
    again = cli("verify", "model.tilec", "--inputs", "in.npz")
    assert "verify: unchanged, skipped" in again.err
    np.savez(tmp_path / "in.npz", x=np.zeros((4, 16), np.float32))
    assert "verify: done" in cli("verify", "model.tilec", "--inputs", "in.npz").err
    (tmp_path / "r").mkdir()
    shutil.move(tmp_path / "in.npz", tmp_path / "r" / "in.npz")
    (tmp_path / "r" / "r.yaml").write_text("verify: {inputs: in.npz}\n")
    assert "unchanged, skipped" in cli("verify", "model.tilec", "--recipe", "r/r.yaml").err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--inputs", "none.npz"], 2, "none.npz: no such file"),
        (["--inputs", "model.onnx"], 2, "no .npz file of arrays"),
        (["-o", "repro"], 2, "Add --reduce"),
        (["--reduce", "--junit", "x.xml"], 2, "Run them apart"),
        (["--reduce"], 1, "nothing to reduce"),
        (["--junit", "model.onnx/x.xml"], 1, "cannot write"),
    ],
)
def test_what_cannot_be(cli, build, listing, arguments, code, said):
    before = set(listing())
    ran = cli("verify", "model.tilec", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert set(listing()) == before


def test_an_error_goes_to_the_junit_file_too(cli, build, tmp_path):
    for name in ("model.onnx", "4-report.json"):
        (build / name).unlink()
    assert cli("verify", "model.tilec", "--junit", "verify.xml").code == 2
    case = ElementTree.parse(tmp_path / "verify.xml").find("testsuite/testcase/error")
    assert case.get("type") == "ArtifactError"


def test_a_planted_miscompile_is_found_and_reduced(cli, monkeypatch, tmp_path):
    attention(tmp_path / "model.onnx")
    with monkeypatch.context() as planted:
        miscompiled.plant(planted, "exp")
        assert cli("compile", "model.onnx", "--device", "host", "--to", "codegen").code == 0
        ran = cli("verify", "model.tilec", "--per-group", "--junit", "verify.xml", "--json")
        assert ran.code == 4
        (first, *_) = json.loads(ran.out)["per_group"]["diverging"]
        assert first["origin"] == "squash, scores and 3 more"
        assert f"first divergence: group {first['group']} (" in ran.err
        assert f"tensor {first['tensor']}: " in ran.err
        assert f"{first['tolerance']:.1e} is allowed" in ran.err
        assert ElementTree.parse(tmp_path / "verify.xml").findall(".//failure")
        ran = cli("verify", "--reduce", "model.tilec", "-o", "repro")
        assert ran.code == 0
        assert ran.out == "tilec compile repro/model.onnx --recipe repro/recipe.yaml -o repro/build\n"
        assert "reduced: 5 -> 1 node (Softmax)" in ran.err
        again = cli(*ran.out.split()[1:])
        assert again.code == 4
        assert "differs from onnxruntime" in again.err
        assert "First diverging group: " in again.err
    small = onnx.load(str(tmp_path / "repro" / "model.onnx"))
    (port,) = small.graph.input
    extents = [each.dim_value for each in port.type.tensor_type.shape.dim]
    assert np.prod(extents) < 3 * 8
    with np.load(tmp_path / "repro" / "inputs.npz") as inputs:
        assert inputs[port.name].shape == tuple(extents)


def test_parts_are_compiled_by_the_recipe_beside_the_plan(cli, tmp_path):
    models.mlp(tmp_path / "model.onnx")
    (tmp_path / "r.yaml").write_text("schedule: {fusion: register, bounds: false}\n")
    options = ("--device", "host", "--to", "schedule")
    assert cli("compile", "model.onnx", *options, "--recipe", "r.yaml", "-o", "other").code == 0
    assert cli("compile", "model.onnx", *options, "-o", "default").code == 0
    other, default = (read_source("plan", Path(name)) for name in ("other", "default"))
    assert planned_recipe(other, None) == str(Path("other") / "recipe.yaml")
    assert planned_recipe(default, None) is None
    assert planned_recipe(other, "latency") == "latency"
    (tmp_path / "other" / "recipe.yaml").write_text("schedule: {fusion: none}\n")
    assert planned_recipe(other, None) is None


def test_groups_on_the_tile_machine(cli, tmp_path):
    models.mlp(tmp_path / "model.onnx")
    assert cli("compile", "model.onnx", "--device", "ipu-mk2", "-o", "a", "--to", "codegen").code == 0
    ran = cli("verify", "a", "--per-group", "--json")
    assert ran.code == 0
    told = json.loads(ran.out)
    assert told["verified_on"] == "tile machine"
    assert told["per_group"]["compared"] == told["per_group"]["total"] >= 1
    assert cli("verify", "a", "--reduce").code == 2


def test_groups_are_those_of_the_library_and_need_no_device(cli, build):
    (build / "device.yaml").unlink()
    assert cli("verify", "model.tilec", "--per-group").code == 0


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_text("x")])
def test_a_library_that_is_damaged_is_no_verified_model_and_is_written_anew(cli, build, damage):
    (library,) = build.glob("kernels*.a")
    right = library.read_bytes()
    damage(library)
    ran = cli("verify", build)
    assert (ran.code, ran.err.splitlines()[-1]) == (2, "  Run `tilec codegen` again.")
    assert library.name in ran.err.splitlines()[-2]
    assert cli("codegen", build).code == 0
    assert library.read_bytes() == right
    assert "verified on: host" in cli("verify", build).err


def test_a_model_without_its_weights_is_no_verified_model(cli, build):
    named = json.loads((build / "3-kernels.json").read_text())["runtime"]["weights"]
    (build / named[0]["file"]).unlink()
    ran = cli("verify", build)
    assert (ran.code, ran.err.splitlines()[-1]) == (2, "  Compile the model again, or name it with --model PATH.")
    assert ran.err.splitlines()[-2].endswith(f"{named[0]['file']}, which holds weights, is not here")
