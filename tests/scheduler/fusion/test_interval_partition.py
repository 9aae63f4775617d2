"""runs: the best cut of an order of parts, the same however many processes look for it."""

from dataclasses import dataclass, field, replace
from math import inf
from unittest import mock

import pytest
from scheduler.graphs import make_graph
from scheduler.models import attention
from scheduler.running import device, problem_of, tiny

from tilec.ir.graph import Graph
from tilec.ir.plan import Refusal
from tilec.scheduler.fusion import interval_partition as searching
from tilec.scheduler.fusion.group_costs import GroupCosts
from tilec.scheduler.fusion.interval_partition import partition_intervals
from tilec.scheduler.fusion.partition import PartitionGroups, partition_parts
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.parallel import work_partition
from tilec.scheduler.refusals import refusal
from tilec.scheduler.schedule import schedule
from tilec.scheduler.target_model import target_model_of
from tilec.scheduler.tiling.task_tiles import FirstLook, LookEffort

TINY = target_model_of(tiny())


def chain(count: int) -> Graph:
    """Softmaxes of softmaxes, no two of the same width."""
    nodes: list[tuple[str, dict[str, int | str]]] = []
    for n in range(count):
        e: dict[str, int | str] = {"s": 8, "n": 6 + n, "k": 7 + n}
        nodes += [
            (f"top{n}[s] = max(n, x{n}[s, n])", e),
            (f"e{n}[s, n] = exp(x{n}[s, n] - top{n}[s])", e),
            (f"total{n}[s] = sum(n, e{n}[s, n])", e),
            (f"p{n}[s, n] = e{n}[s, n] / total{n}[s]", e),
            (f"x{n + 1}[s, k] = sum(n, p{n}[s, n] * w{n}[n, k])", e),
        ]
    shapes = {"x0": (8, 6)} | {f"w{n}": (6 + n, 7 + n) for n in range(count)}
    return make_graph(shapes, nodes, [f"x{count}"])


@dataclass(frozen=True)
class Priced(GroupCosts):
    """Four parts, each reading the one before it; the first two stay together and are too large without the third."""

    def lower_bound(self, members: tuple[int, ...]) -> float | Refusal:
        return self.cost(members)

    def cost(self, members: tuple[int, ...], limit: float = inf) -> float | Refusal:
        assert limit > 0
        return refusal("", "", "outputs-differ") if members == (0, 1) else float(len(members))


def test_runs_that_begin_behind_what_cannot_be_a_group_are_not_tried() -> None:
    parts = [(f"t{n + 1}[s] = exp(t{n}[s])", {"s": 8}) for n in range(4)]
    graph = make_graph({"t0": (8,)}, parts, ["t4"])
    problem = replace(problem_of(graph, TINY), parts=tuple((node,) for node in graph.nodes))
    vars(problem)["together"] = frozenset({0, 1})
    assert partition_intervals(Priced(problem, 0.99), 16) == ((0, 1, 2), (3,))


@dataclass(frozen=True)
class Expected(GroupCosts):
    """Six parts of ten each, of which all together take six less, others 0.1; groups cost what first looks say."""

    calls: list[tuple[int, ...]] = field(default_factory=list)

    def lower_bound(self, members: tuple[int, ...]) -> float | Refusal:
        return 0.0

    def cost(self, members: tuple[int, ...], limit: float = inf) -> float | Refusal:
        self.calls.append(members)
        return 10.0 * len(members) - (6 if len(members) == 6 else 0.1)

    def look(self, members: tuple[int, ...]) -> FirstLook:
        cost = self.cost(members)
        self.calls.pop()
        assert isinstance(cost, float)
        return FirstLook(0, cost, 0.0)


