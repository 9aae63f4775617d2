"""`tilec diff`: what it prints, what it exits with."""

import io
import json

import pytest
from report.plans import base, tuned

from cli import models
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
    Artifact("report", {}, {}).write(plans / "report.json")
    assert "a report is not compared" in cli("diff", "report.json", "report.json").err
    (plans / "text.json").write_text("nothing")
    assert "text.json:1:1: not JSON" in cli("diff", "text.json", "old.json").err
    (plans / "binary.json").write_bytes(b"\xff\xfe\x00")
    assert "binary.json: not JSON: the file is binary" in cli("diff", "binary.json", "old.json").err


def test_a_limit_on_groups_and_time(cli, plans):
    ran = cli("diff", "old.json", "new", "--fail-on", "groups", "--fail-on", "flops=+5%", "--exit-code")
    assert (ran.code, ran.err) == (1, "error: groups are not the same (1 merged; 3 -> 2), none may be another\n")
    assert ran.out == cli("diff", "old.json", "new").out
    ran = cli("diff", "old.json", "new", "--fail-on", "time=+5%")
    assert (ran.code, ran.out) == (2, "")
    assert "these plans have no time" in ran.err
    ran = cli("diff", "old.json", "new", "--fail-on", "group")
    assert (ran.code, ran.out) == (2, "")
    assert "'group' is no limit" in ran.err


def test_graphs(cli, plans):
    models.mlp(plans / "a.onnx")
    models.mlp(plans / "b.onnx", batch=8)
    for name in ("a", "b"):
        assert cli("import", f"{name}.onnx", "-o", name).code == 0
    same = cli("diff", "a/1-graph.json", "a/1-graph.json", "--exit-code")
    assert (same.code, same.out) == (0, "no changes: a, 4 nodes\n")
    ran = cli("diff", "a/1-graph.json", "b", "--exit-code", "--fail-on", "nodes=+0%")
    assert (ran.code, ran.err) == (3, "")
    assert ran.out.startswith("a -> b: 4 -> 4 nodes (4 rewritten; 0 unchanged)\n")
    told = json.loads(cli("diff", "a/1-graph.json", "b/1-graph.json", "--json").out)
    flops = 2 * 4 * 16 * 32 + 4 * 32 * 2 + 2 * 4 * 32 * 8
    assert told["totals"]["flops"] == {"before": flops, "after": 2 * flops}
    ran = cli("diff", "a", "b/1-graph.json", "--fail-on", "flops=+10%")
    assert ran.code == 1
    assert f"error: flops grew by 100.0 % ({flops} -> {2 * flops}), 10 % is allowed" in ran.err
    assert "these graphs have no traffic" in cli("diff", "a", "b/1-graph.json", "--fail-on", "traffic=+1%").err


def test_kernels(cli, build):
    same = cli("diff", "model.tilec/3-kernels.json", "model.tilec", "--exit-code")
    assert (same.code, same.out) == (0, "no changes: model on host, 1 step\n")
    text = (build / "3-kernels.json").read_text()
    (build.parent / "k.json").write_text(text.replace('"kernel": "', '"kernel": "other_'))
    ran = cli("diff", "model.tilec/3-kernels.json", "k.json", "--exit-code", "--format", "md")
    assert ran.code == 3
    assert ran.out.startswith("**model on host: 1 -> 1 step (1 other kernel; 0 unchanged)**")
