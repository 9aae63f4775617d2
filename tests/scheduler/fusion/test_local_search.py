"""reconsider: nodes leave the registers of a part, and move to a group beside their own, where that gains."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from scheduler.graphs import make_graph
from scheduler.running import device, problem_of

from tests.random_graphs import Model, models
from tilec.ir.expr import operands
from tilec.scheduler.building.group_builder import GroupBuilder
from tilec.scheduler.fusion.group_order import execution_order_of
from tilec.scheduler.fusion.local_search import LocalSearch, local_search
from tilec.scheduler.fusion.partition import Partition, PartitionGroups, partition_parts, separate_parts
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.graph_passes.fuse_registers import computed_nodes, fuse_registers
from tilec.scheduler.state import SearchState
from tilec.scheduler.target_model import target_model_of
from tilec.spec.recipe import ScheduleOptions

ZEN5 = target_model_of(device("zen5-avx512"))
SLOW = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large, HealthCheck.large_base_example)

ROWS = [
    ("squares[s] = sum(k, x[s, k] * x[s, k])", {"s": 5, "k": 32}),
    ("mean[s] = squares[s] / 32", {"s": 5}),
    ("inverse[s] = 1 / sqrt(mean[s] + 1.0)", {"s": 5}),
    ("y[s, n] = x[s, n] * inverse[s]", {"s": 5, "n": 32}),
]


def named(problem: FusionProblem, grouping: Partition) -> list[list[list[str]]]:
    return [[[node.name for node in problem.parts[n]] for n in members] for members in grouping.groups]


def cost(problem: FusionProblem, grouping: Partition) -> float:
    return sum(problem.core_tiles(members)[0].objective for members in grouping.groups)


@pytest.mark.feature("W16")
def test_a_part_falls_apart_inside_its_group() -> None:
    """One vector computes all inverses; beside a sum of one row they would be computed one by one."""
    problem = problem_of(make_graph({"x": (5, 32)}, ROWS, ["y"]), ZEN5)
    before = partition_parts(problem, {}, PartitionGroups())
    assert named(problem, before) == [[["squares", "mean", "inverse"], ["y"]]]
    after, grouping = local_search(problem, before, {}, LocalSearch())
    assert named(after, grouping) == [[["squares"], ["mean", "inverse"], ["y"]]]
    assert cost(after, grouping) < cost(problem, before) * 0.95


@pytest.mark.feature("W16")
def test_nodes_move_to_the_group_that_reads_them() -> None:
    """Where launches cost nothing a copy of what is read costs; the group that reads it needs no copy."""
    domain = {"s": 256, "n": 512}
    nodes = [
        ("a[s] = sum(n, x[s, n])", domain),
        ("b[s, n] = exp(a[s] * x[s, n])", domain),
        ("c[s, n] = b[s, n] + b[s, n]", domain),
        ("d[n, s] = c[s, n] * 2", domain),
    ]
    problem = problem_of(make_graph({"x": (256, 512)}, nodes, ["d"]), ZEN5)
    apart = separate_parts(problem, {})
    after, grouping = local_search(problem, apart, {}, LocalSearch())
    assert cost(after, grouping) < cost(problem, apart)
    assert len(grouping.groups) < len(apart.groups)


@pytest.mark.feature("W16")
def test_footprint_and_less_fusion_stay() -> None:
    graph = make_graph({"x": (5, 32)}, ROWS, ["y"])
    for options, applies in (
        (ScheduleOptions(), True),
        (ScheduleOptions(objective="footprint"), False),
        (ScheduleOptions(fusion="register"), False),
    ):
        state = SearchState(problem_of(graph, ZEN5), options, (), GroupBuilder(graph)).with_parts(
            fuse_registers(graph).parts, {}
        )
        assert LocalSearch().applies(state) == applies


@pytest.mark.feature("W16")
@settings(max_examples=25, deadline=None, derandomize=True, phases=[Phase.generate], suppress_health_check=SLOW)
@given(models())
def test_groups_stay_whole_and_never_cost_more(model: Model) -> None:
    problem, refused = problem_of(model.graph, ZEN5), fuse_registers(model.graph).refused
    for before in (separate_parts(problem, refused), partition_parts(problem, refused, PartitionGroups())):
        after, grouping = local_search(problem, before, refused, LocalSearch())
        assert cost(after, grouping) <= cost(problem, before) * (1 + 1e-9)
        nodes = [node.name for members in grouping.groups for n in members for node in after.parts[n]]
        assert sorted(nodes) == sorted(node.name for node in computed_nodes(model.graph))
        assert execution_order_of([(after, members) for members in grouping.groups]) == list(
            range(len(grouping.groups))
        )
        home = {node.name: n for n, members in enumerate(grouping.groups) for m in members for node in after.parts[m]}
        between = {
            f"{t}->{node.name}"
            for part in after.parts
            for node in part
            for t in operands(node.expr)
            if home.get(t, home[node.name]) != home[node.name]
        }
        assert between == set(grouping.refused), "every edge between groups has its reason"


@pytest.mark.feature("W41")
def test_changes_of_parts_that_are_alike_are_tried_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is looked at does not grow with the number of slices that are treated alike."""
    original, looks = FusionProblem.look, [0]

    def look(self: FusionProblem, members: Sequence[int]) -> tuple[int, float]:
        looks[0] += 1
        return original(self, members)

    def counted(slices: int) -> int:
        domain = {"s": 64, "m": 8}
        products = [(f"p{n}[s, m] = sum(k, x[s, {n}, k] * w[k, m])", {**domain, "k": 8}) for n in range(slices)]
        sums = [(f"q{n}[s, m] = p{n}[s, m] + b[m]", domain) for n in range(slices)]
        whole = (f"y[s, m] = {' + '.join(f'q{n}[s, m]' for n in range(slices))}", domain)
        nodes = [*(node for pair in zip(products, sums, strict=True) for node in pair), whole]
        graph = make_graph({"x": (64, slices, 8)}, nodes, ["y"], {"w": (8, 8), "b": (8,)})
        problem = problem_of(graph, ZEN5)
        before = partition_parts(problem, {}, PartitionGroups())
        assert [len(members) for members in before.groups] == [slices]
        looks[0] = 0
        local_search(problem, before, {}, LocalSearch())
        return looks[0]

    monkeypatch.setattr(FusionProblem, "look", look)
    assert counted(12) == counted(6)


