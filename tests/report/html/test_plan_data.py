"""What a page says of a plan equals what the plan says."""

from dataclasses import replace

import pytest
from report.plans import base, group, layers, plan, tuned

from tilec.analysis.statistics import statistics
from tilec.bench.trace import events, measured_times, shares
from tilec.ir.expr import Const
from tilec.ir.graph import Placement, Unsupported
from tilec.ir.plan import Refusal
from tilec.ir.text import parse_expr
from tilec.report.codes import pages_of
from tilec.report.html import Shown
from tilec.report.html.plan_data import plan_data
from tilec.runtime.times import Span
from tilec.spec.resolve import resolve_device


def test_groups_say_what_the_plan_says():
    given = base()
    data = plan_data(Shown("here", given))
    assert [each["name"] for each in data["groups"]] == [each.name for each in given.groups]
    first, told = given.groups[0], data["groups"][0]
    assert told["operators"] == "MatMul, Relu"
    assert told["levels"]["smem"] == {"footprint": 1024, "moved": 4608, "read": 4096, "transactions": 0, "written": 512}
    assert told["levels"]["reg"]["footprint"] == 64
    assert told["traffic"] == 4608
    assert told["operations"] == 1000
    assert told["connect"] == {"h->r": "reg"}
    assert told["variants"][0]["tiles"] == {"smem": {"r": {"m": 16, "n": 32}}}
    assert told["reads"] == ["x", "w"]
    assert told["nodes"][0]["expr"]["text"] == "h[m, n] = sum(k, x[m, k] * w[k, n])"
    assert told["kernels"] == [first.variants[0].kernel]
    assert [each["kind"] for each in data["groups"]] == ["register", "single", "stitched"]


def test_totals_are_those_of_the_plan():
    data = plan_data(Shown("here", base()))
    found = statistics(base())
    assert data["totals"]["traffic_bytes"] == found.traffic.value
    assert data["totals"]["unfused_traffic_bytes"] == 32768
    assert data["totals"]["kinds"] == {"stitched": 1, "register": 1, "single": 1}
    assert data["totals"]["nodes"] == 5
    assert data["totals"]["predicted_picoseconds"] is None
    assert data["totals"]["ratio"] is None


def test_every_kernel_has_its_program_once():
    data = plan_data(Shown("here", base()))
    assert set(data["programs"]) == {kernel for each in data["groups"] for kernel in each["kernels"]}
    for kernel, text in data["programs"].items():
        assert text.startswith(f"program {kernel}()\n")


def test_a_refusal_names_its_groups_and_what_its_code_means():
    data = plan_data(Shown("here", tuned()))
    (refusal,) = data["refusals"]
    assert refusal == {
        "code": "capacity", "edge": "r->g", "from": 0, "to": 1, "numbers": {"needs": 70000, "has": 65536}
    }  # fmt: skip
    page = next(page for page in pages_of("capacity") if page.kind == "edge")
    assert data["codes"] == {
        "capacity": {"meaning": page.meaning, "remedy": page.remedy, "numbers": dict(page.numbers)}
    }


def test_an_edge_from_nowhere_has_no_groups():
    data = plan_data(Shown("here", plan(*layers(), refusals=(Refusal("gone->away", "strange"),))))
    assert (data["refusals"][0]["from"], data["refusals"][0]["to"], data["codes"]) == (None, None, {})


def test_speeds_are_those_of_the_device_where_it_is_known():
    assert plan_data(Shown("here", base()))["device"] == {
        "description": "", "known": False, "name": "toy", "roofs": [], "units": []
    }  # fmt: skip
    device = resolve_device("a100")
    told = plan_data(Shown("here", base(), device))["device"]
    assert told["known"]
    assert [(roof["level"], roof["passes"]) for roof in told["roofs"]] == [
        ("smem", "dram"),
        ("smem", "l2"),
        ("reg", "smem"),
    ]
    assert told["roofs"][0]["bandwidth"] == device.bandwidth("dram")
    assert [unit["rate"] for unit in told["units"]] == [device.peak(("f32", "f32"), "f32")]


def test_costs_that_depend_on_sizes_are_text():
    first, *rest = layers()
    symbolic = replace(first, cost=replace(first.cost, read={"smem": parse_expr("s * 4")}, flops=parse_expr("s + 1")))
    data = plan_data(Shown("here", plan(symbolic, *rest, symbols=("s",))))
    assert data["groups"][0]["levels"]["smem"]["read"] == "s * 4"
    assert data["groups"][0]["operations"] == "s + 1"
    assert data["symbols"] == ["s"]
    assert data["slopes"] == []


