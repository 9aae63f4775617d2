"""Reductions of few results are spread over a device's units where that is predicted to pay, and compute the same."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scheduler.graphs import assert_same, make_graph
from scheduler.models import attention
from scheduler.running import device, illegal, run_plan, threaded, tiny

from tilec.ir.evaluate import evaluate, integer
from tilec.ir.expr import constant_value
from tilec.ir.graph import Graph
from tilec.ir.intervals import Candidates
from tilec.ir.plan import Plan
from tilec.lower.lowering import lower
from tilec.machine import execute
from tilec.report.explain.reductions_text import spread_text
from tilec.scheduler import schedule
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.refusals import ReductionSpread, RewrittenGraph
from tilec.scheduler.spreading.reduction_splits import number_of_parts
from tilec.scheduler.spreading.spread_reductions import SpreadReductions
from tilec.scheduler.target_model import target_model_of
from tilec.spec.device import DeviceSpec
from tilec.spec.recipe import ScheduleOptions

PLAIN = ScheduleOptions(passes=("compose", "choose_layouts", "rematerialize"))


def mean(pixels: int = 128, channels: int = 16) -> Graph:
    """The global mean of an image whose channels are stored innermost, and what reads it."""
    e = {"h": pixels, "w": pixels, "c": channels}
    nodes = [("s[c] = sum(h, w, x[h, w, c])", e), (f"y[c] = s[c] / {float(pixels**2)}", e)]
    return make_graph({"x": (pixels, pixels, channels)}, nodes, ["y"])


def norm(rows: int, columns: int) -> Graph:
    e = {"s": rows, "n": columns}
    nodes = [
        ("m[s] = max(n, x[s, n])", e),
        ("d[s] = sum(n, exp(x[s, n] - m[s]))", e),
        ("y[s, n] = exp(x[s, n] - m[s]) / d[s]", e),
    ]
    return make_graph({"x": (rows, columns)}, nodes, ["y"])


def spread(graph: Graph, target: DeviceSpec) -> RewrittenGraph:
    problem = FusionProblem(graph, (), target_model_of(target), Candidates(), "time", frozenset())
    after = SpreadReductions().run(RewrittenGraph(graph), problem)
    assert_same(graph, after.graph)
    return after


def predicted(plan: Plan) -> int:
    return sum(group.cost.picoseconds for group in plan.groups)


def test_a_global_mean_takes_about_what_its_bytes_take() -> None:
    """An image of 1 MB: by a thread for each channel 800 us and more, its bytes alone 0.5."""
    graph, a100 = mean(), device("a100")
    plan, whole = schedule(graph, a100), schedule(graph, a100, PLAIN)
    assert predicted(whole) > 200e6
    assert predicted(plan) < 8e6
    first = plan.groups[0].nodes[0].expr
    assert sum(constant_value(extent) or 0 for extent in first.shape) > 100
    decision = spread(graph, a100).spread["s"]
    assert decision.partials > 108
    assert decision.split * 50 < decision.whole


@cache
def with_threads() -> Plan:
    """A plan whose threads each compute rows of their own, unless these are spread."""
    return schedule(norm(128, 768), threaded("a100"))


def test_rows_are_shared_by_threads_of_one_core() -> None:
    """Partial results stay in the core's level: one kernel reads a row once."""
    plan = with_threads()
    (group,) = plan.groups
    names = {node.name for node in group.nodes}
    assert {"m_partial1", "d_partial1"} <= names
    assert {group.connect["m_partial1->m"], group.connect["d_partial1->d"]} == {"smem"}
    assert predicted(plan) * 2 < predicted(schedule(norm(128, 768), threaded("a100"), PLAIN))


def test_a_row_whole_is_shared_by_the_lanes_of_a_warp() -> None:
    plan = schedule(norm(128, 768), device("a100"))
    assert not any("partial" in node.name for group in plan.groups for node in group.nodes)
    assert predicted(plan) < predicted(with_threads())


def test_reductions_with_equal_extents_are_split_alike() -> None:
    after = spread(norm(128, 768), threaded("a100")).graph
    one, other = (next(n for n in after.nodes if n.name == name) for name in ("m_partial1", "d_partial1"))
    assert one.expr.domain == other.expr.domain


