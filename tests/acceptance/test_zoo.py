"""Every model of the zoo at its real size, in both forms: compiled by the command line, small, exact, and skipped when
nothing changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acceptance.building import FORMS, plan_of, tilec, tilec_memory
from tilec import zoo
from tilec.artifact import read_artifact
from tilec.runtime import load
from tilec.verify.inputs import Draw, random_inputs

pytestmark = pytest.mark.slow

MODELS = [(name, form) for name in zoo.names() for form in FORMS]
MEGABYTE = 10**6


@pytest.fixture(params=MODELS, ids=lambda pair: "-".join(pair), scope="module")
def compiled(request, tmp_path_factory) -> tuple[Path, str, int]:
    """The folder of a model compiled as `build`, what was said, and the peak memory of the processes in bytes."""
    name, form = request.param
    folder = tmp_path_factory.mktemp(name)
    zoo.export(name, folder / "model.onnx", form=form)
    said, memory = tilec_memory("compile", "model.onnx", "--device", "host", "-o", "build", folder=folder)
    yield folder, said, memory
    for path in sorted(folder.rglob("*"), reverse=True):
        path.unlink() if not path.is_dir() else path.rmdir()


def test_every_node_is_compiled_and_outputs_agree(compiled):
    folder, said, _ = compiled
    placement = read_artifact(folder / "build" / "2-plan.json", "plan").body["placement"]
    assert placement == {"compiled": placement["total"], "total": placement["total"]}
    assert "verified on: host" in said
    run = json.loads((folder / "build" / "run.json").read_text())
    assert [draw["mean"] for draw in run["draws"]] == [0.0, 3.0]
    for draw in run["draws"]:
        assert draw["errors"]
        assert all(error <= 1e-4 for error in draw["errors"].values()), draw


def test_graph_and_plan_are_small_and_memory_is_bounded(compiled):
    folder, _, memory = compiled
    for name in ("1-graph.json", "2-plan.json"):
        assert (folder / "build" / name).stat().st_size < 2 * MEGABYTE
    weights = (folder / "model.onnx").stat().st_size
    assert memory <= 1.5 * weights + 500 * MEGABYTE


def test_nothing_runs_when_nothing_changed(compiled):
    folder, _, _ = compiled
    ran = tilec("compile", "model.onnx", "--device", "host", "-o", "build", folder=folder)
    assert ran.stderr.count(": unchanged, skipped") == 4


def test_import_and_schedule_need_no_tvm(compiled):
    folder, _, _ = compiled
    build = folder / "build"
    tilec("import", "model.onnx", "-o", "g.json", folder=folder, without=("tvm", "tvm_ffi"))
    schedule = ("schedule", "g.json", "--device", build / "device.yaml", "-o", "p.json")
    tilec(*schedule, folder=folder, without=("tvm", "tvm_ffi"))
    assert (folder / "p.json").read_bytes() == (build / "2-plan.json").read_bytes()


def test_results_do_not_depend_on_the_number_of_threads(compiled):
    build = compiled[0] / "build"
    feeds = random_inputs(plan_of(build), Draw(5))
    one, two = (load(build, threads=threads).run(feeds) for threads in (1, 2))
    for name, array in one.items():
        assert array.tobytes() == two[name].tobytes()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", zoo.names())
def test_dynamic_models_are_planned_with_their_symbols(tmp_path, name, form):
    zoo.export(name, tmp_path / "model.onnx", form=form, dynamic=True)
    tilec("import", "model.onnx", "-o", "g.json", folder=tmp_path)
    graph = read_artifact(tmp_path / "g.json", "graph").body
    assert graph["symbols"]
    tilec("schedule", "g.json", "--device", "avx2", "-o", "p.json", folder=tmp_path)
    plan = read_artifact(tmp_path / "p.json", "plan").body
    assert plan["symbols"] == graph["symbols"]
    flags = [f"--shape={symbol}=2" for symbol in graph["symbols"]]
    tilec("import", "model.onnx", *flags, "-o", "bound.json", folder=tmp_path)
    tilec("schedule", "bound.json", "--device", "avx2", "-o", "early.json", folder=tmp_path)
    tilec("schedule", "g.json", *flags, "--device", "avx2", "-o", "late.json", folder=tmp_path)
    assert (tmp_path / "early.json").read_bytes() == (tmp_path / "late.json").read_bytes()
    ran = tilec("codegen", "p.json", "-o", "out", folder=tmp_path, code=5)
    assert all(f"--shape {symbol}=SIZE" in ran.stderr for symbol in graph["symbols"])
    (tmp_path / "model.onnx").unlink()
