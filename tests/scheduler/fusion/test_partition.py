"""rows and partition: parts share a core's level where that is predicted to pay, and every refusal has its numbers."""

from dataclasses import replace

import pytest
from scheduler.graphs import make_graph
from scheduler.models import attention, convolutions
from scheduler.running import device, problem_of, tiny

from tilec.ir.graph import Graph
from tilec.ir.plan import PlanLevel
from tilec.scheduler.fusion.group_costs import GroupCosts, cost_numbers, roofline
from tilec.scheduler.fusion.local_search import LocalSearch, local_search
from tilec.scheduler.fusion.partition import (
    Partition,
    PartitionGroups,
    merge_groups,
    partition_parts,
    separate_parts,
)
from tilec.scheduler.graph_passes.compose import compose
from tilec.scheduler.graph_passes.fuse_registers import fuse_registers
from tilec.scheduler.graph_passes.rematerialize import rematerialize
from tilec.scheduler.memory_levels.level_problem import LevelProblem
from tilec.scheduler.refusals import REASONS, RewrittenGraph
from tilec.scheduler.target_model import TargetModel, target_model_of
from tilec.scheduler.tiling.common_iterators import common_iterators
from tilec.scheduler.tiling.tiling_problem import Objective

E = {"s": 8, "n": 6, "k": 5}
TARGET = target_model_of(tiny())


def with_capacity(size: int) -> TargetModel:
    core = replace(TARGET.levels[TARGET.core], capacity=size)
    return replace(TARGET, levels=(TARGET.levels[0], core, TARGET.levels[2]))


def joined(graph: Graph, target: TargetModel = TARGET, objective: Objective = "time") -> Partition:
    return partition_parts(problem_of(graph, target, objective), fuse_registers(graph).refused, PartitionGroups())


def names(graph: Graph, grouping: Partition) -> list[list[list[str]]]:
    parts = fuse_registers(graph).parts
    return [[[node.name for node in parts[n]] for n in group] for group in grouping.groups]


SOFTMAX = [
    ("top[s] = max(n, x[s, n])", E),
    ("e[s, n] = exp(x[s, n] - top[s])", E),
    ("total[s] = sum(n, e[s, n])", E),
    ("y[s, n] = e[s, n] / total[s]", E),
]


@pytest.mark.feature("B17", "W16")
def test_softmax_is_one_group() -> None:
    graph = make_graph({"x": (8, 6)}, SOFTMAX, ["y"])
    grouping = joined(graph)
    assert names(graph, grouping) == [[["top"], ["e"], ["total"], ["y"]]]
    assert not grouping.refused


@pytest.mark.feature("W16", "A01")
def test_products_join_what_reads_them() -> None:
    graph = rematerialize(compose(RewrittenGraph(attention(tokens=8)))).graph
    grouping = joined(graph, target_model_of(device("a100")), "traffic")
    home = {n: i for i, group in enumerate(names(graph, grouping)) for part in group for n in part}
    assert home["masked"] == home["top"] == home["p"] == home["mix"], "scores never leave the chip"


@pytest.mark.feature("W17", "W24")
def test_rows_that_do_not_fit_stay_apart() -> None:
    graph = make_graph({"x": (8, 60)}, [(text, {**E, "n": 60}) for text, _ in SOFTMAX], ["y"])
    grouping = joined(graph, with_capacity(64))
    assert grouping.refused["e->total"].code == "capacity"
    assert grouping.refused["e->total"].numbers["capacity"] == 32, "a plan counts on half of a cache"
    assert int(grouping.refused["e->total"].numbers["bytes"]) > 32


@pytest.mark.feature("W16", "W23")
def test_a_gain_that_is_too_small_is_refused_with_its_limit() -> None:
    problem = problem_of(attention(), TARGET)
    assert cost_numbers(2e-6, 1e-6, problem, 0.99) == {"joined": 2_000_000, "apart": 1_000_000}
    assert cost_numbers(0.995e-6, 1e-6, problem, 0.99) == {"joined": 995_000, "apart": 1_000_000, "limit": 990_000}


def test_fusion_that_does_not_pay_is_refused_with_both_times() -> None:
    e = {"s": 512, "n": 512, "k": 512, "t": 512}
    nodes = [("p[s, n] = sum(k, x[s, k] * w[k, n])", e), ("y[s, t] = sum(n, p[s, n] * v[n, t])", e)]
    graph = make_graph({"x": (512, 512), "w": (512, 512), "v": (512, 512)}, nodes, ["y"])
    grouping = joined(graph, target_model_of(device("zen5-avx512")))
    reason = grouping.refused["p->y"]
    assert reason.code == "slower"
    assert int(reason.numbers["joined"]) >= int(reason.numbers["apart"]) * 0.98


