"""A plan in numbers."""

from dataclasses import replace

import pytest
from report.plans import group, layers, plan, renamed

from tilec.analysis.diff import diff_plans
from tilec.analysis.limits import exceeded, parse_limits
from tilec.analysis.patterns import PatternCounts, fused_patterns, pattern_counts
from tilec.analysis.statistics import statistics, statistics_to_json
from tilec.analysis.totals import plan_costs
from tilec.artifact import compact
from tilec.ir.expr import Const
from tilec.ir.graph import Port, Tensor
from tilec.ir.text import parse_expr
from tilec.report.formatting import time_text


def asked(of, transactions, picoseconds=0):
    return replace(of, cost=replace(of.cost, transactions=transactions, picoseconds=picoseconds))


@pytest.mark.feature("W48", "W50")
def test_patterns_are_different_computations_of_several_nodes():
    """Groups in other tiles are other kernels of one pattern; a pattern of several plans is one."""
    fused = group("h r", {"h->r": "reg"})
    tiled = replace(group("h r", {"h->r": "smem"}, tile={"m": 8}), name="again")
    softmax = group("g top y", {"g->top": "smem", "g->y": "smem", "top->y": "smem"})
    made = plan(fused, tiled, softmax, group("h"))
    found = statistics(made)
    assert (found.groups, found.launches, found.kernels, found.largest) == (4, 4, 4, 3)
    assert pattern_counts(found.patterns) == PatternCounts(patterns=2, reducing=1, largest=3)
    assert fused_patterns(renamed(made)) == found.patterns
    longer = replace(made, tensors={**made.tensors, "x": Tensor((Const(64), Const(17)), "f32")})
    assert len(fused_patterns(longer) | found.patterns) == 3


@pytest.mark.feature("W50")
def test_intermediate_results_are_outputs_of_groups_that_the_model_does_not_give():
    assert statistics(plan(*layers())).intermediate == Const((64 * 32 + 64 * 8) * 4)
    given = plan(*layers(), outputs=(Port("output", "y"), Port("hidden", "r")))
    assert statistics(given).intermediate == Const(64 * 8 * 4)
    assert statistics(plan(group("h r g top y"))).intermediate == Const(0)


@pytest.mark.feature("W22", "W50")
def test_levels_add_up():
    first, second, third = layers()
    base = plan(asked(first, {"dram": Const(100), "smem": Const(7)}, 3000), asked(second, {"dram": Const(28)}), third)
    levels = tuple(replace(level, transaction=32 if level.name == "dram" else 128) for level in base.levels)
    found = statistics(replace(base, levels=levels))
    assert list(found.levels) == ["dram", "smem", "reg"]
    assert (found.levels["dram"].transactions, found.levels["dram"].moved) == (Const(128), Const(128 * 32))
    assert (found.levels["smem"].transactions, found.levels["smem"].moved) == (Const(7), Const(7 * 128))
    assert found.levels["smem"].read == Const(sum(g.cost.read["smem"].value for g in layers()))
    assert found.levels["smem"].written == Const(3 * 512)
    assert found.levels["smem"].footprint == Const(1024)
    assert found.picoseconds == 3000
    assert found.traffic == plan_costs(base)["traffic"]


def test_as_json_sizes_are_text_and_an_unknown_time_is_null():
    first, *rest = layers()
    told = statistics_to_json(statistics(plan(asked(first, {"dram": parse_expr("s + 3")}), *rest)))
    assert told["levels"]["dram"]["transactions"] == "s + 3"
    assert told["predicted_picoseconds"] is None
    assert told["unfused_traffic_bytes"] == 32768
    assert '"fused_patterns":2,"groups":3,"intermediate_bytes":10240' in compact(told)


def test_an_empty_plan():
    found = statistics(plan())
    assert (found.groups, len(found.patterns), found.largest, found.picoseconds) == (0, 0, 0, 0)
    assert found.intermediate == found.traffic == Const(0)


@pytest.mark.feature("W22")
def test_a_diff_tells_transactions_and_time():
    first, *rest = layers()
    old = plan(asked(first, {"dram": Const(100)}, 2_000_000), *rest)
    new = plan(asked(first, {"dram": Const(125)}, 3_000_000), *rest)
    totals = {metric.name: (metric.before, metric.after) for metric in diff_plans(old, new).totals}
    assert totals["transactions@dram"] == (Const(100), Const(125))
    assert totals["picoseconds"] == (Const(2_000_000), Const(3_000_000))
    assert "traffic@smem" in totals
    assert "picoseconds" not in plan_costs(plan(*layers()))

    def said(limits):
        return exceeded(diff_plans(old, new), parse_limits([limits]))

    assert said("transactions=+25%,picoseconds=+50%") == []
    assert said("transactions=+24%") == ["transactions@dram grew by 25.0 % (100 -> 125), 24 % is allowed"]
    assert said("transactions@dram=+0%") == ["transactions@dram grew by 25.0 % (100 -> 125), 0 % is allowed"]
    assert said("picoseconds=+49%") == ["picoseconds grew by 50.0 % (2000000 -> 3000000), 49 % is allowed"]


@pytest.mark.parametrize(
    ("picoseconds", "text"),
    [
        (1, "1 ps"),
        (999, "999 ps"),
        (1500, "1.5 ns"),
        (1_234_567_890, "1.23 ms"),
        (999_999_999, "1000 us"),
        (31_400_000_000_000, "31.4 s"),
        (4_321_000_000_000_000, "4321 s"),
    ],
)
def test_times_have_units(picoseconds, text):
    assert time_text(picoseconds) == text
