"""A plan edited by hand through the command line: obeyed, or refused with nothing written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli import models

Document = dict[str, Any]


def edit(build: Path, change: Callable[[Document], None]) -> None:
    """Change the plan of the group that makes the model's output."""
    plan = build / "2-plan.json"
    document = json.loads(plan.read_text())
    (group,) = (group for group in document["groups"] if "y" in group["outputs"])
    change(group)
    plan.write_text(json.dumps(document))


def programs(build: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (build / "programs").glob("*.txt")}


def one_row(group: Document) -> None:
    """Rows one at a time at the level of a core."""
    name, indices = group["nodes"][-1]["expr"]["text"].split("]")[0].split("[")
    row = indices.split(",")[0]
    variant = group["variants"][0]
    variant["tiles"][variant["levels"][1]] = {name: {row: 1}}
    variant["kernel"] = "by_hand"
    del variant["vectors"], variant["unroll"]


@pytest.mark.feature("W31", "W44")
def test_an_edited_tile_is_what_runs(cli, build):
    """The program says so and computes the same."""
    before = programs(build)
    edit(build, one_row)
    ran = cli("compile", "model.onnx", "--device", "host")
    assert ran.code == 0, ran.err
    (text,) = (text for name, text in programs(build).items() if name not in before)
    assert " in 4 spread over core:" in text
    assert cli("verify", "model.tilec").code == 0


def test_an_edited_plan_is_priced_as_it_stands(cli, build):
    """Every row reads the weights: the limit holds though the file still says the old bytes."""
    (build.parent / "old.json").write_bytes((build / "2-plan.json").read_bytes())
    stored = json.loads((build / "2-plan.json").read_text())["groups"][-1]
    core = stored["variants"][0]["levels"][1]
    limits = ("--fail-on", f"traffic@{core}=+0%")
    assert cli("diff", "old.json", "model.tilec", *limits).code == 0
    edit(build, one_row)
    ran = cli("diff", "old.json", "model.tilec", *limits)
    assert ran.code == 1
    assert f"stale costs of 1 group ({stored['name']}) are counted anew" in " ".join(ran.err.split())
    told = json.loads(cli("inspect", "model.tilec/2-plan.json", "--json").out)
    before = json.loads(cli("inspect", "old.json", "--json").out)
    assert told["per_level"][core]["read_bytes"] > before["per_level"][core]["read_bytes"]


@pytest.fixture
def gpu_plan(cli, tmp_path: Path) -> Path:
    """The folder of a plan for an a100, which has been edited: a task makes one number."""
    models.mlp(tmp_path / "model.onnx", 256)
    assert cli("compile", "model.onnx", "--device", "a100", "--to", "schedule", "-o", "gpu").code == 0
    (tmp_path / "old.json").write_bytes((tmp_path / "gpu" / "2-plan.json").read_bytes())
    edit(tmp_path / "gpu", one_number)
    return tmp_path / "gpu"


def one_number(group: Document) -> None:
    variant = variant_of(group)
    name, indices = group["nodes"][-1]["expr"]["text"].split("]")[0].split("[")
    variant["tiles"]["smem"] = {name: dict.fromkeys(indices.split(", "), 1)}
    variant["kernel"] = "by_hand"


def predicted(cli, plan: str) -> int:
    return int(json.loads(cli("inspect", plan, "--json").out)["predicted_picoseconds"])


def test_the_time_of_an_edited_plan_is_predicted_anew(cli, gpu_plan):
    """A limit holds though the file still says the old time; the plan before the edit keeps its own."""
    groups = json.loads((gpu_plan.parent / "old.json").read_text())["groups"]
    stored = sum(group["cost"]["picoseconds"] for group in groups)
    assert predicted(cli, "old.json") == stored
    assert predicted(cli, "gpu/2-plan.json") > stored
    assert cli("diff", "old.json", "old.json", "--fail-on", "time=+0%").code == 0
    ran = cli("diff", "old.json", "gpu", "--fail-on", "time=+0%")
    assert ran.code == 1
    assert "time (picoseconds) grew by" in ran.err


def test_a_time_that_cannot_be_predicted_is_said_to_be_old(cli, gpu_plan):
    """The device of the plan is not here; named, it counts, and another one is refused."""
    (gpu_plan.parent / "slow.yaml").write_text(
        cli("device", "show", "a100").out.replace("name: a100", "name: a100-slow")
    )
    assert cli("schedule", "gpu", "--device", "slow.yaml", "-o", "other").code == 0
    plan = gpu_plan.parent / "other" / "2-plan.json"
    edit(plan.parent, one_number)
    (gpu_plan.parent / "moved.json").write_bytes(plan.read_bytes())
    ran = cli("diff", "old.json", "moved.json", "--fail-on", "time=+0%")
    assert ran.code == 0
    assert "predicted times may be from before the edit" in " ".join(ran.err.split())
    assert cli("diff", "old.json", "moved.json", "--fail-on", "time=+0%", "--device", "slow.yaml").code == 1
    assert "no plan was made for 'v100'" in cli("diff", "old.json", "moved.json", "--device", "v100").err


