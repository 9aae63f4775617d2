"""`tilec bench`: what it times, prints and refuses."""

import json
import re

import pytest

from cli import models
from tilec.extras import install

FEW = ("--processes", 1, "--rounds", 2)


@pytest.mark.feature("W45")
def test_bench_of_a_build_prints_one_object(cli, build):
    ran = cli("bench", "model.tilec", "--json", "--threads", 1, "--bar", 0.0, *FEW)
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert (found["threads"], found["processes"], found["bar"]) == (1, 1, 0.0)
    model = found["models"]["model.tilec"]
    assert {name: len(times) for name, times in model["rounds_s"].items()} == {"tilec": 2, "onnxruntime": 2}
    peer = model["peers"]["onnxruntime"]
    assert peer["interval"][0] <= peer["ratio"] <= peer["interval"][1]
    assert peer["verdict"] == "holds"
    assert model["compile_s"] >= 0
    assert all(0 < model["load_s"][runner] < 60 for runner in ("tilec", "onnxruntime"))
    assert all(model["peak_bytes"][runner] > 1 << 20 for runner in ("tilec", "onnxruntime"))
    assert ran.err.startswith("bench model: done in ")


def test_bench_compiles_a_model_first_and_prints_a_table(cli, tmp_path):
    models.mlp(tmp_path / "model.onnx")
    ran = cli("bench", "model.onnx", *FEW)
    assert ran.code == 0, ran.err
    assert "codegen: done" in ran.err
    header, row = (re.split(" {2,}", line.strip()) for line in ran.out.splitlines())
    assert header == ["model", "peer", "ms", "ratio", "95 % interval", ">= 0.97", "load s", "peak MiB"]
    assert row[:2] == ["model.onnx", "onnxruntime"]
    assert row[5] in ("holds", "undecided", "fails")
    assert all(re.fullmatch(r"[0-9.]+ / [0-9.]+", both) for both in (row[2], *row[6:]))


def test_bench_recipe(cli, build, tmp_path):
    (tmp_path / "bench.yaml").write_text("kind: bench\nmodels: [model.tilec]\nthreads: 1\nprocesses: 1\nrounds: 1\n")
    found = json.loads(cli("bench", "--recipe", "bench.yaml", "--json").out)
    assert found["threads"] == 1
    assert len(found["models"]["model.tilec"]["rounds_s"]["tilec"]) == 1


def test_models_of_the_zoo_are_kept_in_the_cache(cli, tmp_path, monkeypatch):
    from tilec.cli import bench

    made = []

    def export(name, path, batch):
        made.append((name, batch))
        models.mlp(path)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("tilec.zoo.export", export)
    monkeypatch.setattr(bench, "_timed", lambda *_: pytest.fail("timed"))
    monkeypatch.setattr(bench, "_compiled", lambda console, model, folder, device: made.append((model, folder)))
    bench._of_zoo(None, "resnet-50", 2, None)
    bench._of_zoo(None, "resnet-50", 2, None)
    folder = made[1][0].parent
    assert folder.is_relative_to(tmp_path / "cache" / "tilec" / "zoo")
    kept = (folder / "resnet-50-batch2.onnx", folder / "resnet-50-batch2.tilec")
    assert made == [("resnet-50", 2), kept, kept]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "nothing to time"),
        (["resnet-5"], "Did you mean 'resnet-50' of the zoo?"),
        (["nowhere/"], "there is no 'nowhere/'"),
        (["model.tilec", "--against", "openvno"], "nothing to compare with is called 'openvno'"),
        (["."], "3-kernels.json: no such file"),
    ],
)
def test_bench_refuses(cli, build, arguments, said):
    ran = cli("bench", *arguments)
    assert ran.code == 2
    assert ran.out == ""
    assert said in ran.err


@pytest.mark.parametrize(
    ("name", "provider"),
    [("onnxruntime-cuda", "CUDAExecutionProvider"), ("tensorrt", "TensorrtExecutionProvider")],
)
def test_a_provider_of_gpus_that_is_not_there_is_told_before_anything_is_compiled(cli, tmp_path, name, provider):
    models.mlp(tmp_path / "model.onnx")
    ran = cli("bench", "model.onnx", "--against", f"onnxruntime,{name}")
    assert ran.code == 6
    assert f"this onnxruntime has no {provider}" in ran.err
    assert "pip install onnxruntime-gpu" in ran.err
    assert not (tmp_path / "model.tilec").exists()


def test_a_runtime_that_is_not_installed_is_told_before_anything_is_compiled(cli, tmp_path, monkeypatch):
    models.mlp(tmp_path / "model.onnx")
    monkeypatch.setattr("tilec.bench.peers.find_spec", lambda name: None)
    ran = cli("bench", "model.onnx", "--against", "openvino")
    assert ran.code == 6
    assert "openvino is not installed" in ran.err
    assert install("bench") in ran.err
    assert not (tmp_path / "model.tilec").exists()


def test_a_plan_for_another_device_cannot_be_timed(cli, tmp_path):
    models.mlp(tmp_path / "model.onnx")
    assert cli("compile", "model.onnx", "--device", "ipu-mk2", "--to", "codegen").code == 0
    ran = cli("bench", "model.tilec")
    assert ran.code == 2
    assert "cannot run here" in ran.err


def test_a_trace_has_an_event_for_every_group(cli, build, tmp_path):
    ran = cli("bench", "model.tilec", "--json", "--threads", 1, "--trace", "trace.json", *FEW)
    assert ran.code == 0, ran.err
    groups = json.loads(ran.out)["models"]["model.tilec"]["groups"]
    planned = json.loads((tmp_path / "model.tilec" / "2-plan.json").read_text())["groups"]
    made = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [each["group"] for each in groups] == [group["name"] for group in planned]
    assert [event["name"] for event in made if event["ph"] == "X"] == [group["name"] for group in planned]
    assert all(each["seconds"] > 0 and each["roofline"] > 0 for each in groups)


def test_a_trace_needs_the_device_that_a_model_was_compiled_for(cli, tmp_path):
    models.mlp(tmp_path / "model.onnx")
    measured = cli("device", "show", "host").out
    (tmp_path / "mine.yaml").write_text(measured.replace("name: host", "name: mine", 1))
    timed = ("bench", "model.onnx", "--threads", 1, "--trace", "trace.json", *FEW)
    ran = cli(*timed, "--device", "mine.yaml")
    assert ran.code == 0, ran.err
    (tmp_path / "model.tilec" / "device.yaml").unlink()
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    ran = cli("bench", "model.tilec", *timed[2:])
    assert ran.code == 2
    assert "the file of its device 'mine' is not here" in ran.err
    assert "--device FILE" in ran.err
    assert "bench model: done" not in ran.err, "nothing is timed in vain"


def test_a_trace_takes_a_build_for_another_device_than_the_one_that_models_are_compiled_for(cli, build, tmp_path):
    measured = cli("device", "show", "host").out
    (tmp_path / "mine.yaml").write_text(measured.replace("name: host", "name: mine", 1))
    ran = cli("bench", "model.tilec", "--threads", 1, "--trace", "trace.json", "--device", "mine.yaml", *FEW)
    assert ran.code == 0, ran.err
