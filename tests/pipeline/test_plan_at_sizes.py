"""Plans with symbols at named sizes, and what explanations, pages and lint say of their variants."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from verify.builds import planned_for_sizes

from tilec.analysis.size_variants import symbol_facts, variant_counts, variant_facts
from tilec.cli.summary import plan_line, plan_summary
from tilec.errors import UsageError
from tilec.ir.bind_plan import bind_plan, complete_sizes, variant_at
from tilec.ir.expr import Const, constant_value
from tilec.ir.plan import Plan
from tilec.ir.sizes import SymbolRange
from tilec.pipeline.plan_at_sizes import plan_at_sizes
from tilec.report.html.plan_data import plan_data
from tilec.report.html.shown import Shown
from tilec.report.lint.plans import check_plan_file
from tilec.spec.resolve import resolve_device

DEVICE = "zen5-avx512"


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    folder: Path = tmp_path_factory.mktemp("plan")
    _, plan = planned_for_sizes(folder, DEVICE, batch=SymbolRange(0, 400, likely=(64,), origin="recipe"))
    return plan


@pytest.mark.feature("B08")
def test_figures_are_for_the_sizes_that_are_named(plan: Plan) -> None:
    device = resolve_device(DEVICE)
    usual, there = plan_at_sizes(plan, {}, device), plan_at_sizes(plan, {"batch": 300}, device)
    assert usual == bind_plan(plan, {"batch": 64})
    assert there.symbols == ()
    for group, before in zip(there.groups, plan.groups, strict=True):
        assert group.variants == (replace(variant_at(before, {"batch": 300}), guard=Const(True)),)
        assert constant_value(group.cost.flops) is not None
    assert sum(g.cost.picoseconds for g in there.groups) > sum(g.cost.picoseconds for g in usual.groups)
    assert all(g.cost.picoseconds == 0 for g in plan_at_sizes(plan, {"batch": 300}, None).groups)
    assert plan_line(plan).endswith(" at batch=64")
    assert plan_line(there, {"batch": 300}).endswith(" at batch=300")
    assert plan_summary(plan)["sizes"] == {"batch": 64}
    assert "sizes" not in plan_summary(there)
    with pytest.raises(UsageError, match=r"batch=401 is none of 0..400 \(recipe\)"):
        complete_sizes(plan, {"batch": 401})


def test_variants_are_told_with_the_one_that_runs(plan: Plan) -> None:
    (symbol,) = symbol_facts(plan)
    assert (symbol.sizes, symbol.likely, symbol.made_for, symbol.origin) == ("0..400", (64,), 64, "recipe")
    counts = variant_counts(plan)
    assert counts.variants == sum(counts.guards.values()) == sum(len(group.variants) for group in plan.groups)
    for group in plan.groups:
        for size in (0, 1, 64, 400):
            running = [each.kernel for each in variant_facts(group, {"batch": size}) if each.runs]
            assert running == [variant_at(group, {"batch": size}).kernel]


def test_a_page_has_all_variants_and_figures_of_some_sizes(plan: Plan) -> None:
    device = resolve_device(DEVICE)
    there = plan_at_sizes(plan, {"batch": 7}, device)
    data = plan_data(Shown("x", there, device, whole=plan, at={"batch": 7}))
    assert data["sizes"]["at"] == "batch=7"
    assert data["symbols"] == ["batch"]
    for shown, group in zip(data["groups"], plan.groups, strict=True):
        assert shown["kernels"] == [each.kernel for each in group.variants]
        assert group.variants[shown["runs"]] is variant_at(group, {"batch": 7})
        assert "batch" in shown["expressions"]["operations"]
        assert isinstance(shown["operations"], int)
        assert set(shown["kernels"]) <= set(data["programs"])
    plain = plan_data(Shown("x", there, device))
    assert plain["sizes"] is None
    assert "runs" not in plain["groups"][0]


def test_lint_finds_variants_that_no_size_reaches(plan: Plan) -> None:
    assert [f.code for f in check_plan_file(plan, "p.json") if f.code in ("idle-variant", "illegal")] == []
    number, group = next((n, each) for n, each in enumerate(plan.groups) if len(each.variants) > 1)
    turned = replace(group, variants=group.variants[::-1])
    edited = replace(plan, groups=(*plan.groups[:number], turned, *plan.groups[number + 1 :]))
    idle = [finding for finding in check_plan_file(edited, "p.json") if finding.code == "idle-variant"]
    assert len(idle) == len(group.variants) - 1
    assert idle[0].place.pointer == f"/groups/{number}/variants/1"
