"""`tilec compile` and the stages one by one, for this machine: what is written, skipped, refused and said."""

import json
import mmap
import os
import re
from pathlib import Path

import numpy as np
import pytest
from onnx import numpy_helper

from cli import models
from tilec.artifact import Artifact
from tilec.runtime import load

ARTIFACTS = ("1-graph.json", "2-plan.json", "3-kernels.json", "4-report.json")


def contents(folder: Path) -> dict[str, bytes]:
    """What the promise of equal bytes covers: artifacts and the text of kernels."""
    files = [folder / name for name in ARTIFACTS if (folder / name).exists()] + sorted(folder.glob("programs/*"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.feature("W44", "W45", "W52")
def test_compile_writes_the_four_artifacts_and_says_what_it_did(compiled):
    folder, ran = compiled
    assert ran.stdout == ""
    lines = ran.stderr.splitlines()
    assert [line.split(": done in ")[0] for line in lines[:4]] == ["import", "schedule", "codegen", "verify"]
    assert lines[4] == "placement: 4 of 4 nodes compiled"
    kinds = r"\d+ stitched, \d+ register-fused, \d+ single"
    assert re.fullmatch(rf"plan: \d+ groups? \({kinds}\), dram->.* \(unfused .*\), predicted .* .?s", lines[5])
    assert lines[6] == "verified on: host"
    build = folder / "model.tilec"
    for name in (*ARTIFACTS, "device.yaml", "run.json"):
        assert (build / name).is_file()
    report = json.loads((build / "4-report.json").read_text())
    assert (report["verdict"], report["verified_on"]) == ("pass", "host")
    assert 0 < report["outputs"]["y"]["tolerance"] < 1e-4
    run = json.loads((build / "run.json").read_text())
    assert [(draw["seed"], draw["mean"]) for draw in run["draws"]] == [(0, 0.0), (1, 3.0)]
    assert run["latency_us"] > 0
    assert {"numpy", "onnxruntime", "python"} <= set(run["versions"])


def test_artifacts_hold_no_paths_and_no_times(compiled):
    folder, _ = compiled
    for name, data in contents(folder / "model.tilec").items():
        assert str(folder).encode() not in data, name
        assert b"20" + b"26-" not in data, name


def test_the_build_folder_computes_what_the_model_computes(compiled):
    from tilec.runtime import load
    from tilec.verify.runners import Reference

    folder, _ = compiled
    x = np.random.default_rng(3).standard_normal((4, 16)).astype(np.float32)
    expected = Reference(folder / "model.onnx").run({"x": x})["y"]
    np.testing.assert_allclose(load(folder / "model.tilec").run({"x": x})["y"], expected, atol=1e-4)


@pytest.mark.feature("W44")
def test_fresh_stages_are_skipped_and_touched(cli, build):
    before = contents(build)
    old = 1_000_000_000
    for name in ARTIFACTS:
        os.utime(build / name, (old, old))
    ran = cli("compile", "model.onnx", "--device", "host", "--json")
    assert ran.code == 0
    assert ran.err.splitlines()[:4] == [f"{s}: unchanged, skipped" for s in ("import", "schedule", "codegen", "verify")]
    assert ran.err.splitlines()[-1] == "verified on: host"
    assert contents(build) == before
    times = [(build / name).stat().st_mtime_ns for name in ARTIFACTS]
    assert times == sorted(times)
    assert times[0] > old * 10**9
    summary = json.loads(ran.out)
    assert summary["stages"] == ["import", "schedule", "codegen", "verify"]
    assert summary["placement"] == {"compiled": 4, "fallback": [], "total": 4}
    assert summary["plan"]["groups"] == len(json.loads((build / "2-plan.json").read_text())["groups"])
    assert summary["plan"]["predicted_picoseconds"] > 0
    assert summary["verified_on"] == "host"


def test_a_changed_model_runs_every_stage_again(cli, build, tmp_path):
    models.mlp(tmp_path / "model.onnx", batch=5)
    ran = cli("compile", "model.onnx", "--device", "host", "--to", "schedule")
    assert "import: done" in ran.err
    assert "schedule: done" in ran.err


def made_by_another(build, stage, file=None):
    """Say in run.json that an older tilec ran `stage`, for a `file` of its own name or in a folder."""
    run = json.loads((build / "run.json").read_text())
    now = run["made_by"][file or stage]["tilec"]
    run["made_by"][file or stage]["tilec"] = "0.0.1"
    (build / "run.json").write_text(json.dumps(run))
    return f"{stage}: made by tilec 0.0.1, here is tilec {now}; done again"


@pytest.mark.feature("W44")
def test_what_another_tilec_made_is_made_again_once(cli, build):
    before = contents(build)
    said = made_by_another(build, "schedule")
    ran = cli("compile", "model.onnx", "--device", "host")
    assert ran.code == 0, ran.err
    assert said in ran.err.splitlines()
    assert [line for line in ran.err.splitlines() if "skipped" in line] == [
        f"{stage}: unchanged, skipped" for stage in ("import", "codegen", "verify")
    ]
    assert contents(build) == before
    again = cli("compile", "model.onnx", "--device", "host")
    assert again.err.count("unchanged, skipped") == 4


def test_an_edit_outlives_another_tilec(cli, build):
    plan = build / "2-plan.json"
    edited = json.loads(plan.read_text())
    edited["groups"][0]["name"] = "mine"
    plan.write_text(json.dumps(edited))
    made_by_another(build, "schedule")
    ran = cli("compile", "model.onnx", "--device", "host", "--to", "schedule")
    assert ran.err.splitlines()[:2] == ["import: unchanged, skipped", "schedule: unchanged, skipped"]
    assert json.loads(plan.read_text())["groups"][0]["name"] == "mine"


@pytest.mark.feature("W44")
def test_files_of_one_folder_are_made_again_each_by_itself(cli, build, tmp_path):
    """One folder has two plans, which another tilec made; that one is made again leaves the other out of date."""
    (tmp_path / "some").mkdir()
    for name in ("p.json", "q.json"):
        assert cli("schedule", build, "--device", "host", "-o", f"some/{name}").code == 0
    said = [made_by_another(tmp_path / "some", "schedule", name) for name in ("p.json", "q.json")]
    for name, line in zip(("p.json", "q.json"), said, strict=True):
        assert line in cli("schedule", build, "--device", "host", "-o", f"some/{name}").err.splitlines()
        assert "unchanged, skipped" in cli("schedule", build, "--device", "host", "-o", f"some/{name}").err


def test_a_changed_option_runs_only_the_stages_that_read_it(cli, build):
    ran = cli("compile", "model.onnx", "--device", "host", "--threads", "1", "--to", "codegen")
    assert ran.err.splitlines()[:2] == ["import: unchanged, skipped", "schedule: unchanged, skipped"]
    assert "codegen: done" in ran.err


def test_files_of_the_code_before_are_removed(cli, build, tmp_path):
    (build / "mine.a").write_text("not tilec's")
    libraries = {path.name for path in build.glob("kernels-*.a")}
    models.mlp(tmp_path / "model.onnx", batch=6)
    assert cli("compile", "model.onnx", "--device", "host", "--to", "codegen").code == 0
    now = {path.name for path in build.glob("*.a")} - {"mine.a"}
    assert len(now) == 1
    assert not now & libraries
    programs = json.loads((build / "3-kernels.json").read_text())["programs"].values()
    named = {each["file"].removesuffix(".json") for each in programs}
    assert {f"programs/{path.stem}" for path in build.glob("programs/*")} == named
    assert (build / "mine.a").exists()


def test_a_missing_library_is_made_again(cli, build):
    for library in build.glob("*.a"):
        library.unlink()
    ran = cli("compile", "model.onnx", "--device", "host", "--to", "codegen")
    assert "codegen: done" in ran.err
    assert list(build.glob("*.a"))


@pytest.mark.feature("W44")
def test_stages_one_by_one_give_the_same_bytes_from_another_folder(cli, build, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "models").mkdir()
    (tmp_path / "model.onnx").rename(tmp_path / "models" / "model.onnx")
    device = build / "device.yaml"
    steps = [
        ("import", "models/model.onnx", "-o", "elsewhere/g.json"),
        ("schedule", "elsewhere/g.json", "--device", device, "-o", "elsewhere/p.json"),
        ("codegen", "elsewhere/p.json", "--device", device, "-o", "out"),
        ("verify", "out"),
    ]
    for step in steps:
        ran = cli(*step)
        assert ran.code == 0, ran.err
    assert "verified on: host" in ran.err
    made = contents(tmp_path / "out")
    made["1-graph.json"] = (tmp_path / "elsewhere" / "g.json").read_bytes()
    assert made == contents(build)
    assert (tmp_path / "elsewhere" / "p.json").read_bytes() == made["2-plan.json"]


def test_host_is_the_device_file_beside_the_artifacts(cli, build, monkeypatch):
    monkeypatch.setattr("tilec.spec.resolve.probed_text", lambda: pytest.fail("measured again"))
    assert "schedule: unchanged, skipped" in cli("compile", "model.onnx", "--device", "host", "--to", "schedule").err
    assert "codegen: unchanged, skipped" in cli("codegen", "model.tilec").err
    text = (build / "device.yaml").read_text()
    (build / "device.yaml").write_text(text.replace("launch_overhead: 1us", "launch_overhead: 2us"))
    ran = cli("codegen", "model.tilec")
    assert ran.code == 2
    assert "the file of its device 'host' is not here" in ran.err
    assert "schedule: done" in cli("compile", "model.onnx", "--device", "host", "--to", "schedule").err


def test_a_newer_measurement_of_the_host_makes_a_folder_stale(cli, build, monkeypatch):
    text = (build / "device.yaml").read_text()
    later = re.sub(r'time: "\d{4}', 'time: "2999', text)
    assert later != text
    monkeypatch.setattr("tilec.spec.resolve.known_text", lambda: later)
    monkeypatch.setattr("tilec.spec.resolve.probed_text", lambda: later)
    ran = cli("compile", "model.onnx", "--device", "host", "--to", "schedule")
    assert "schedule: unchanged, skipped" in ran.err, "the figures are the same"
    assert "measured again" not in ran.err
    later = later.replace("launch_overhead: 1us", "launch_overhead: 3us")
    ran = cli("compile", "model.onnx", "--device", "host", "--to", "schedule")
    assert f"device: this machine was measured again since {Path('model.tilec', 'device.yaml')} was written" in ran.err
    assert "schedule: done" in ran.err
    assert (build / "device.yaml").read_text() == later
    earlier = re.sub(r'time: "\d{4}', 'time: "1999', text)
    monkeypatch.setattr("tilec.spec.resolve.known_text", lambda: earlier)
    assert "schedule: unchanged" in cli("compile", "model.onnx", "--device", "host", "--to", "schedule").err


def test_an_edited_plan_is_kept_and_marked(cli, build):
    plan = build / "2-plan.json"
    document = json.loads(plan.read_text())
    document["refusals"] = []
    document["name"] = "by hand"
    plan.write_text(json.dumps(document))
    ran = cli("compile", "model.onnx", "--device", "host")
    assert ran.code == 0, ran.err
    assert "schedule: unchanged, skipped" in ran.err
    assert "codegen: done" in ran.err
    for name in ("3-kernels.json", "4-report.json"):
        assert json.loads((build / name).read_text())["artifact"]["edited"] is True
    assert json.loads(plan.read_text())["name"] == "by hand"


@pytest.mark.feature("W45")
def test_a_mismatch_exits_with_4_and_names_the_first_diverging_group(cli, build):
    """The plan is edited to compute something else; what its kernels do is then what the plan says."""
    plan = build / "2-plan.json"
    text = plan.read_text()
    assert text.count("maximum(h1[") == 1
    group = next(g for g in json.loads(text)["groups"] if "maximum(h1[" in json.dumps(g["nodes"]))
    plan.write_text(text.replace("maximum(h1[", "2.0 * maximum(h1["))
    ran = cli("compile", "model.onnx", "--device", "host")
    assert ran.code == 4
    assert "output y differs from onnxruntime: " in ran.err
    assert "of the largest value" in ran.err
    assert f"First diverging group: {group['name']} ({group['nodes'][-1]['origin'][0]}): " in ran.err
    report = json.loads((build / "4-report.json").read_text())
    assert report["verdict"] == "mismatch"
    (origin,) = group["nodes"][-1]["origin"]
    assert report["diverging"] == {"group": group["name"], "origin": origin, "stage": "import"}
    assert cli("verify", "model.tilec").code == 4  # a failed report is never fresh


def test_codegen_refuses_a_plan_of_another_device(cli, build):
    ran = cli("codegen", "model.tilec", "--device", "avx2")
    assert ran.code == 2
    assert "made from another device" in ran.err
    assert "tilec schedule" in ran.err


def test_verify_refuses_kernels_of_another_plan(cli, build, listing):
    plan = build / "2-plan.json"
    plan.write_text(plan.read_text().replace('"name": "model"', '"name": "other"'))
    before = listing()
    ran = cli("verify", "model.tilec")
    assert ran.code == 2
    assert "made from another plan" in ran.err
    assert "Run `tilec codegen` again." in ran.err
    assert listing() == before


def test_verify_refuses_another_model_and_finds_one_that_moved(cli, build, tmp_path):
    (tmp_path / "model.onnx").rename(tmp_path / "moved.onnx")
    (build / "4-report.json").unlink()
    ran = cli("verify", "model.tilec")
    assert ran.code == 2
    assert "model.onnx is not here" in ran.err
    assert "--model" in ran.err
    ran = cli("verify", "model.tilec", "--model", "moved.onnx")
    assert ran.code == 0, ran.err
    models.mlp(tmp_path / "model.onnx", batch=5)
    ran = cli("verify", "model.tilec", "--model", "model.onnx")
    assert ran.code == 2
    assert "not the model that this was made from" in ran.err


def test_codegen_finds_weights_that_moved(cli, build, tmp_path):
    (tmp_path / "model.onnx").rename(tmp_path / "moved.onnx")
    (build / "3-kernels.json").unlink()
    ran = cli("codegen", "model.tilec")
    assert ran.code == 2
    assert "model.onnx, which holds the weights, is not here" in ran.err
    assert cli("codegen", "model.tilec", "--model", "moved.onnx").code == 0
    assert (build / "model.onnx").resolve() == tmp_path / "moved.onnx"


@pytest.mark.parametrize("name", ARTIFACTS[:3])
def test_artifacts_of_another_version_are_refused_by_the_stage_and_made_again_by_compile(cli, build, name):
    path = build / name
    document = json.loads(path.read_text())
    document["artifact"]["format"] = 99
    path.write_text(json.dumps(document))
    stage, writer = {
        "1-graph.json": ("schedule", "import"),
        "2-plan.json": ("codegen", "schedule"),
        "3-kernels.json": ("verify", "codegen"),
    }[name]
    ran = cli(stage, "model.tilec")
    assert ran.code == 2
    assert f"model.tilec/{name}: written in format 99, this tilec reads format 1" in ran.err
    assert f"Run `tilec {writer}` again." in ran.err
    assert f"{writer}: done" in cli("compile", "model.onnx", "--device", "host", "--to", writer).err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not JSON"),
        ("[]", "not a tilec artifact"),
        ('{"artifact": {"kind": "plan", "format": 1}}', "a graph is needed"),
    ],
)
def test_damaged_artifacts(cli, tmp_path, content, said):
    (tmp_path / "g.json").write_text(content)
    ran = cli("schedule", "g.json", "--device", "a100")
    assert ran.code == 2
    assert "g.json" in ran.err
    assert said in ran.err


