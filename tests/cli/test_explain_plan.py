"""`tilec explain PLAN`: groups, edges and nodes of a plan, with what it was made from found beside it."""

import json
import shutil

import pytest

from cli import models
from tilec.artifact import read_artifact


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder in which a small model was planned, once for all tests; never changed."""
    from os import chdir, getcwd

    from typer.testing import CliRunner

    from tilec.cli.app import app

    folder, here = tmp_path_factory.mktemp("planned"), getcwd()
    models.mlp(folder / "model.onnx", batch="batch")
    chdir(folder)
    try:
        runner = CliRunner()
        done = [
            runner.invoke(app, ["import", "model.onnx", "-o", "model.tilec"]),
            runner.invoke(app, ["schedule", "model.tilec", "--device", "avx2", "--shape", "batch=64"]),
        ]
    finally:
        chdir(here)
    assert [each.exit_code for each in done] == [0, 0], done
    return folder


@pytest.fixture
def planned(kept, tmp_path):
    """A copy of it in `tmp_path`."""
    shutil.copytree(kept / "model.tilec", tmp_path / "model.tilec", symlinks=True)
    return tmp_path / "model.tilec"


def test_a_summary_says_what_can_be_asked(cli, planned):
    ran = cli("explain", "model.tilec")
    assert ran.code == 0
    assert ran.out.startswith("model on avx2: ")
    assert "tilec explain model.tilec --group 1" in ran.out
    assert ran.err.startswith("search: done in ")
    assert cli("explain", "model.tilec/2-plan.json", "-q").out.replace("/2-plan.json", "") == ran.out


def test_a_group_an_edge_and_a_node(cli, planned):
    plan = read_artifact(planned / "2-plan.json", "plan").body
    group = plan["groups"][0]
    told = json.loads(cli("explain", "model.tilec", "--group", 1, "--json").out)
    assert told["same"] is True
    assert any(level["known"] for level in told["group"]["levels"])
    assert told["group"]["name"] == group["name"]
    assert told["group"]["picoseconds"] == group["cost"]["picoseconds"]
    written = group["variants"][0]["vectors"]
    assert {each["subject"]: each["fact"] for each in told["group"]["code"] if each["kind"] == "vector"} == written
    assert sorted(told["group"]) == sorted(
        [
            "blocks",
            "code",
            "bytes",
            "connected",
            "levels",
            "name",
            "nodes",
            "number",
            "operators",
            "picoseconds",
            "refused",
            "untold",
        ]
    )
    edge, level = next(iter(group["connect"].items()))
    told = json.loads(cli("explain", "model.tilec", "--edge", edge, "--json").out)["edge"]
    assert (told["edge"], told["connected"], told["reason"]) == (edge, level, None)
    assert told["apollo_rule"] == "contraction_depth"
    assert "fusion apollo: contraction_depth joins them" in cli("explain", "model.tilec", "--edge", edge).out
    assert sorted(told) == sorted(
        [
            "apollo_rule",
            "below",
            "bytes",
            "connected",
            "decided_by",
            "edge",
            "joined",
            "path",
            "producer",
            "reader",
            "reason",
            "relaxations",
            "steps",
        ]
    )
    node = edge.split("->")[0]
    told = json.loads(cli("explain", "model.tilec", "--node", node, "--json").out)["node"]
    assert told["node"] == node
    assert {"edge": edge, "connected": level, "reason": None} in told["readers"]
    assert cli("explain", "model.tilec", "--node", node).out.startswith(f"{node} (")


def test_all_refused_edges_of_a_plan(cli, planned):
    refusals = read_artifact(planned / "2-plan.json", "plan").body["refusals"]
    for refusal in refusals:
        told = json.loads(cli("explain", "model.tilec", "--edge", refusal["edge"], "--json").out)["edge"]
        assert told["reason"] == refusal


def test_a_plan_with_other_options_is_known_by_its_digest(cli, planned):
    (planned.parent / "none.yaml").write_text("schedule: {fusion: none, bounds: false}\n")
    ran = cli("schedule", "model.tilec", "--device", "avx2", "--shape", "batch=64", "--recipe", "none.yaml")
    assert ran.code == 0, ran.err
    told = json.loads(cli("explain", "model.tilec", "--json").out)["plan"]
    assert (told["fusion"], told["refused"]) == ("none", {"fusion-off": 3})
    (planned.parent / "few.yaml").write_text("schedule: {passes: [compose, choose_layouts]}\n")
    cli("schedule", "model.tilec", "--device", "avx2", "--shape", "batch=64", "--recipe", "few.yaml")
    assert cli("explain", "model.tilec").code == 0
    (planned / "recipe.yaml").unlink()
    ran = cli("explain", "model.tilec")
    assert (ran.code, ran.out) == (2, "")
    assert "made with a recipe that is not known\n  Name the one that it was made with: --recipe" in ran.err
    assert cli("explain", "model.tilec", "--recipe", "few.yaml").code == 0
    assert "was not made with this recipe" in cli("explain", "model.tilec", "--recipe", "none.yaml").err


def test_a_plan_alone_asks_for_its_graph(cli, planned, tmp_path):
    (tmp_path / "p.json").write_bytes((planned / "2-plan.json").read_bytes())
    ran = cli("explain", "p.json", "--group", 1)
    assert (ran.code, ran.out) == (2, "")
    assert "there is no 1-graph.json, the graph that the plan was made from\n  Name it: --graph FILE." in ran.err
    assert cli("explain", "p.json", "--group", 1, "--graph", "model.tilec").code == 0
    assert cli("explain", "p.json", "--group", 1, "--graph", "model.tilec/1-graph.json").code == 0
    models.mlp(tmp_path / "other.onnx", batch=32)
    assert cli("import", "other.onnx", "-o", "o.json").code == 0
    ran = cli("explain", "p.json", "--graph", "o.json")
    assert ran.code == 2
    assert "the plan p.json was made from another graph" in ran.err


def test_a_plan_of_an_unknown_device_asks_for_it(cli, planned, tmp_path):
    text = (planned / "2-plan.json").read_text().replace('"device": "avx2"', '"device": "mine"')
    (planned / "2-plan.json").write_text(text)
    ran = cli("explain", "model.tilec")
    assert (ran.code, ran.out) == (2, "")
    assert "Name it with --device FILE." in ran.err
    assert cli("explain", "model.tilec", "--device", "avx2").code == 0
    assert "made from another device" in cli("explain", "model.tilec", "--device", "a100").err


def test_an_edited_plan_is_told_of(cli, planned):
    place = planned / "2-plan.json"
    document = json.loads(place.read_text())
    document["groups"][0]["cost"]["picoseconds"] += 1
    place.write_text(json.dumps(document))
    ran = cli("explain", "model.tilec", "--group", 1, "--json")
    assert ran.code == 0
    assert json.loads(ran.out)["same"] is False
    assert "the search does not come to this plan again" in ran.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("model.tilec", "--group", "99"), "no group has the number 99"),
        (("model.tilec", "--edge", "a->b"), "no node is called 'a'"),
        (("model.tilec", "--node", "w1"), "'w1' is no node of a group"),
        (("model.tilec", "--node", "y", "--group", "1"), "--group and --node are asked at once"),
        (("gone.json",), "gone.json: no such file"),
        (("slower", "--group", "1"), "--group asks about a plan, but 'slower' is no file or folder"),
        (("--edge", "a->b"), "--edge asks about a plan, but no plan is named"),
        (("slower", "--device", "a100"), "--device asks about a plan"),
    ],
)
def test_wrong_calls(cli, planned, arguments, message):
    ran = cli("explain", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert "search: done" not in ran.err


def test_a_path_is_a_plan_and_all_else_a_code(cli, tmp_path):
    assert cli("explain", "slower").out.startswith("slower: ")
    (tmp_path / "slower").write_text("{}")
    ran = cli("explain", "slower")
    assert ran.code == 2
    assert "not a tilec artifact" in ran.err


def test_device_and_recipe_beside_a_plan_are_used_when_nothing_is_named(cli, kept, tmp_path):
    shutil.copytree(kept / "model.tilec", tmp_path / "graph", symlinks=True)
    device = cli("device", "show", "avx2").out.replace("name: avx2", "name: mine")
    (tmp_path / "mine.yaml").write_text(device)
    (tmp_path / "mine-recipe.yaml").write_text("schedule: {budget: 7}\nshapes: {batch: {likely: [48]}}\n")
    flags = ("--device", "mine.yaml", "--recipe", "mine-recipe.yaml")
    assert cli("schedule", "graph", *flags, "-o", "build").code == 0
    for name in ("mine.yaml", "mine-recipe.yaml"):
        (tmp_path / name).unlink()
    shutil.copy(tmp_path / "graph/1-graph.json", tmp_path / "build")
    assert cli("explain", "build", "--group", 1).code == 0
    assert cli("report", "build", "-o", "page.html").code == 0
    assert '"known":true' in (tmp_path / "page.html").read_text()
    (tmp_path / "build/recipe.yaml").write_text("schedule: {budget: 8}\n")
    assert cli("explain", "build", "--group", 1).code == 2


def test_a_recipe_of_the_user_beside_a_plan_is_not_replaced(cli, planned):
    text = "schedule: {objective: traffic}\n"
    (planned / "recipe.yaml").write_text(text)
    assert cli("schedule", "model.tilec", "--device", "avx2", "--recipe", planned / "recipe.yaml").code == 0
    assert (planned / "recipe.yaml").read_text() == text
    assert cli("explain", "model.tilec").code == 0
