"""The lines that end a compilation."""

from dataclasses import replace

import pytest
from report.plans import layers, plan

from tilec.cli.summary import plan_details, plan_line, plan_summary, verified_line, verify_details
from tilec.ir.expr import Const
from tilec.ir.graph import Call
from tilec.ir.plan import Bound
from tilec.ir.text import parse_expr

START = "plan: 3 groups (1 stitched, 1 register-fused, 1 single), dram->smem "


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


def bounds_of(known, groups=3, parallel=None):
    made = predicted(0)
    bound = {"smem": Bound(2048, known, parallel)}
    some = tuple(replace(g, bounds=bound if n < groups else {}) for n, g in enumerate(made.groups))
    return replace(made, groups=some, bounds=bound, capacities={"smem": 65536})


def test_the_line_tells_what_is_attainable():
    assert plan_line(bounds_of(8192)) == START + "11.5 KiB (unfused 32, attainable 8: 1.44x)"
    assert plan_line(bounds_of(None)) == START + "11.5 KiB (unfused 32)"
    assert plan_summary(bounds_of(8192))["bounds"]["known_bytes"] == 8192
    assert plan_summary(predicted(0))["bounds"] is None


def test_every_group_has_its_ratio_in_detail():
    first, *rest = plan_details(bounds_of(2304, groups=1))
    assert first.endswith(", smem 4.5 KiB, 2.00x of 2.2 KiB known, at least 2.0 KiB")
    assert "smem" not in rest[0]
    assert plan_details(bounds_of(None))[0].endswith(", smem 4.5 KiB, at least 2.0 KiB")
    assert "smem" not in plan_details(predicted(0))[0]


def test_counterexamples_are_told_with_their_mapping():
    found = {"group": "r", "level": "smem", "moved": 5, "bound": 9, "because": "2 runs", "mapping": "smem r m:4"}
    (line,) = verify_details({"below_known": [found]}, {})
    assert line == "  r moves 5 bytes at smem, less than the known 9 (2 runs): smem r m:4"


@pytest.mark.feature("O10")
def test_tasks_for_all_units_stand_beside_what_one_unit_attains():
    made = bounds_of(8192, parallel=10240)
    assert plan_line(made) == START + "11.5 KiB (unfused 32, attainable 8: 1.44x, parallel 10: 1.15x)"
    told = plan_summary(made)
    assert told["bounds_by_level"] == {"dram->smem": told["bounds"]}
    assert told["bounds"]["parallel_bytes"] == 10240
    detail = plan_details(bounds_of(2304, parallel=3072))[0]
    assert detail.endswith(", smem 4.5 KiB, 2.00x of 2.2 KiB known, 1.50x of 3.0 KiB in parallel, at least 2.0 KiB")


def test_a_model_that_all_runs_on_onnxruntime_has_a_line_that_says_so():
    """A tree ensemble has no group of which anything could be told."""
    call = Call("fallback/0.onnx", (), ())
    assert plan_line(replace(predicted(0), groups=(), calls=(call,))) == "plan: no groups, all runs on onnxruntime"
    report = {"verified_on": "host", "groups": {"total": 0, "verified": 0}, "samples": [{}, {}], "variants": {}}
    assert verified_line(report) == "verified on: host at 2 sizes, all on onnxruntime"
    fixed = {"verified_on": "host", "groups": {"total": 0, "verified": 0}, "outputs": {}}
    assert verified_line(fixed) == "verified on: host: all on onnxruntime"


def test_the_line_of_a_verification_tells_what_has_another_reference_or_none():
    refused = [{"because": "b is 0", "reference": "graph"}, {"because": "it died", "reference": "none"}]
    left = [{"because": "i is outside"}]
    report = {"verified_on": "host", "refused": [*refused, refused[0]], "left_out": left}
    line = "verified on: host; 2 cases against graph: b is 0; 2 cases left out: it died"
    assert verified_line(report) == line