def test_an_illegal_graph_is_refused_with_its_place(cli, build):
    graph = build / "1-graph.json"
    graph.write_text(graph.read_text().replace("maximum(h1[", "maximum(nothing["))
    ran = cli("schedule", "model.tilec", "--device", "host")
    assert ran.code == 2
    assert "1-graph.json" in ran.err
    assert "nothing" in ran.err
    assert "Traceback" not in ran.err


def test_from_and_to_choose_the_stages(cli, build):
    ran = cli("compile", "model.onnx", "--device", "host", "--from", "codegen", "--to", "codegen")
    assert [line.split(":")[0] for line in ran.err.splitlines()] == ["codegen", "placement", "plan"]
    ran = cli("compile", "model.onnx", "--device", "host", "--to", "import")
    assert [line.split(":")[0] for line in ran.err.splitlines()] == ["import", "placement"]
    ran = cli("compile", "model.onnx", "--device", "host", "--from", "verify", "--to", "import")
    assert ran.code == 2
    assert "stage verify comes after import" in ran.err
    ran = cli("compile", "model.onnx", "--device", "host", "--to", "codgen")
    assert ran.code == 2
    assert "Did you mean 'codegen'?" in ran.err
    ran = cli("compile", "model.onnx", "--device", "host", "--from", "codegen", "--shape", "batch=1")
    assert ran.code == 2
    assert "sizes are bound at import or schedule" in ran.err


