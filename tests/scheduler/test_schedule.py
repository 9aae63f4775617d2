"""Schedule as a whole: plans are legal, compute what the graph says, and depend on nothing but their inputs."""

import subprocess
import sys
from dataclasses import replace
from functools import cache
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from scheduler.graphs import make_graph, values_of
from scheduler.models import attention, convolutions
from scheduler.running import device, illegal, run_plan, tiny

from tests.examples import examples
from tests.random_graphs import Case
from tests.random_plans import cases
from tilec.analysis.statistics import statistics
from tilec.analysis.totals import predicted
from tilec.errors import ConfigError, UnsupportedError
from tilec.ir.codec import plan_from_json, plan_to_json
from tilec.ir.expr import constant_value, operands, variables
from tilec.ir.graph import Graph, Inline
from tilec.ir.plan import Plan
from tilec.scheduler import schedule
from tilec.scheduler.pipeline import GRAPH_PASSES
from tilec.scheduler.plan_candidates import Fusion
from tilec.scheduler.refusals import REASONS
from tilec.scheduler.trace import RecordedTrace
from tilec.spec.recipe import ScheduleOptions
from tilec.spec.resolve import packaged

KINDS = ("avx2", "a100", "ipu-mk2")
"""A processor, a GPU, a machine of tiles."""
DEVICES = {"cpu": tiny(), "gpu": tiny("explicit", 64)}


GRAPHS = {"attention": attention, "convolutions": convolutions}
NETWORKS = {**GRAPHS, "attention of one row": lambda: attention(1, 1), "small convolutions": lambda: convolutions(8)}


@cache
def planned(graph: str, fusion: Literal["none", "full"] = "full", kind: str = "cpu") -> Plan:
    """The plan of a network for a small processor, or for a small GPU."""
    return schedule(NETWORKS[graph](), DEVICES[kind], ScheduleOptions(fusion=fusion))


def with_constants(case: Case, arrays: dict[str, np.ndarray]) -> Graph:
    """The graph with its last input, if it is one of floats, as a constant."""
    last = case.graph.inputs[-1]
    if len(case.graph.inputs) == 1 or last.tensor in case.indices or arrays[last.tensor].dtype != np.float32:
        return case.graph
    value = Inline(tuple(float(v) for v in arrays[last.tensor].ravel()))
    return replace(case.graph, inputs=case.graph.inputs[:-1], constants={last.tensor: value})


@pytest.mark.feature("W21", "W32")
@pytest.mark.parametrize("kind", DEVICES)
@examples(12, seed=3)
@given(case=cases())
def test_random_graphs_compute_what_they_say(kind: str, case: Case) -> None:
    arrays = case.arrays()
    graph = with_constants(case, arrays)
    plan = schedule(graph, DEVICES[kind])
    assert illegal(plan) == []
    found = run_plan(plan, {port.name: arrays[port.tensor] for port in graph.inputs})
    reference = case.reference(arrays)
    for port in graph.outputs:
        expected = reference[port.tensor]
        scale = max(1, np.abs(expected).max(initial=0, where=np.isfinite(expected)))
        np.testing.assert_allclose(found[port.name], expected, rtol=1e-4, atol=1e-4 * scale, equal_nan=True)


@pytest.mark.quick_cases("convolutions-cpu", "small convolutions-cpu")
@pytest.mark.parametrize("kind", DEVICES)
@pytest.mark.parametrize(
    "name", [*GRAPHS, pytest.param("attention of one row", marks=pytest.mark.slow), "small convolutions"]
)
def test_networks_compute_what_they_say(kind: str, name: str) -> None:
    graph, plan = NETWORKS[name](), planned(name, kind=kind)
    assert illegal(plan) == []
    expected = values_of(graph)
    found = run_plan(plan, inputs_of(graph))
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-4)


def inputs_of(graph: Graph) -> dict[str, np.ndarray]:
    """The values that `values_of` draws."""
    return dict(values_of(replace(graph, outputs=graph.inputs)))


@pytest.mark.feature("W54")
def test_symbols_stay_and_every_size_computes_the_same() -> None:
    symbolic = attention("batch", "seq")
    plan = schedule(symbolic, tiny())
    assert plan.symbols == ("batch", "seq")
    assert any(variables(extent) for tensor in plan.tensors.values() for extent in tensor.shape)
    for batch, seq in ((1, 1), (2, 5)):
        sizes = {"batch": batch, "seq": seq}
        bound = attention(batch, seq)
        found = run_plan(plan, inputs_of(bound), sizes)
        np.testing.assert_allclose(found["out"], values_of(bound)["out"], rtol=1e-3, atol=1e-3)


@pytest.mark.quick_cases("avx2")
@pytest.mark.feature("W47")
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n in KINDS else pytest.mark.slow) for n in sorted(packaged("devices"))],
)
def test_any_device_gets_a_legal_plan(name: str) -> None:
    plan = schedule(attention(), device(name))
    assert illegal(plan) == []
    assert plan.device == name


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in KINDS else pytest.mark.slow) for n in sorted(packaged("devices"))]
)
def test_any_device_gets_a_legal_plan_of_convolutions(name: str) -> None:
    assert illegal(schedule(convolutions(), device(name))) == []


