"""Ratios of plans and groups to the least traffic known."""

from __future__ import annotations

from dataclasses import replace

from report.plans import layers, plan

from tilec.analysis.ratios import Ratio, attained, group_ratios, plan_ratio, ratio_to_json, times_text
from tilec.ir.plan import Bound, Plan


def bound_plan() -> Plan:
    first, *rest = layers()
    groups = (first, *(replace(each, bounds={"smem": Bound(100, 2048)}) for each in rest))
    return plan(*groups, bounds={"smem": Bound(4096, 8192)}, capacities={"smem": 65536})


def test_all_groups_are_compared_together():
    ratio = plan_ratio(bound_plan())
    assert ratio == plan_ratio(bound_plan(), "smem") == Ratio("smem", 11776, Bound(4096, 8192))
    assert plan_ratio(bound_plan(), "reg") is None
    assert (ratio.times, times_text(ratio)) == (1.4375, "1.44x")
    assert ratio_to_json(ratio) == {
        "known_bytes": 8192, "least_bytes": 4096, "level": "smem", "moved_bytes": 11776, "parallel_bytes": None,
    }  # fmt: skip
    assert plan_ratio(plan(*layers())) is None


def test_groups_are_compared_at_their_levels():
    first, second, _ = bound_plan().groups
    assert list(group_ratios(first)) == []
    assert [(each.level, each.bound.known) for each in group_ratios(second)] == [("smem", 2048)]


def test_nothing_known_is_no_ratio():
    assert times_text(Ratio("smem", 5, Bound(1))) == "?"
    assert Ratio("smem", 0, Bound(0, 0)).times is None


def test_a_plan_that_moves_less_than_was_known_is_the_best_known():
    assert attained(Bound(1, 8, 20), 30) == Bound(1, 8, 20)
    assert attained(Bound(1, 8, 20), 9) == Bound(1, 8, None)
    assert attained(Bound(1, 8, 20), 5) == Bound(1, 5, None)
    assert attained(Bound(1), 5) == Bound(1)
    assert attained(Bound(1, 8, 20), 0) == Bound(1, 8, 20)
    given = bound_plan()
    ratio = plan_ratio(replace(given, bounds={"smem": Bound(4096, 20000, 30000)}))
    assert (ratio.times, ratio.parallel_times) == (1.0, None)