@pytest.mark.slow_cases("attention")
@pytest.mark.feature("W16")
@pytest.mark.parametrize(
    ("graph", "target"),
    [(attention(tokens=8), with_capacity(256)), (convolutions(), TARGET)],
    ids=["attention", "convolutions"],
)
def test_every_edge_between_groups_says_why_nothing_is_known_before(graph: Graph, target: TargetModel) -> None:
    """The search tells by itself, in figures of its own, why an edge between two of its groups is not connected."""
    problem = problem_of(graph, target)
    single = partition_parts(problem, {}, PartitionGroups())
    for parts, found in ((problem, single), local_search(problem, single, {}, LocalSearch())):
        home = {n: g for g, members in enumerate(found.groups) for n in members}
        edges = [(tensor, name, n) for n, edges in enumerate(parts.edges) for tensor, name in edges]
        apart = {f"{tensor}->{name}" for tensor, name, n in edges if home[parts.home[tensor]] != home[n]}
        assert apart
        assert found.refused.keys() == apart
        for edge, reason in found.refused.items():
            assert reason.edge == edge
            assert reason.code in ("slower", "capacity", "cycle", "length", "outputs-differ")
            assert bool(reason.numbers) is (reason.code != "cycle")


@pytest.mark.feature("A05")
def test_groups_of_one_part_are_merged_until_nothing_gains() -> None:
    """One look at each of the 18 parts of attention leaves five groups, further looks two."""
    problem, options = problem_of(attention(tokens=8), with_capacity(4096)), PartitionGroups()
    costs = GroupCosts(problem, options.gain)
    groups = merge_groups(costs, [(n,) for n in range(len(problem.parts))], options)
    assert len(groups) < len(problem.parts) / 4
    assert merge_groups(costs, groups, options) == groups


def test_every_reason_is_in_the_closed_list() -> None:
    graph = rematerialize(compose(RewrittenGraph(attention(tokens=8)))).graph
    refused = joined(graph, with_capacity(256)).refused
    assert refused
    assert {r.code for r in refused.values()} <= set(REASONS)
    assert all(r.edge == edge for edge, r in refused.items())


def test_independent_reductions_of_one_result_join_with_it() -> None:
    nodes = [
        ("low[s] = min(n, x[s, n])", E),
        ("high[s] = max(n, x[s, n])", E),
        ("y[s, n] = (x[s, n] - low[s]) / (high[s] - low[s])", E),
    ]
    graph = make_graph({"x": (8, 6)}, nodes, ["y"])
    assert names(graph, joined(graph)) == [[["low"], ["high"], ["y"]]]


@pytest.mark.feature("W06")
def test_results_that_do_not_lead_to_one_stay_apart() -> None:
    nodes = [
        ("a[s] = sum(n, x[s, n])", E),
        ("b[s, n] = x[s, n] * a[s]", E),
        ("c[n] = sum(s, b[s, n])", E),
        ("d[s] = max(n, b[s, n])", E),
    ]
    graph = make_graph({"x": (8, 6)}, nodes, ["c", "d"])
    groups = names(graph, joined(graph))
    assert all(not ({"c", "d"} <= {n for part in group for n in part}) for group in groups)


@pytest.mark.feature("A07")
def test_a_path_through_another_group_keeps_groups_apart() -> None:
    e = {"s": 8, "n": 6, "k": 6, "m": 6}
    nodes = [
        ("a[s] = sum(n, x[s, n])", e),
        ("b[s, n] = x[s, n] * a[s]", e),
        ("c[s, m] = sum(k, b[s, k] * w[k, m])", e),
        ("d[s] = max(m, c[s, m])", e),
        ("y[s, n] = b[s, n] + d[s]", e),
    ]
    graph = make_graph({"x": (8, 6), "w": (6, 6)}, nodes, ["y"])
    for objective in ("time", "traffic", "footprint"):
        grouping = joined(graph, objective=objective)  # type: ignore[arg-type]
        order = [name for group in names(graph, grouping) for part in group for name in part]
        assert order.index("a") < order.index("b") < order.index("c") < order.index("d") < order.index("y")


@pytest.mark.feature("W49")
def test_separate_keeps_parts() -> None:
    graph = make_graph({"x": (8, 6)}, SOFTMAX, ["y"])
    assert separate_parts(problem_of(graph, TARGET), {}).groups == tuple(
        (n,) for n in range(len(fuse_registers(graph).parts))
    )


@pytest.mark.feature("W16", "W48")
def test_a_group_has_as_many_parts_as_gain_and_fit() -> None:
    """Rows that pass through 28 reductions and back, on a level that holds them."""
    problem = problem_of(layers(14), with_capacity(4096))
    assert len(problem.parts) == 28
    assert partition_parts(problem, {}, PartitionGroups()).groups == (tuple(range(28)),)


