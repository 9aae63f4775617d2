"""Lint of plans and of other artifacts: padded tiles, transactions, bounds, edits, verdicts."""

import json
from dataclasses import replace

import pytest
from report import plans
from report.plans import group, layers

from tilec.artifact import Artifact
from tilec.ir.codec import plan_to_json
from tilec.ir.expr import Const
from tilec.ir.graph import WeightRef
from tilec.ir.plan import Bound, Cost, Group, Plan
from tilec.report.lint.files import lint_text
from tilec.report.lint.plans import check_plan_file

MIB = 1 << 20


def plan(*groups: Group) -> Plan:
    return plans.plan(*groups, constants={"w": WeightRef("net.onnx", 0, 2048), "u": WeightRef("net.onnx", 2048, 1024)})


def found(given: Plan) -> list[tuple[str, str, str]]:
    return [(each.code, each.place.pointer, each.message) for each in check_plan_file(given, "2-plan.json")]


def only(*groups):
    """The findings of some of the two layers' groups changed; what they read stays there."""
    return [each for each in found(plan(*groups)) if each[0] != "illegal"]


def test_a_plan_without_waste_has_no_findings():
    assert found(plan(*layers())) == []


def test_tiles_that_compute_much_twice():
    first, second, third = layers()
    wide = group("h r", {"h->r": "reg"}, tile={"m": 36, "n": 30})
    (finding,) = (each for each in found(plan(replace(wide, name=first.name), second, third)) if each[0] == "padding")
    assert finding[1] == "/groups/0/variants/0/tiles/smem/r"
    assert "tiles of r at smem compute 2.1x its elements (m: 2 x 36 for 64, n: 2 x 30 for 32)" in finding[2]
    clipped = group("h r", {"h->r": "reg"}, tile={"m": 36, "n": 30}, tails={"smem": {"r": "clip"}})
    assert only(replace(clipped, name=first.name), second, third) == []


def test_transactions_that_fetch_what_nobody_needs():
    first, *rest = layers()

    def taking(count: int) -> Plan:
        return plan(replace(first, cost=replace(first.cost, transactions={"dram": Const(count)})), *rest)

    (finding,) = found(taking(100_000))
    assert finding[:2] == ("uncoalesced", "/groups/0/cost/transactions/dram")
    assert "4.5 KiB at dram take 97.7 KiB of transactions (21.7x)" in finding[2]
    assert found(taking(60_000)) == []  # too few to matter


def test_groups_far_from_their_bounds_and_those_like_them_once():
    first, second, third = layers()
    far = {"smem": Bound(100, 512)}
    (finding,) = found(plan(replace(first, bounds=far), second, third))
    assert finding[:2] == ("far-from-bound", "/groups/0/bounds/smem")
    assert "are known to do (9.0x)" in finding[2]
    kernel = first.variants[0].kernel
    alike = replace(second, bounds=far, variants=(replace(second.variants[0], kernel=kernel),))
    (finding,) = found(plan(replace(first, bounds=far), alike, third))
    assert finding[2].endswith("; so does 1 more of its kernel")
    near = {"smem": Bound(100, 4000)}
    assert found(plan(replace(first, bounds=near), second, third)) == []


def test_groups_that_move_next_to_nothing_are_not_told():
    first, second, third = layers()
    cost = Cost({"smem": Const(1000 * MIB)}, {}, {})
    quiet = replace(first, bounds={"smem": Bound(1, 10)})
    assert found(plan(quiet, replace(second, cost=cost), third)) == []


def test_what_codegen_would_refuse_is_an_error():
    first, second, third = layers()
    variant = replace(first.variants[0], tiles={"smem": {"nobody": {"m": 4}}})
    (finding,) = found(plan(replace(first, variants=(variant,)), second, third))
    assert finding[:2] == ("illegal", "/groups/0/variants/0")
    assert "nobody" in finding[2]
    alone = found(plan(second, third))
    assert {each[0] for each in alone} == {"illegal"}


def text(kind: str, body: dict, edited: bool = False) -> str:
    return Artifact(kind, {}, body, edited).text()


def test_an_edited_plan_is_told():
    body = plan_to_json(plan(*layers()))
    assert lint_text(text("plan", body), "p.json", None) == []
    (finding,) = lint_text(text("plan", body, edited=True), "p.json", None)
    assert (finding.code, finding.place.pointer) == ("edited", "/artifact")
    changed = text("plan", body).replace('"toy"', '"other"')
    assert [each.code for each in lint_text(changed, "p.json", None)] == ["edited"]


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ({"verdict": "pass"}, None, ""),
        ({"verdict": "mismatch", "diverging": {"group": "h1", "origin": "relu"}}, "mismatch", "group: h1 (relu)"),
        ({"verdict": "mismatch"}, "mismatch", "the verdict is mismatch"),
        ({"verdict": "unverified", "because": "nothing to draw"}, "unverified", "nothing to draw"),
        ({}, "unverified", "None"),
    ],
)
def test_verdicts(body, code, said):
    findings = lint_text(text("report", body), "4-report.json", None)
    assert [each.code for each in findings] == ([code] if code else [])
    assert all(said in each.message for each in findings)


def test_nodes_that_run_elsewhere():
    body = plan_to_json(plan(*layers()))
    body["placement"] = {"compiled": 2, "total": 4, "fallback": [
        {"node": n, "op": "NonZero", "reason": "r", "remedy": "m"} for n in ("a", "b")
    ]}  # fmt: skip
    (finding,) = lint_text(text("plan", body), "p.json", None)
    assert finding.message == "2 of 4 nodes run on onnxruntime (NonZero)"


@pytest.mark.parametrize("broken", ["{", "[]", '{"artifact": 3}', "nonsense", '{"artifact": {"kind": "plan"}}'])
def test_damage_is_a_finding(broken):
    assert [each.code for each in lint_text(broken, "p.json", None)] == ["invalid"]


@pytest.mark.parametrize("kind", ["graph", "plan"])
def test_an_artifact_without_its_parts_is_a_finding(kind):
    (finding,) = lint_text(text(kind, {"groups": 3}), "p.json", None)
    assert finding.code == "invalid"
    assert json.loads(text(kind, {}))["artifact"]["kind"] == kind