@pytest.mark.feature("W49")
def test_without_fusion_every_group_is_one_node() -> None:
    plan = planned("attention", "none")
    assert all(len(group.nodes) == 1 for group in plan.groups)
    assert not any(group.connect for group in plan.groups)
    assert {r.code for r in plan.refusals} == {"fusion-off"}
    fused = planned("attention")
    assert len(fused.groups) < len(plan.groups)


@pytest.mark.feature("W15", "W49", "A11")
def test_more_fusion_connects_at_lower_levels_and_costs_less() -> None:
    """Nothing, what shares registers, what a core's level holds together."""
    searched: tuple[Fusion, ...] = ("none", "register", "full")
    plans = [schedule(attention(), device("a100"), ScheduleOptions(fusion=fusion)) for fusion in searched]
    connected = [{level for group in plan.groups for level in group.connect.values()} for plan in plans]
    assert connected == [set(), {"reg"}, {"reg", "smem"}]
    groups = [len(plan.groups) for plan in plans]
    handed = [constant_value(statistics(plan).intermediate) or 0 for plan in plans]
    times = [predicted(plan) for plan in plans]
    for numbers in (groups, handed, times):
        assert numbers == sorted(set(numbers), reverse=True), numbers


@pytest.mark.feature("W16")
@pytest.mark.parametrize("graph", GRAPHS)
def test_every_edge_is_connected_or_refused_with_a_reason(graph: str) -> None:
    plan = planned(graph)
    made = {node.name for group in plan.groups for node in group.nodes}
    connected = {e for group in plan.groups for e in group.connect}
    refused = {refusal.edge for refusal in plan.refusals}
    edges = {f"{t}->{n.name}" for g in plan.groups for n in g.nodes for t in operands(n.expr) if t in made}
    assert connected | refused == edges
    assert not connected & refused
    assert {refusal.code for refusal in plan.refusals} <= set(REASONS)
    assert all(level in plan.groups[0].variants[0].levels for g in plan.groups for level in g.connect.values())


def test_plans_survive_json_and_are_the_same_every_time() -> None:
    plan = planned("convolutions")
    assert plan_from_json(plan_to_json(plan), "plan") == plan
    assert schedule(convolutions(), tiny()) == plan


def test_passes_are_seen_and_chosen() -> None:
    trace = RecordedTrace()
    schedule(convolutions(), tiny(), trace=trace)
    names = [each.name for each in GRAPH_PASSES]
    assert [entry.step.name for entry in trace.entries][: len(names)] == names
    plan = schedule(attention(), tiny(), ScheduleOptions(fusion="none", passes=("inline_scalars",)))
    assert illegal(plan) == []
    assert any(node.name == "q_split" for group in plan.groups for node in group.nodes)
    with pytest.raises(ConfigError, match="no pass of schedule is called 'compos'") as caught:
        schedule(attention(), tiny(), ScheduleOptions(passes=("compos",)))
    assert "'compose'" in str(caught.value)


def test_awkward_graphs() -> None:
    e = {"i": 0, "j": 3}
    empty = make_graph({"x": (0, 3)}, [("y[i, j] = exp(x[i, j])", e), ("z[j] = sum(i, y[i, j])", e)], ["z"])
    assert run_plan(schedule(empty, tiny()), {"x": np.zeros((0, 3), np.float32)})["z"].tolist() == [0, 0, 0]
    constant = make_graph({"x": (2,)}, [("y[i] = c[i] * 2.0", {"i": 2})], ["y"], {"c": (2,)})
    plan = schedule(constant, tiny())
    assert [group.name for group in plan.groups] == ["y"], "an output is computed when the model runs"
    np.testing.assert_allclose(run_plan(plan, {"x": np.zeros(2, np.float32)})["y"], values_of(constant)["y"])
    through = make_graph({"x": (2,)}, [("y[i] = x[i]", {"i": 2})], ["y", "x"])
    found = run_plan(schedule(through, tiny()), {"x": np.array([1, 2], np.float32)})
    assert found["y"].tolist() == found["x"].tolist() == [1, 2]


def test_floating_point_numbers_need_a_unit_for_them() -> None:
    graph = make_graph({"x": (2,)}, [("y[i] = x[i] * 2.0", {"i": 2})], ["y"])
    integers = tuple(unit.model_copy(update={"inputs": ("i8", "i8")}) for unit in tiny().compute)
    with pytest.raises(UnsupportedError, match="no compute unit for floating-point numbers .*, node y computes f32"):
        schedule(graph, tiny().model_copy(update={"compute": integers}))
    halves = tuple(unit.model_copy(update={"inputs": ("f16", "f16")}) for unit in tiny().compute)
    assert schedule(graph, tiny().model_copy(update={"compute": (*integers, *halves)})).groups
    moved = make_graph({"x": (2,)}, [("y[i] = x[1 - i]", {"i": 2})], ["y"])
    assert schedule(moved, tiny().model_copy(update={"compute": integers})).groups


def test_schedule_does_not_know_tvm() -> None:
    program = "import sys, tilec.scheduler; sys.exit(any(m.split('.')[0].startswith('tvm') for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_tensors_of_a_plan_are_those_it_uses() -> None:
    plan = planned("convolutions")
    used = {t for g in plan.groups for n in g.nodes for t in (*operands(n.expr), n.name)}
    used |= {t for n in plan.prepared for t in (*operands(n.expr), n.name)}
    used |= {port.tensor for port in (*plan.inputs, *plan.outputs)}
    assert set(plan.tensors) == used
