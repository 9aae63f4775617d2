"""The lines that end a compilation."""

from dataclasses import replace

from report.plans import layers, plan

from tilec.cli.summary import plan_line, plan_summary
from tilec.ir.expr import Const
from tilec.ir.text import parse_expr

START = "plan: 3 groups (1 stitched, 1 register-fused, 1 single), DRAM traffic "


def predicted(picoseconds, **costs):
    first, *rest = layers()
    return plan(replace(first, cost=replace(first.cost, picoseconds=picoseconds, **costs)), *rest)


def test_the_line_of_a_plan_ends_with_its_time_where_one_is_predicted():
    assert plan_line(predicted(0)) == START + "11.5 KiB (unfused 32)"
    assert plan_line(predicted(1_234_567)) == START + "11.5 KiB (unfused 32), predicted 1.23 us"
    open_size = predicted(4_000, read={"smem": parse_expr("s * 8")})
    assert plan_line(open_size) == START + "s * 8 + 7680 bytes (unfused 32768), predicted 4 ns"


def test_the_same_as_json():
    told = plan_summary(predicted(5, transactions={"dram": Const(9), "smem": Const(4)}))
    assert (told["transactions"], told["predicted_picoseconds"]) == (9, 5)
    assert plan_summary(predicted(0))["predicted_picoseconds"] is None