def layers(count: int) -> Graph:
    """Rows divided by their sums, again and again."""
    nodes: list[tuple[str, dict[str, int | str]]] = []
    for n in range(count):
        nodes.append((f"a{n}[s] = sum(n, x{n}[s, n])", {**E}))
        nodes.append((f"x{n + 1}[s, n] = x{n}[s, n] / a{n}[s]", {**E}))
    return make_graph({"x0": (8, 6)}, nodes, [f"x{count}"])


@pytest.mark.feature("W41")
def test_layers_that_are_alike_are_decided_once() -> None:
    nodes = []
    for layer in range(6):
        x, y = ("x" if layer == 0 else f"y{layer - 1}"), f"y{layer}"
        for text, sizes in SOFTMAX:
            for old in ("top", "total", "e"):
                text = text.replace(f"{old}[", f"{old}{layer}[")
            nodes.append((text.replace("y[", f"{y}[").replace("x[", f"{x}[").replace(f"ma{x}[", "max["), sizes))
    graph = make_graph({"x": (8, 6)}, nodes, ["y5"])
    problem = problem_of(graph, TARGET)
    partition_parts(problem, {}, PartitionGroups())
    assert len({each.number for each in problem.descriptions}) == 4


@pytest.mark.feature("W41")
@pytest.mark.parametrize("kind", ["avx2", "a100"])
def test_quantised_layers_are_alike_whatever_their_scales_and_zero_points(kind: str) -> None:
    e = {"s": 8, "n": 6}
    nodes, x = [], "x"
    for layer in range(5):
        real, total, y = f"real{layer}", f"total{layer}", f"y{layer}"
        nodes.append((f"{real}[s, n] = f32(i32({x}[s, n]) - {7 + layer}) * {0.25 + layer}", e))
        nodes.append((f"{total}[s] = sum(n, {real}[s, n])", e))
        nodes.append((f"{y}[s, n] = u8(round({real}[s, n] / {total}[s] / {1.5 + layer}) + {3.0 + layer})", e))
        x = y
    graph = make_graph({"x": (8, 6)}, nodes, ["y4"], ttypes={"x": "u8"})
    problem = problem_of(graph, target_model_of(device(kind)))
    kinds = "the first, sums, quotients with the next layer's numbers, the last"
    assert len(problem.parts) == 11
    assert len({each.number for each in problem.descriptions}) == 4, kinds
    levels = LevelProblem(problem.parts, graph, problem.target, 1, problem.numbers, "time")
    assert len({form.number for form in levels.forms}) == 4, kinds


@pytest.mark.feature("W06")
def test_rows_are_leading_iterators_that_all_nodes_share() -> None:
    graph = make_graph({"x": (8, 6)}, SOFTMAX, ["y"])
    rows = common_iterators(graph.nodes)
    assert rows.iterators == ("s",)
    assert rows.shared["s"] == {"top": "s", "e": "s", "total": "s", "y": "s"}
    columns = make_graph({"x": (8, 6)}, [("r[n] = sum(s, x[s, n])", E), ("y[s, n] = x[s, n] - r[n]", E)], ["y"])
    assert common_iterators(columns.nodes).iterators == (), "columns are no runs of memory"
    shifted = make_graph(
        {"x": (9, 6)}, [("a[s, n] = exp(x[s, n])", {"s": 9, "n": 6}), ("y[s, n] = a[s, n] + a[s + 1, n]", E)], ["y"]
    )
    assert common_iterators(shifted.nodes).iterators == ()


def test_a_level_without_capacity_holds_everything() -> None:
    unbounded = replace(TARGET, levels=(TARGET.levels[0], PlanLevel("l2", None, 4), TARGET.levels[2]))
    graph = make_graph({"x": (8, 6)}, SOFTMAX, ["y"])
    assert len(joined(graph, unbounded).groups) == 1


def test_what_a_group_cannot_fall_short_of_counts_what_it_reads_of_a_table() -> None:
    """Eight of many rows; all of them would take longer than the two parts apart."""
    e = {"s": 8, "n": 16}
    nodes = [("top[s] = max(n, x[s, n])", e), ("y[s, n] = x[s, n] - top[s] + t[s + 5, n]", e)]
    graph = make_graph({"x": (8, 16), "t": (100_000, 16)}, nodes, ["y"])
    problem = problem_of(graph, TARGET)
    members = tuple(range(len(problem.parts)))
    assert problem.elements(members)["t"] == 8 * 16
    assert roofline(problem, members) <= problem.core_tiles(members)[0].objective