def test_external_data_is_reachable_from_the_build_folder(cli, tmp_path):
    models.external(tmp_path / "models" / "model.onnx")
    ran = cli("compile", "models/model.onnx", "--device", "host", "-o", "build")
    assert ran.code == 0, ran.err
    assert (tmp_path / "build" / "model.data").samefile(tmp_path / "models" / "model.data")
    assert "skipped" in cli("compile", "models/model.onnx", "--device", "host", "-o", "build", "--to", "import").err
    data = tmp_path / "models" / "model.data"
    data.write_bytes(bytes(data.stat().st_size))
    ran = cli("compile", "models/model.onnx", "--device", "host", "-o", "build", "--to", "import")
    assert "import: done" in ran.err


def test_another_model_of_that_name_in_the_output_folder_is_not_overwritten(cli, tmp_path):
    models.mlp(tmp_path / "models" / "model.onnx")
    mine = models.mlp(tmp_path / "model.onnx", batch=7).read_bytes()
    ran = cli("import", "models/model.onnx", "-o", ".")
    assert ran.code == 2
    assert "another model.onnx stands in the output folder" in ran.err
    assert (tmp_path / "model.onnx").read_bytes() == mine


def test_an_interrupted_codegen_leaves_the_build_before_it_whole(cli, build, tmp_path, monkeypatch):
    """The new weights are there before the kernels that name them; the old kernels must not read them."""
    x = {"x": np.ones((4, 16), np.float32)}
    before = load(build).run(x)["y"]
    monkeypatch.setattr(
        models, "weight", lambda name, *shape: numpy_helper.from_array(np.ones(shape, np.float32), name)
    )
    models.mlp(tmp_path / "model.onnx")
    write = Artifact.write

    def interrupted(artifact: Artifact, path: Path) -> None:
        if artifact.kind == "kernels":
            raise KeyboardInterrupt
        write(artifact, path)

    monkeypatch.setattr(Artifact, "write", interrupted)
    assert cli("compile", "model.onnx", "--device", "host", "--to", "codegen").code == 130
    np.testing.assert_array_equal(load(build).run(x)["y"], before)
    monkeypatch.setattr(Artifact, "write", write)
    assert cli("compile", "model.onnx", "--device", "host", "--to", "codegen").code == 0
    np.testing.assert_array_equal(load(build).run(x)["y"], np.full((4, 8), 17 * 32, np.float32))
    assert len(list(build.glob("weights-*.safetensors"))) == 1


