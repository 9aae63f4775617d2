"""Plans of the zoo for every device: legal, with a reason for every edge that is not connected, and never predicted
worse with more fusion; small ones run whole on the tile machine."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from scheduler.running import device, illegal

from acceptance.building import Quiet, folder_of, host, plan_of
from acceptance.miniatures import SMALL, miniature
from tilec import zoo
from tilec.analysis.totals import predicted, traffic
from tilec.artifact import digest_object
from tilec.importer import import_model
from tilec.ir.codec import plan_to_json
from tilec.ir.expr import operands
from tilec.ir.graph import Graph
from tilec.ir.plan import Plan
from tilec.pipeline import Job, compile_model
from tilec.progress import unseen
from tilec.scheduler import schedule
from tilec.scheduler.refusals import REASONS
from tilec.spec.recipe import ScheduleOptions, VerifyOptions
from tilec.spec.resolve import device_source
from tilec.verify import on_machine
from tilec.verify.on_machine import verify_on_machine

DEVICES = tuple(sorted(path.stem for path in (Path(__file__).parents[2] / "devices").glob("*.yaml")))
WAYS = ("full", "register", "none")
MACHINES = ("a100", "mi250", "ipu-mk2", "zen5-avx512")
"""Devices whose plans of small models run whole on the tile machine in every test run."""
QUICK = (*MACHINES, "avx2", "a100-ssd", "v100-16g-host", "snowcat")
"""One device of each hierarchy of levels."""


@cache
def small(name: str) -> Graph:
    with TemporaryDirectory() as folder:
        return import_model(miniature(name, "decomposed", Path(folder))).graph


def plans(graph: Graph, name: str, objective: str) -> list[Plan]:
    options = [ScheduleOptions(fusion=fusion, objective=objective) for fusion in WAYS]
    return [schedule(graph, device(name), chosen) for chosen in options]


def unexplained(plan: Plan) -> list[str]:
    """Edges between groups without a reason of the closed list."""
    made = {node.name for group in plan.groups for node in group.nodes}
    inside = {edge for group in plan.groups for edge in group.connect}
    read = {f"{t}->{n.name}" for g in plan.groups for n in g.nodes for t in operands(n.expr) if t in made}
    return sorted(read - inside - {reason.edge for reason in plan.refusals if reason.code in REASONS})


def check(graph: Graph, name: str, objective: str, lowered: bool = True) -> None:
    found = plans(graph, name, objective)
    for plan in found:
        assert unexplained(plan) == []
        if lowered:
            assert illegal(plan) == []
    full, register, none = found
    assert all(reason.code != "fusion-off" for plan in (full, register) for reason in plan.refusals)
    if objective == "time":
        assert predicted(full) <= predicted(register) <= predicted(none)
    else:
        moved = [int(plan_traffic.value) for plan_traffic in map(traffic, found)]
        assert moved == sorted(moved)


@pytest.mark.quick_cases("avx2", "snowcat", "zen5-avx512")
@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in DEVICES])
def test_more_fusion_is_never_predicted_worse(name):
    check(small("nerf-mlp"), name, "time")


@pytest.mark.parametrize(
    ("model", "name"),
    [
        pytest.param("bert-base", "a100", marks=pytest.mark.slow),
        pytest.param("mobilenet-v2", "a100", marks=pytest.mark.slow),
        pytest.param("mobilenet-v2", "neon", marks=pytest.mark.slow),
    ],
)
def test_more_fusion_of_other_operators_is_never_predicted_worse(model, name):
    check(small(model), name, "time")


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["time", "traffic"])
@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("model", SMALL)
def test_small_models_on_every_device(model, name, objective):
    check(small(model), name, objective)


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["time", "traffic"])
@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("model", zoo.names())
def test_models_of_the_zoo_on_every_device(tmp_path, model, name, objective):
    check(import_model(zoo.export(model, tmp_path / "model.onnx")).graph, name, objective, lowered=False)


@pytest.mark.parametrize("name", ["a100", "ipu-mk2", "a100-host"])
def test_no_plan_moves_more_with_more_fusion_where_traffic_is_minimised(name):
    check(small("nerf-mlp"), name, "traffic")


def runs_whole(model: str, name: str, folder: Path) -> None:
    """On the tile machine, compared with onnxruntime on every draw."""
    path = miniature(model, "decomposed", folder)
    job = Job(host().recipe, Quiet(), device(name), shapes={}, asked=frozenset(), device_text=device_source(name).text)
    stages = compile_model(job, path, folder_of(path), last="codegen")
    plan = plan_of(folder_of(path))
    steps = {"plan": plan, "kernels": stages["codegen"].body, "model": path, "options": VerifyOptions()}
    outcome = verify_on_machine(folder_of(path), **steps, advance=unseen, because="asked for")
    assert outcome.failure is None
    assert outcome.report["verdict"] == "pass"
    assert outcome.report["groups"] == {"total": len(plan.groups), "verified": len(plan.groups)}
    assert outcome.report["outputs"]


@pytest.mark.quick_cases("nerf-mlp-ipu-mk2")
@pytest.mark.feature("W07")
@pytest.mark.parametrize(
    ("model", "name"), [*(("nerf-mlp", name) for name in MACHINES), ("llama-layer-decode", "ipu-mk2")]
)
def test_small_models_run_whole_on_the_tile_machine(tmp_path, monkeypatch, model, name):
    monkeypatch.setattr(on_machine, "BUDGET", 10**12)
    runs_whole(model, name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("model", SMALL)
def test_all_small_models_run_whole_on_the_tile_machine(tmp_path, monkeypatch, model, name):
    monkeypatch.setattr(on_machine, "BUDGET", 10**12)
    runs_whole(model, name, tmp_path)


@pytest.mark.slow_cases("a100")
@pytest.mark.parametrize("name", ["a100", "zen5-avx512"])
def test_a_plan_is_the_same_however_often_it_is_made(name):
    one, two = (digest_object(plan_to_json(schedule(small("nerf-mlp"), device(name)))) for _ in range(2))
    assert one == two