def test_lint_tells_the_costs_that_an_edit_made_stale(cli, gpu_plan):
    assert "stale-costs" not in cli("lint", "old.json").out
    ran = cli("lint", "gpu/2-plan.json", "--strict", "--json")
    assert ran.code == 1
    finding, of_plan = (each for each in json.loads(ran.out)["findings"] if each["code"] == "stale-costs")
    assert finding["pointer"] == "/groups/0/cost"
    assert " predicted, not " in finding["message"]
    assert " bytes read at smem, not " in finding["message"]
    assert finding["fix"]
    assert of_plan["pointer"] == "/unfused"


def code(build: Path) -> str:
    return str(json.loads((build / "3-kernels.json").read_text())["runtime"]["library"])


def variant_of(group: Document) -> Document:
    variant: Document = group["variants"][0]
    return variant


def scalar(group: Document) -> None:
    variant_of(group)["vectors"] = dict.fromkeys(variant_of(group)["vectors"], "")
    variant_of(group)["unroll"] = {}


def unrolled(group: Document) -> None:
    node = group["nodes"][-1]["expr"]["text"].split("[")[0]
    unroll = variant_of(group)["unroll"]
    unroll[node] = {iterator: max(1, points // 2) for iterator, points in unroll[node].items()}


@pytest.mark.parametrize("change", [scalar, unrolled])
def test_edited_code_decisions_are_what_runs(cli, build, change):
    """Scalar code, bodies of half the size: the tile program is the same, the library is not, the results are right."""
    before = programs(build), code(build)

    def by_hand(group: Document) -> None:
        change(group)
        variant_of(group)["kernel"] = "by_hand"

    edit(build, by_hand)
    ran = cli("compile", "model.onnx", "--device", "host")
    assert ran.code == 0, ran.err
    assert code(build) != before[1]
    (text,) = (text for name, text in programs(build).items() if name not in before[0])
    assert text.partition("\n")[2] in {old.partition("\n")[2] for old in before[0].values()}
    assert cli("verify", "model.tilec").code == 0


REFUSED = {
    "vectors along an iterator that is not there": (
        lambda group: variant_of(group)["vectors"].update(dict.fromkeys(variant_of(group)["vectors"], "q")),
        "there is no iterator for a vector q",
        2,
    ),
    "vectors along rows": (
        lambda group: variant_of(group)["vectors"].update(y=group["nodes"][-1]["expr"]["text"][2]),
        "vectors cannot run along",
        2,
    ),
    "a body larger than the tile": (
        lambda group: variant_of(group)["unroll"].update(y=dict.fromkeys(variant_of(group)["unroll"]["y"], 4096)),
        "cannot be one body",
        2,
    ),
    "more accumulators than registers": (
        lambda group: variant_of(group).update(accumulators={"y": 100}),
        "cannot have 100 accumulators",
        2,
    ),
    "a prefetch that no loop has": (
        lambda group: variant_of(group).update(prefetch={"x": "task"}),
        "x cannot be prefetched",
        2,
    ),
    "an output of the model past the caches": (
        lambda group: variant_of(group).update(streamed=["y"]),
        "y cannot be stored past the caches, an output of the model",
        2,
    ),
    "a tile without effect": (
        lambda group: group["variants"][0]["tiles"].setdefault("dram", {}).update(y={"m": 1}),
        "the tile at dram has no effect",
        2,
    ),
    "an unknown level": (
        lambda group: group["variants"][0]["tiles"].setdefault("l5", {}).update(y={"m": 1}),
        "l5",
        2,
    ),
    "a unit without code": (
        lambda group: group["variants"][0].update(units={"y": "vnni"}),
        "y cannot be computed by 'vnni', it is no sum of products of words",
        2,
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_plan_that_cannot_be_obeyed_is_refused(cli, build, name):
    change, said, code = REFUSED[name]
    kernels = (build / "3-kernels.json").read_bytes()
    edit(build, change)
    ran = cli("codegen", "model.tilec")
    assert ran.code == code, ran.err
    assert said in ran.err
    assert "Traceback" not in ran.err
    assert (build / "3-kernels.json").read_bytes() == kernels


def test_a_plan_that_claims_less_than_has_to_move_fails(cli, build):
    def nothing(group: Document) -> None:
        group["cost"]["read"] = dict.fromkeys(group["cost"]["read"], 0)
        group["cost"]["written"] = dict.fromkeys(group["cost"]["written"], 0)
        assert group["bounds"]

    edit(build, nothing)
    ran = cli("compile", "model.onnx", "--device", "host")
    assert ran.code == 4, ran.err
    assert "moves 0 bytes at " in ran.err
    assert "any mapping moves" in ran.err
    report = json.loads((build / "4-report.json").read_text())
    assert report["verdict"] == "mismatch"
    assert report["below_least"][0]["moved"] == 0


def test_plans_carry_what_is_proved_and_the_best_known_where_it_is_asked_for(cli, build):
    plan = json.loads((build / "2-plan.json").read_text())
    assert plan["bounds"].keys() <= plan["capacities"].keys()
    assert all(bound["least"] > 0 for group in plan["groups"] for bound in group["bounds"].values())
    assert not any("known" in bound for group in plan["groups"] for bound in group["bounds"].values())
    ran = cli("schedule", "model.tilec", "--device", "host", "--bounds", "-o", "known.json")
    assert ran.code == 0, ran.err
    assert "attainable" in ran.err
    known = json.loads((build.parent / "known.json").read_text())
    assert any(bound.get("known") for group in known["groups"] for bound in group["bounds"].values())
    assert [g["bounds"].keys() for g in known["groups"]] == [g["bounds"].keys() for g in plan["groups"]]
