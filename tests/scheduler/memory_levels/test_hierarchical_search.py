"""nest: spans of every explicit level below a core's around the groups of a core's level."""

from functools import cache
from unittest import mock

import numpy as np
import pytest
from scheduler.graphs import make_graph
from scheduler.memory_levels.test_level_groups import chain, hourglass
from scheduler.running import device, illegal, run_plan

from tilec.errors import ConfigError
from tilec.ir.expr import operands
from tilec.ir.graph import Graph
from tilec.ir.lifetimes import statements
from tilec.ir.plan import Plan
from tilec.ir.program import Allocate
from tilec.lower.checks.check_plan import overflows
from tilec.lower.lowering import lower
from tilec.scheduler import schedule
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.memory_levels import hierarchical_search
from tilec.scheduler.memory_levels.hierarchical_search import upper_levels
from tilec.scheduler.refusals import REASONS
from tilec.scheduler.target_model import target_model_of
from tilec.spec.device import DeviceSpec
from tilec.spec.recipe import ScheduleOptions


@cache
def small(name: str, below: tuple[int, ...], core: int) -> DeviceSpec:
    """A packaged device whose explicit levels up to the core's are small, each with a capacity of its own; pages and
    segments would be too coarse for them."""
    spec = device(name)
    sizes = dict(zip(range(1, spec.index(spec.core_level)), below, strict=False)) | {spec.index(spec.core_level): core}
    levels = tuple(
        level.model_copy(update={"capacity": sizes[i], "pool": None, "units": min(level.units, 4), "alignment": 4})
        if i in sizes and level.managed == "explicit"
        else level
        for i, level in enumerate(spec.levels)
    )
    return spec.model_copy(update={"levels": levels})


def moved(plan: Plan, level: str) -> int:
    """Bytes that a level reads from and writes to the one below."""
    return sum(int(c.value) for g in plan.groups for c in (g.cost.read[level], g.cost.written[level]))  # type: ignore[union-attr]


def agrees(plan: Plan, graph: Graph, other: Plan) -> None:
    """Both plans are legal, fit and compute the same."""
    rng = np.random.default_rng(3)
    shapes = {p.name: [e.value for e in graph.tensors[p.tensor].shape] for p in graph.inputs}  # type: ignore[union-attr]
    feeds = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    for each in (plan, other):
        assert illegal(each) == []
        assert [o for g in each.groups for o in overflows(lower(g, g.variants[0], each))] == []
    expected = run_plan(other, feeds)
    for name, array in run_plan(plan, feeds).items():
        np.testing.assert_allclose(array, expected[name], rtol=1e-4, atol=1e-6 * float(np.abs(array).max()))


@pytest.mark.quick_cases("chain")
@pytest.mark.feature("W10")
@pytest.mark.parametrize(
    ("graph", "name", "level"),
    [(chain(2, 12), "v100-16g-host", "dram"), (hourglass(16), "ipu-mk2-host", "chip")],
    ids=["chain", "hourglass"],
)
def test_connections_in_the_middle_spare_the_lowest_level(graph: Graph, name: str, level: str) -> None:
    spec = small(name, (10_000,), 4_000)
    plan, closed = (
        schedule(graph, spec, ScheduleOptions(objective="traffic", closed=names)) for names in ((), (level,))
    )
    agrees(plan, graph, closed)
    assert moved(plan, level) < 0.7 * moved(closed, level)
    assert level in {connected for group in plan.groups for connected in group.connect.values()}
    assert level not in {connected for group in closed.groups for connected in group.connect.values()}
    assert level in plan.groups[-1].variants[0].tiles
    assert {refusal.code for refusal in closed.refusals} == {"closed"}
    assert closed.refusals[0].numbers == {"level": level}
    assert {refusal.code for refusal in plan.refusals} <= REASONS.keys() - {"closed"}


@pytest.mark.slow
@pytest.mark.feature("W10")
def test_two_levels_below_the_core() -> None:
    """What a level further up is cut into lies inside the tiles of the level below."""
    graph = chain(2, 8)
    spec = small("a100-ssd", (6_000, 3_600), 3_000)
    plan, closed = (
        schedule(graph, spec, ScheduleOptions(objective="traffic", closed=names)) for names in ((), ("host", "dram"))
    )
    agrees(plan, graph, closed)
    assert {"host", "dram"} <= set(plan.groups[-1].variants[0].tiles)
    assert plan.groups[-1].connect == {"y0->y1": "dram"}
    assert moved(plan, "host") < 0.7 * moved(closed, "host")