def test_cuts_in_a_group_of_many_parts_are_tried_beside_their_neighbours_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that all differ: the whole group is looked at for those cuts alone that gain where they are."""
    original, looks = FusionProblem.look, [0]

    def look(self: FusionProblem, members: Sequence[int]) -> tuple[int, float]:
        looks[0] += len(members) > 6
        return original(self, members)

    count = 10
    nodes = [(f"p{n}[s, m] = sum(k, x[s, k] * w{n}[k, m])", {"s": 64, "m": 8, "k": 8 + n}) for n in range(count)]
    sums = [(f"q{n}[s, m] = p{n}[s, m] + b[m]", {"s": 64, "m": 8}) for n in range(count)]
    whole = (f"y[s, m] = {' + '.join(f'q{n}[s, m]' for n in range(count))}", {"s": 64, "m": 8})
    weights = {f"w{n}": (8 + n, 8) for n in range(count)}
    every = [*(node for pair in zip(nodes, sums, strict=True) for node in pair), whole]
    problem = problem_of(make_graph({"x": (64, 32)}, every, ["y"], {**weights, "b": (8,)}), ZEN5)
    before = partition_parts(problem, {}, PartitionGroups())
    monkeypatch.setattr(FusionProblem, "look", look)
    plans, seen = [], []
    for near in (3, 100):
        looks[0] = 0
        plans.append(local_search(problem, before, {}, LocalSearch(near=near)))
        seen.append(looks[0])
    assert plans[0][1] == plans[1][1]
    assert seen[0] < seen[1] / 2


def test_cuts_of_a_long_part_are_tried_by_what_is_beside_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is looked at does not grow with a chain of the same few functions."""
    original, looks = FusionProblem.look, [0]

    def look(self: FusionProblem, members: Sequence[int]) -> tuple[int, float, float]:
        looks[0] += 1
        return original(self, members)

    def counted(length: int) -> int:
        functions = ("exp", "tanh", "abs")
        nodes = [(f"t{n + 1}[s, m] = {functions[n % 3]}(t{n}[s, m])", {"s": 64, "m": 8}) for n in range(length)]
        graph = make_graph({"t0": (64, 8)}, nodes, [f"t{length}"])
        problem = replace(problem_of(graph, ZEN5), parts=(graph.nodes,))
        looks[0] = 0
        local_search(problem, separate_parts(problem, {}), {}, LocalSearch())
        return looks[0]

    monkeypatch.setattr(FusionProblem, "look", look)
    assert counted(60) == counted(30) > 0
