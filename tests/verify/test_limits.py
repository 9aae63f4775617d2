"""Outcomes of plans that move less than their bounds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from report.plans import layers, plan

from tilec.bounds.einsum.oro_plus import oro_plus
from tilec.bounds.levels import LevelCapacity
from tilec.bounds.plan.plan_bounds import with_bounds
from tilec.ir.expr import Const
from tilec.ir.plan import Bound, Plan
from tilec.spec.recipe import VerifyOptions
from tilec.verify import stage
from tilec.verify.limits import enough_groups, within_bounds
from tilec.verify.outcome import Outcome

PASSED: dict[str, Any] = {"verdict": "pass", "verified_on": "tile machine"}


def bound_plan(read: int = 1 << 20) -> Plan:
    first, *rest = (replace(g, cost=replace(g.cost, read={"smem": Const(1 << 20)})) for g in layers())
    first = replace(first, cost=replace(first.cost, read={"smem": Const(read)}))
    return with_bounds(plan(first, *rest), [LevelCapacity("smem", "dram", 1 << 16, 1, None)], oro_plus)


def test_within_its_bounds_nothing_changes():
    assert within_bounds(Outcome(PASSED, {}), bound_plan()) == Outcome(PASSED, {})
    assert within_bounds(Outcome(PASSED, {}), plan(*layers())) == Outcome(PASSED, {})


def test_a_plan_below_what_is_proved_fails_with_its_numbers():
    found = within_bounds(Outcome(PASSED, {}), bound_plan(88))
    assert found.failure is not None
    assert "group r moves 600 bytes at smem" in found.failure
    assert "any mapping moves 14336" in found.failure
    assert found.report["verdict"] == "mismatch"
    assert [each["group"] for each in found.report["below_least"]] == ["r"]
    assert "traffic" in str(found.hint)


def test_another_failure_is_told_first():
    found = within_bounds(Outcome(PASSED, {}, "output y differs", "look there"), bound_plan(88))
    assert (found.failure, found.hint) == ("output y differs", "look there")
    assert found.report["below_least"]


def test_counts_of_the_machine_are_judged_too():
    moved = {"traffic": {"r": {"counted": {"smem": [12, 30]}, "planned": {"smem": [1 << 20, 512]}}}}
    found = within_bounds(Outcome({**PASSED, **moved}, {}), bound_plan())
    assert found.failure is not None
    assert "moves 42 bytes" in found.failure


def test_a_counterexample_is_kept_in_the_report():
    made = bound_plan()
    first = replace(made.groups[0], bounds={"smem": Bound(0, 1 << 30)})
    found = within_bounds(Outcome(PASSED, {}), replace(made, groups=(first, *made.groups[1:])))
    assert (found.failure, found.report["verdict"]) == (None, "pass")
    (told,) = found.report["below_known"]
    assert told == {"group": "r", "level": "smem", "moved": (1 << 20) + 512, "bound": 1 << 30,
                    "mapping": "smem r m:16 n:32", "because": "1 run"}  # fmt: skip


def test_the_stage_judges_what_ran(monkeypatch: pytest.MonkeyPatch, tmp_path):
    monkeypatch.setattr(stage, "_compared", lambda *_: Outcome(PASSED, {}))
    found = stage.verify(tmp_path, bound_plan(88), {}, tmp_path, VerifyOptions())
    assert found.failure is not None


@pytest.mark.parametrize(
    ("verdict", "verified", "least", "refused"),
    [("pass", 7, 0.0, False), ("pass", 7, 0.25, False), ("pass", 7, 0.5, True), ("unverified", 24, 0.1, True)],
)
def test_a_pass_of_too_few_groups_is_refused(verdict, verified, least, refused):
    outcome = enough_groups(Outcome({"groups": {"total": 24, "verified": verified}, "verdict": verdict}, {}), least)
    assert outcome.report["verdict"] == ("refused" if refused else verdict)
    said = f"{verified} of 24 groups were verified, and a share of {least:g} is asked for"
    assert outcome.failure == (said if refused else None)
