"""Metrics of plans."""

from dataclasses import replace

import pytest
from report.plans import layers, plan

from tilec.analysis.diff import diff_plans
from tilec.analysis.limits import exceeded, parse_limits
from tilec.analysis.totals import at_level, lowest, pair, plan_costs, traffic
from tilec.ir.expr import Const
from tilec.ir.plan import Plan
from tilec.ir.text import parse_expr, text_of


def holding(*footprints: str) -> Plan:
    first, *_ = layers()
    return plan(*(replace(first, cost=replace(first.cost, footprint={"smem": parse_expr(f)})) for f in footprints))


@pytest.mark.parametrize(
    ("footprints", "largest"),
    [
        (("10", "30", "20"), "30"),
        (("s * 4", "s * 8 + 2", "s * 8"), "s * 8 + 2"),
        (("maximum(s * 4, 100)", "maximum(90, s * 5)"), "maximum(100, s * 5)"),
        (("s", "t", "s"), "maximum(s, t)"),
    ],
)
def test_the_largest_footprint_for_every_size(footprints: tuple[str, ...], largest: str) -> None:
    assert text_of(plan_costs(holding(*footprints))["footprint@smem"]) == largest


def test_maxima_of_many_terms_are_compared_at_once() -> None:
    """As plans with symbolic sizes hold them: the same terms in other orders and repeated."""
    terms = [f"s * {128 * k} + {64 * k}" for k in range(1, 12)] + ["t * 40", "3328", "s * t * 8"]
    nested = "288"
    for term in terms:
        nested = f"maximum({term}, maximum({term}, {nested}))"
    old, new = holding(nested, *terms), holding(*reversed(terms), nested)
    diff = diff_plans(old, new)
    assert not [metric for metric in diff.totals if metric.changed]
    assert exceeded(diff, parse_limits(["footprint=+0%"])) == []


def test_traffic_is_that_of_the_lowest_pair_of_levels() -> None:
    first, second, _ = layers()
    cached = replace(second.cost, read={"reg": Const(7)}, written={"reg": Const(3)})
    found = plan(first, replace(second, cost=cached))
    assert traffic(found) == Const(4096 + 512)
    assert (lowest(found), pair(found, "smem"), pair(found, "reg")) == ("smem", "dram->smem", "smem->reg")
    assert at_level(found, "reg") == Const(10)
