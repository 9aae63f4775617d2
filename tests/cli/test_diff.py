"""`tilec diff`: what it prints, what it exits with."""

import io
import json

import pytest
from report.plans import base, tuned

from tilec.artifact import Artifact
from tilec.ir.codec import plan_to_json


@pytest.fixture
def plans(tmp_path):
    """old.json and new/2-plan.json."""
    Artifact("plan", {}, plan_to_json(base())).write(tmp_path / "old.json")
    (tmp_path / "new").mkdir()
    Artifact("plan", {}, plan_to_json(tuned())).write(tmp_path / "new" / "2-plan.json")
    return tmp_path


def test_files_and_folders(cli, plans):
    ran = cli("diff", "old.json", "new")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("net on toy: 3 -> 2 groups (1 merged; 1 retiled; 0 unchanged)\n")
    assert cli("diff", "old.json", "new/2-plan.json").out == ran.out


def test_one_line_where_nothing_differs(cli, plans):
    ran = cli("diff", "old.json", "old.json", "--exit-code", "--fail-on", "traffic=+0%")
    assert (ran.code, ran.out, ran.err) == (0, "no changes: net on toy, 3 groups\n", "")


def test_exit_code_tells_of_changes(cli, plans):
    ran = cli("diff", "old.json", "new", "--exit-code")
    assert ran.code == 3
    assert ran.out == cli("diff", "old.json", "new").out


def test_limits_fail_and_say_which(cli, plans):
    ran = cli("diff", "new", "old.json", "--exit-code", "--fail-on", "traffic=+5%", "--fail-on", "footprint=+5%")
    assert ran.code == 1
    assert ran.out.startswith("net on toy: 2 -> 3 groups")
    assert ran.err == "error: traffic grew by 46.8 % (8024 -> 11776), 5 % is allowed\n"


def test_forms(cli, plans):
    assert cli("diff", "old.json", "new", "--format", "md").out.startswith("**net on toy: 3 -> 2 groups")
    found = json.loads(cli("diff", "old.json", "new", "--json").out)
    assert found == json.loads(cli("diff", "old.json", "new", "--format", "json").out)
    assert found["totals"]["traffic"] == {"after": 8024, "before": 11776}
    assert [group["kinds"] for group in found["groups"]] == [["retiled"], ["merged"]]


def test_standard_input(cli, plans, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO((plans / "old.json").read_text()))
    assert cli("diff", "-", "old.json").out.startswith("no changes")
    ran = cli("diff", "-", "-")
    assert (ran.code, ran.out) == (2, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("old.json", "gone.json"), "gone.json: no such file"),
        (("old.json", "new", "--fail-on", "trafic=+5%"), "no metric is called 'trafic'"),
        (("old.json", "new", "--fail-on", "traffic@l9=+5%"), "no traffic is counted at 'l9'"),
    ],
)
def test_wrong_calls(cli, plans, arguments, message):
    ran = cli("diff", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


def test_a_graph_is_no_plan(cli, plans):
    Artifact("graph", {}, {}).write(plans / "graph.json")
    ran = cli("diff", "old.json", "graph.json")
    assert ran.code == 2
    assert "this is a graph, a plan is needed" in ran.err