def test_close_looks_tell_what_others_of_the_same_final_part_come_to() -> None:
    parts = [(f"t{n + 1}[s] = exp(t{n}[s])", {"s": 8}) for n in range(6)]
    graph = make_graph({"t0": (8,)}, parts, ["t6"])
    problem = replace(problem_of(graph, TINY), parts=tuple((node,) for node in graph.nodes))
    close: dict[float, int] = {}
    for spread in (1.0, 0.01):
        costs = Expected(problem, 0.99)
        with (
            mock.patch.object(searching, "look_effort", return_value=LookEffort(4, 0.7, spread)),
            mock.patch.object(FusionProblem, "look", side_effect=costs.look),
            mock.patch.object(FusionProblem, "joins", return_value=True),
        ):
            assert partition_intervals(costs, 16) == (tuple(range(6)),)
        close[spread] = sum(len(members) > 1 and members[-1] == 5 for members in costs.calls)
    assert close == {1.0: 5, 0.01: 2}


def test_groups_that_cost_nothing_tell_nothing_of_others() -> None:
    parts = [(f"t{n + 1}[s] = exp(t{n}[s])", {"s": 8}) for n in range(6)]
    problem = problem_of(make_graph({"t0": (8,)}, parts, ["t6"]), TINY)
    problem = replace(problem, parts=tuple((node,) for node in problem.graph.nodes))
    with (
        mock.patch.object(FusionProblem, "look", return_value=FirstLook(0, 0.0, 0.0)),
        mock.patch.object(FusionProblem, "joins", return_value=True),
        mock.patch.object(GroupCosts, "lower_bound", return_value=0.0),
        mock.patch.object(GroupCosts, "cost", side_effect=lambda members, limit=inf: float(len(members) == 1)),
    ):
        assert partition_intervals(GroupCosts(problem, 0.99), 16) == (tuple(range(6)),)


@pytest.mark.slow_cases("graph0-a100")
@pytest.mark.parametrize(
    ("graph", "name"),
    [
        (attention(), "a100"),
        (chain(4), "tiny"),
        pytest.param(chain(3), "zen5-avx512", marks=pytest.mark.slow),
    ],
)
def test_plans_are_the_same_with_any_number_of_processes(graph: Graph, name: str) -> None:
    spec = tiny() if name == "tiny" else device(name)
    made = []
    for count in (1, 3):
        with (
            mock.patch.object(searching, "process_count", return_value=count),
            mock.patch.object(work_partition, "MIN_PARTS", 1),
        ):
            made.append(schedule(graph, spec))
    assert made[1:] == made[:-1]


def test_what_other_processes_find_is_not_looked_at_again() -> None:
    graph = chain(6)
    looks = {}
    for count in (1, 3):
        problem = problem_of(graph, TINY)
        original = GroupCosts._cost
        with (
            mock.patch.object(searching, "process_count", return_value=count),
            mock.patch.object(work_partition, "MIN_PARTS", 1),
            mock.patch.object(GroupCosts, "_cost", autospec=True, side_effect=original) as counted,
        ):
            partition_parts(problem, {}, PartitionGroups())
        looks[count] = counted.call_count
    assert looks[3] < 0.8 * looks[1]


def test_a_process_that_dies_changes_nothing() -> None:
    found = []
    for work in (None, mock.Mock(side_effect=MemoryError)):
        costs = GroupCosts(problem_of(chain(3), TINY), 0.99)
        with (
            mock.patch.object(searching, "process_count", return_value=3),
            mock.patch.object(work_partition, "MIN_PARTS", 1),
            mock.patch.object(searching, "_new_costs", work or searching._new_costs),
        ):
            found.append(partition_intervals(costs, 16))
    assert found[0] == found[1]


def test_what_a_group_costs_does_not_depend_on_what_was_tried_before() -> None:
    graph = chain(2)
    fresh, used = (GroupCosts(problem_of(graph, TINY), 0.99) for _ in range(2))
    members = (0, 1)
    cost = used.cost(members)
    assert isinstance(cost, float)
    for limit in (cost * 0.1, cost * 0.9, cost, cost * 2):
        assert used.cost(members, limit) == GroupCosts(fresh.problem, 0.99).cost(members, limit)