@pytest.mark.feature("W30")
def test_a_pool_is_shared_with_the_level_below() -> None:
    target = target_model_of(device("ipu-mk2-host"))
    whole, some = upper_levels(target), upper_levels(target, 1472 * 100_000)
    assert (whole.core, len(whole.levels), whole.levels[0].capacity) == (1, len(target.levels) - 1, None)
    if target.levels[target.core].pool is not None:
        assert some.capacity == whole.capacity - 100_000


def test_levels_that_cannot_be_closed_are_refused() -> None:
    graph = chain(1, 8)
    with pytest.raises(ConfigError, match="no level 'drum'") as caught:
        schedule(graph, device("v100-16g-host"), ScheduleOptions(closed=("drum",)))
    assert "Did you mean 'dram'?" in str(caught.value)
    with pytest.raises(ConfigError, match="It has none"):
        schedule(graph, device("avx2"), ScheduleOptions(closed=("l2",)))


@pytest.mark.feature("W41")
def test_layers_that_are_alike_are_decided_once_below_a_core_too() -> None:
    """Also by rivals: a core's groups are searched and lowered as often for six layers as for four."""

    def looks(layers: int) -> tuple[int, int]:
        with (
            mock.patch.object(
                FusionProblem, "_search_tiles", autospec=True, side_effect=FusionProblem._search_tiles
            ) as found,
            mock.patch.object(hierarchical_search, "overflows", side_effect=overflows) as counted,
        ):
            schedule(chain(layers, 16), device("v100-16g-host"), ScheduleOptions(closed=("dram",)))
        return found.call_count, counted.call_count

    assert looks(6) == looks(4)


@pytest.mark.feature("W10", "W15")
def test_an_edge_is_connected_at_the_level_that_holds_both_ends() -> None:
    """A product and its Relu share registers, sums of rows and what divides by them a core's level; the next product
    takes columns one after the other out of the device's memory. Tensors never go below the level of their edges."""
    e: dict[str, int | str] = {"m": 64, "n": 16, "k": 16, "p": 64}
    nodes = [
        ("a[m, n] = sum(k, x[m, k] * w[k, n])", e),
        ("b[m, n] = maximum(a[m, n], 0.0)", e),
        ("s[m] = sum(n, b[m, n])", e),
        ("c[m, n] = b[m, n] / s[m]", e),
        ("d[m, p] = sum(n, c[m, n] * v[n, p])", e),
        ("y[m, p] = maximum(d[m, p], 0.0)", e),
    ]
    graph = make_graph({"x": (64, 16)}, nodes, ["y"], {"w": (16, 16), "v": (16, 64)})
    spec = small("v100-16g-host", (10_000,), 4_000)
    plan = schedule(graph, spec, ScheduleOptions(objective="traffic"))
    (group,) = plan.groups
    core = dict.fromkeys(("b->s", "b->c", "s->c"), "smem")
    assert group.connect == {"a->b": "reg", **core, "c->d": "dram", "d->y": "reg"}
    held = [s.buffer for s in statements(lower(group, group.variants[0], plan).body) if isinstance(s, Allocate)]
    levels = {tensor: {buffer.level for buffer in held if buffer.tensor == tensor} for tensor in "abscdy"}
    assert levels["c"] == {"dram", "reg"}, "units store it themselves, and nothing in a core's level reads it"
    assert levels["a"] == levels["d"] == {"reg"}
    assert levels["s"] == levels["b"] == {"smem", "reg"}


@pytest.mark.quick_cases("ipu-mk2-host")
@pytest.mark.parametrize("name", ["v100-16g-host", "ipu-mk2-host"])
def test_every_edge_is_connected_or_refused_by_the_level_that_cuts_it(name: str) -> None:
    plan = schedule(hourglass(16), small(name, (3_000,), 2_000), ScheduleOptions(objective="traffic"))
    made = {node.name for group in plan.groups for node in group.nodes}
    edges = {f"{t}->{n.name}" for g in plan.groups for n in g.nodes for t in operands(n.expr) if t in made}
    connected = {edge for group in plan.groups for edge in group.connect}
    assert edges - connected
    assert {reason.edge for reason in plan.refusals} == edges - connected
    assert {reason.code for reason in plan.refusals} <= set(REASONS)