@pytest.mark.parametrize(
    ("graph", "name", "reason"),
    [
        (norm(8, 768), "avx2", "slower"),
        (
            make_graph({"x": (9, 400, 600)}, [("y[a, b] = sum(k, x[k, a, b])", {"a": 400, "b": 600, "k": 9})], ["y"]),
            "a100",
            "short",
        ),
        (
            make_graph({"x": (90, 400, 600)}, [("y[a, b] = sum(k, x[k, a, b])", {"a": 400, "b": 600, "k": 90})], ["y"]),
            "a100",
            "results",
        ),
    ],
)
def test_what_is_left_whole_says_why(graph: Graph, name: str, reason: str) -> None:
    after = spread(graph, device(name))
    assert after.graph is graph
    assert {each.reason for each in after.spread.values()} <= {reason, "slower", "share"}
    assert any(each.reason == reason for each in after.spread.values())


def test_one_core_without_threads_is_asked_nothing() -> None:
    draft = RewrittenGraph(mean(16))
    one = tiny().model_copy(update={"levels": tuple(each.model_copy(update={"units": 1}) for each in tiny().levels)})
    problem = FusionProblem(draft.graph, (), target_model_of(one), Candidates(), "time", frozenset())
    assert SpreadReductions().run(draft, problem) is draft
    traffic = replace(problem, target=target_model_of(device("a100")), objective="traffic")
    assert SpreadReductions().run(draft, traffic) is draft


def assert_runs(graph: Graph, target: DeviceSpec) -> Plan:
    """The plan of a graph runs on the tile machine with the right numbers and the bytes that it promises."""
    plan = schedule(graph, target)
    assert illegal(plan) == []
    rng = np.random.default_rng(3)
    arrays = {
        port.tensor: rng.uniform(-1, 1, [constant_value(e) or 0 for e in graph.tensors[port.tensor].shape]).astype(
            np.float32
        )
        for port in graph.inputs
    }
    found, known = run_plan(plan, arrays), dict(arrays)
    for node in graph.nodes:
        known[node.name] = evaluate(node.expr, known)
    for port in graph.outputs:
        np.testing.assert_allclose(found[port.name], known[port.tensor], rtol=2e-4, atol=1e-5)
    for node in plan.prepared:
        arrays[node.name] = evaluate(node.expr, arrays)
    for group in plan.groups:
        result = execute(lower(group, group.variants[0], plan), arrays, {})
        arrays |= result.outputs
        for level, counted in result.moved.items():
            assert counted.read == integer(group.cost.read[level], {})
            assert counted.written == integer(group.cost.written[level], {})
    return plan


@pytest.mark.slow_cases("shape1", "shape2")
@pytest.mark.parametrize("shape", [(5, 384), (3, 499), (1, 1000), (2, 13)])
def test_rows_on_a_device_with_threads(shape: tuple[int, int]) -> None:
    """Also extents that no number of parts divides, whose last part is shorter."""
    plan = assert_runs(norm(*shape), threaded("a100"))
    assert (shape == (2, 13)) != any("partial" in node.name for group in plan.groups for node in group.nodes)


def test_a_mean_on_a_device_with_threads() -> None:
    plan = assert_runs(mean(96, 3), tiny("explicit", threads=64))
    assert any(node.name.startswith("s_partial") for group in plan.groups for node in group.nodes)


@pytest.mark.slow
def test_a_layer_of_a_network_on_a_device_with_threads() -> None:
    big = tiny("explicit", threads=512)
    levels = tuple(
        each.model_copy(update={"capacity": 16384 if each.name == big.core_level else each.capacity})
        for each in big.levels
    )
    plan = schedule(attention(), big.model_copy(update={"levels": levels}))
    assert illegal(plan) == []


@given(st.integers(4, 4000), st.integers(2, 600))
def test_parts_cover_an_extent_and_none_is_empty(extent: int, parts: int) -> None:
    parts = min(parts, extent // 2)
    number = number_of_parts(extent, parts)
    length = -(-extent // number)
    assert 2 <= number <= 2 * parts
    assert (number - 1) * length < extent <= number * length


def test_the_decision_as_text() -> None:
    made = ReductionSpread("s", 128, 768, 221184, 9970000, 1770000, 32)
    assert spread_text(made) == (
        "128 results of 768 elements each, 221,184 at a time: 32 partial results each, 1.77 us instead of 9.97 us"
    )
    left = ReductionSpread("s", 500000, 768, 221184, reason="results")
    assert spread_text(left).endswith("at a time: whole, it has results enough to keep the device busy")
