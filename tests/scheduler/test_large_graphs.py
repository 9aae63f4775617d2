"""Chains of hundreds of nodes: limits that keep the search linear in them, and the progress that it reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from scheduler.graphs import assert_same, make_graph
from scheduler.running import device

from tilec.ir.graph import Graph
from tilec.ir.intervals import Candidates
from tilec.ir.plan import Refusal
from tilec.scheduler import schedule
from tilec.scheduler.fusion.group_costs import GroupCosts
from tilec.scheduler.fusion.register_parts import FuseRegisters
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.graph_passes.fuse_registers import fuse_registers
from tilec.scheduler.graph_passes.rematerialize import rematerialize
from tilec.scheduler.refusals import RewrittenGraph
from tilec.scheduler.target_model import target_model_of
from tilec.scheduler.trace import Step
from tilec.spec.recipe import ScheduleOptions


def chain(count: int, end: str = "y[s] = t[s] * 2.0") -> Graph:
    names = ["x", *(f"t{n}" for n in range(count - 1))]
    nodes = [(f"{new}[s] = maximum({old}[s], 0) + 0.5", {"s": 64}) for old, new in pairwise(names)]
    last = end.replace("t[", f"{names[-1]}[")
    return make_graph({"x": (64,)}, [*nodes, (last, {"s": 64})], ["y"])


def test_a_part_ends_after_some_nodes_and_the_edge_behind_it_says_so() -> None:
    graph, most = chain(300), FuseRegisters().max_nodes
    parted = fuse_registers(graph, most)
    assert [len(part) for part in parted.parts] == [most] * (300 // most) + [300 % most]
    assert list(parted.refused.values()) == [
        Refusal(f"t{n - 1}->t{n}", "length", {"nodes": most + 1, "most": most}) for n in range(most, 300, most)
    ]
    problem = FusionProblem(
        graph, parted.parts, target_model_of(device("avx2")), Candidates(), "time", frozenset({"y"})
    )
    costs = GroupCosts(problem, 0.99)
    most_of_group = ScheduleOptions().group_nodes
    assert costs.lower_bound((0, 1, 2, 3, 4)) == Refusal("->", "length", {"nodes": 300, "most": most_of_group})
    assert not isinstance(costs.lower_bound((0, 1)), Refusal)


def test_a_long_chain_is_not_computed_again_by_its_reader() -> None:
    """One expression of all of it would be nested deeper than Python recurses."""
    long, short = (chain(count, "y[()] = sum(s, t[s])") for count in (500, 50))
    assert len(rematerialize(RewrittenGraph(long)).graph.nodes) == 500
    merged = rematerialize(RewrittenGraph(short)).graph
    assert len(merged.nodes) == 1
    assert_same(short, merged)


@dataclass
class Heard:
    """A trace that keeps the progress."""

    progress: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def record(self, step: Step, before: Any, after: Any) -> None:
        """Keep nothing."""

    def advance(self, name: str, done: int, total: int) -> None:
        """Keep the numbers."""
        self.progress.setdefault(name, []).append((done, total))


def test_the_search_reports_how_many_parts_and_groups_it_has_decided() -> None:
    domain = {"m": 64, "n": 64, "k": 64}
    names = ["x", "a", "b", "c"]
    nodes = [(f"{new}[m, n] = sum(k, {old}[m, k] * w[k, n])", domain) for old, new in pairwise(names)]
    heard = Heard()
    plan = schedule(make_graph({"x": (64, 64)}, nodes, ["c"], {"w": (64, 64)}), device("avx2"), trace=heard)
    assert {"split_parts", "partition_groups", "local_search", "legalize_groups", "lower"} <= heard.progress.keys()
    assert heard.progress["partition_groups"][:3] == [(1, 3), (2, 3), (3, 3)]
    assert heard.progress["lower"][-1] == (len(plan.groups), len(plan.groups))
