"""A plan edited by hand through the command line: obeyed, or refused with nothing written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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


@pytest.mark.feature("W31", "W44")
def test_an_edited_tile_is_what_runs(cli, build):
    """Rows one at a time at the level of a core: the program says so and computes the same."""
    before = programs(build)

    def one_row(group: Document) -> None:
        name, indices = group["nodes"][-1]["expr"]["text"].split("]")[0].split("[")
        row = indices.split(",")[0]
        variant = group["variants"][0]
        variant["tiles"][variant["levels"][1]] = {name: {row: 1}}
        variant["kernel"] = "by_hand"

    edit(build, one_row)
    ran = cli("compile", "model.onnx", "--device", "host")
    assert ran.code == 0, ran.err
    (text,) = (text for name, text in programs(build).items() if name not in before)
    assert " in 4 spread over core:" in text
    assert cli("verify", "model.tilec").code == 0


REFUSED = {
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
        "the unit 'vnni'",
        5,
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
