"""Scenarios on the command line: what a recipe names, what is told of each, what is refused."""

import json

import pytest

from tests import state_models

RECIPE = """\
kind: compile
device: avx2
state: in-place
shapes: {past: {likely: [1000]}, b: 1}
scenarios:
  decode: {new: 1}
  draft: {new: 4, capacity: past + 4}
"""

PLANNED = ("--no-bounds", "--to", "schedule", "--effort", "quick")


@pytest.mark.feature("B06")
def test_scenarios_of_a_recipe_are_planned_for_and_told_by_length(cli, tmp_path):
    state_models.growing(tmp_path / "m.onnx")
    (tmp_path / "r.yaml").write_text(RECIPE)
    listed = cli("import", "m.onnx", "--report", "--recipe", "r.yaml")
    assert "scenario draft: new = 4, capacity = past + 4 (recipe: scenarios.draft)" in listed.out.splitlines()
    ran = cli("compile", "m.onnx", "--recipe", "r.yaml", *PLANNED)
    assert ran.code == 0, ran.err
    plan = json.loads((tmp_path / "m.tilec" / "2-plan.json").read_text())
    assert {s: plan["symbol_ranges"][s]["likely"] for s in plan["symbols"]} == {
        "new": [1, 4],
        "past": [1000],
        "capacity": [2048, 1004],
    }
    again = cli("compile", "m.onnx", "--recipe", "r.yaml", *PLANNED)
    assert "schedule: unchanged, skipped" in again.err
    rows = json.loads(cli("inspect", "m.tilec/2-plan.json", "--scenario", "draft", "--json").out)["scenarios"]
    assert [row["length"] for row in rows] == [16, 128, 512, 1000, 2048]
    assert rows[0]["at"] == "new=4, past=16, capacity=20"
    assert rows[0]["traffic_bytes"] < rows[-1]["traffic_bytes"]
    refused = cli("inspect", "m.tilec/2-plan.json", "--scenario", "drafts")
    assert (refused.code, "Did you mean 'draft'?" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("relations", "said"),
    [
        ("{nwe: 1}", "scenario 'decode' cannot occur: the model has no size 'nwe': did you mean new?"),
        ("{past: new, new: past + 1}", "past -> new -> past goes round in a circle"),
        ("{new: 2, capacity: 1}", "the model demands new + past <= capacity"),
    ],
)
def test_a_scenario_that_cannot_occur_is_refused(cli, tmp_path, relations, said):
    state_models.growing(tmp_path / "m.onnx")
    (tmp_path / "r.yaml").write_text(f"kind: compile\nstate: in-place\nscenarios: {{decode: {relations}}}\n")
    ran = cli("import", "m.onnx", "--recipe", "r.yaml")
    assert ran.code == 2
    assert ran.err.startswith("error: recipe: scenarios.decode: ")
    assert said in ran.err