def test_a_crash_of_compiled_code_is_reported(cli, build, monkeypatch):
    from tilec.verify import native

    monkeypatch.setattr(native, "Compiled", Crashing)
    (build / "4-report.json").unlink()
    ran = cli("verify", "model.tilec")
    assert ran.code == 1
    assert "the compiled model was ended by signal SIGSEGV" in ran.err


def test_a_model_that_is_overwritten_under_verify_is_the_error(cli, build, monkeypatch):
    from tilec.verify import native

    monkeypatch.setattr(native, "Compiled", Overwriting)
    (build / "4-report.json").unlink()
    ran = cli("verify", "model.tilec")
    assert ran.code == 2
    assert "model.onnx is not the model that this was made from" in ran.err
    assert "Compile it again" in ran.err


class Overwriting:
    """Stands for compiled code that reads weights while another program writes the model anew in place."""

    def __init__(self, folder: Path, *_: object) -> None:
        with (folder / "model.onnx").open("r+b") as file:
            mapped = mmap.mmap(file.fileno(), 0)
            file.truncate(0)
            print(mapped[0])


class Crashing:
    """Stands for compiled code that reads a wild pointer."""

    def __init__(self, *_: object) -> None:
        os.kill(os.getpid(), 11)


def test_the_default_folder_keeps_the_build_of_another_device(cli, tmp_path):
    models.selection(tmp_path / "model.onnx")
    assert cli("compile", "model.onnx", "--device", "a100", "--to", "schedule").code == 0
    plan = (tmp_path / "model.tilec/2-plan.json").read_bytes()
    ran = cli("compile", "model.onnx", "--device", "v100", "--to", "schedule")
    assert ran.code == 2
    assert ran.err == (
        "error: model.tilec: it holds a build for a100, not for v100\n"
        "  Write it elsewhere: -o model.v100.tilec. With -o model.tilec it is replaced.\n"
    )
    assert (tmp_path / "model.tilec/2-plan.json").read_bytes() == plan
    assert cli("compile", "model.onnx", "--device", "v100", "--to", "schedule", "-o", "model.tilec").code == 0