@pytest.mark.parametrize("groups", [(), (group("h"),)])
def test_small_plans(groups):
    data = plan_data(Shown("here", plan(*groups, inputs=(), outputs=(), refusals=())))
    assert len(data["groups"]) == len(groups)


def test_nodes_that_fell_back_are_told():
    fallen = Unsupported("n", "NonMaxSuppression", "its shape depends on the data", "Nothing to mend.")
    data = plan_data(Shown("here", plan(*layers(), placement=Placement(5, 4, (fallen,)))))
    assert data["placement"]["fallback"][0]["op"] == "NonMaxSuppression"
    assert data["levels"][1]["units"] == 8
    assert data["levels"][0]["capacity"] is None
    assert data["tensors"]["x"] == ("f32[64, 16]", Const(4096).value)


def test_the_factor_that_limits_a_group_is_a_unit_a_bandwidth_or_latency():
    device = resolve_device("a100")
    first = base().groups[0]

    def limit(operations, moved, picoseconds):
        cost = replace(
            first.cost,
            flops=Const(operations),
            read={"smem": Const(moved)},
            written={"smem": Const(0)},
            picoseconds=picoseconds,
        )
        given = replace(base(), groups=(replace(first, cost=cost), *base().groups[1:]))
        return plan_data(Shown("here", given, device))["groups"][0]["limit"]

    assert (limit(10**12, 1024, 10**8)["kind"], limit(10**12, 1024, 10**8)["level"]) == ("compute", "")
    memory = limit(1000, 2**30, 10**9)
    assert (memory["kind"], memory["level"], memory["amount"]) == ("memory", "smem", 2**30)
    assert memory["least"] == 2**30 * 10**12 // memory["rate"]
    assert limit(1000, 1024, 10**7)["kind"] == "latency"
    assert plan_data(Shown("here", base()))["groups"][0]["limit"] is None


def test_parts_inside_a_group_nest_by_level():
    connect = {"h->r": "reg", "r->g": "smem", "g->y": "reg"}
    data = plan_data(Shown("here", plan(group("h r g y", connect), group("top"))))
    assert data["groups"][0]["parts"] == [["reg", [0, 1]], ["reg", [2, 3]]]
    assert data["groups"][1]["parts"] == [0]


def test_tensors_between_groups_have_a_place_while_they_are_read():
    memory = plan_data(Shown("here", base()))["memory"]
    spans = {name: (first, last) for name, _, _, first, last in memory["tensors"]}
    assert spans["r"] == (0, 1)
    boxes = [(first, last, at, at + size) for _, at, size, first, last in memory["tensors"]]
    for n, (first, last, low, high) in enumerate(boxes):
        assert high <= memory["size"]
        assert all(last < a or b < first or high <= c or d <= low for a, b, c, d in boxes[:n])


@pytest.mark.feature("W08")
def test_buffers_of_a_kernel_have_the_places_of_its_program():
    given = base()
    levels = tuple(replace(level, alignment=16) if level.name == "smem" else level for level in given.levels)
    data = plan_data(Shown("here", replace(given, levels=levels)))
    assert data["levels"][1]["alignment"] == 16
    for kernel, text in data["programs"].items():
        (there,) = data["places"][kernel].values()
        assert there["size"] == max(at + size for _, at, size, _, _ in there["tensors"])
        for name, at, _, first, last in there["tensors"]:
            assert first <= last
            assert any(f"allocate {name} " in line and line.endswith(f"at byte {at}") for line in text.split("\n"))
    assert set(map(tuple, plan_data(Shown("here", given))["places"].values())) == {()}


def test_measured_times_are_those_of_the_trace_of_this_plan():
    run = [(Span("r", 0, 3000), Span("g", 3000, 5000))]
    device = resolve_device("a100")
    trace = {"traceEvents": events(0, "net", run, shares(base(), run, device), "digest")}
    measured = measured_times(trace, "digest")
    assert measured == pytest.approx({"r": 3e-6, "g": 2e-6})
    assert measured_times(trace, "another") == measured_times({"traceEvents": [3]}, "digest") == {}
    data = plan_data(Shown("here", base(), measured=measured))
    assert [each["measured"] for each in data["groups"]] == [3_000_000, 2_000_000, None]
