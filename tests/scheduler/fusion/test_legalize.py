"""exact: on explicit levels every group fits when it is lowered; where no tile does, a group falls apart."""

from dataclasses import replace
from functools import cache
from unittest import mock

import pytest
from scheduler.graphs import make_graph
from scheduler.models import attention, convolutions
from scheduler.running import device, problem_of

from tilec.ir.graph import Graph
from tilec.ir.intervals import Candidates
from tilec.ir.plan import Refusal
from tilec.ir.program import Program
from tilec.lower.checks.check_plan import overflows
from tilec.lower.counts.footprint import footprint
from tilec.lower.lowering import lower
from tilec.scheduler.building.group_builder import GroupBuilder
from tilec.scheduler.fusion import legalize as legalizing
from tilec.scheduler.fusion.legalize import LegalizeGroups, illegality, legalize_groups
from tilec.scheduler.fusion_problem import LOWERED_CANDIDATES, FusionProblem
from tilec.scheduler.graph_passes.fuse_registers import fuse_registers
from tilec.scheduler.refusals import edge_name
from tilec.scheduler.schedule import schedule
from tilec.scheduler.state import GroupSet, SearchState
from tilec.scheduler.target_model import TargetModel, target_model_of
from tilec.scheduler.trace import NO_TRACE
from tilec.spec.recipe import ScheduleOptions


@pytest.mark.quick_cases("convolutions-time")
@pytest.mark.feature("W24")
@pytest.mark.parametrize("objective", ["time", "traffic"])
@pytest.mark.parametrize("graph", [attention(), convolutions()], ids=["attention", "convolutions"])
def test_no_group_overflows_a_level(graph: Graph, objective: str) -> None:
    plan = schedule(graph, device("a100"), ScheduleOptions(objective=objective))  # type: ignore[arg-type]
    for group in plan.groups:
        assert overflows(lower(group, group.variants[0], plan)) == ()


def test_a_tile_whose_places_do_not_fit_gives_way_to_the_next_one() -> None:
    """Buffers start at multiples of 4 KiB: live bytes alone would fit with larger tiles."""
    a100 = device("a100")
    core = a100.index("smem")
    smem = a100.levels[core].model_copy(update={"alignment": 4096, "capacity": 36 << 10})
    coarse = a100.model_copy(update={"levels": (*a100.levels[:core], smem, *a100.levels[core + 1 :])})
    plan = schedule(attention(), coarse, ScheduleOptions())
    for group in plan.groups:
        program = lower(group, group.variants[0], plan)
        assert overflows(program) == ()
        unaligned = tuple(replace(level, alignment=None) for level in program.levels)
        held = footprint(program)["smem"]
        assert held.value % 4096 == 0  # type: ignore[union-attr]
        assert held.value >= footprint(replace(program, levels=unaligned))["smem"].value  # type: ignore[union-attr]


def softmax(target: TargetModel) -> tuple[FusionProblem, GroupBuilder]:
    e = {"s": 4, "n": 200}
    nodes = [
        ("top[s] = max(n, x[s, n])", e),
        ("e[s, n] = exp(x[s, n] - top[s])", e),
        ("total[s] = sum(n, e[s, n])", e),
        ("y[s, n] = e[s, n] / total[s]", e),
    ]
    graph = make_graph({"x": (4, 200)}, nodes, ["y"])
    return FusionProblem(
        graph, fuse_registers(graph).parts, target, Candidates(), "time", frozenset({"y"})
    ), GroupBuilder(graph)


@pytest.mark.feature("W16", "W24")
def test_a_group_that_fits_nowhere_falls_apart_into_the_cheapest_groups() -> None:
    gpu = target_model_of(device("a100"))
    small = replace(gpu, levels=(gpu.levels[0], replace(gpu.levels[1], capacity=1024), gpu.levels[2]))
    problem, builder = softmax(small)
    pieces = legalize_groups([(0, 1, 2, 3)], problem, builder)
    assert [group.members for group in pieces] == [(0,), (1, 2, 3)]
    assert sum(group.tiles[0].seconds for group in pieces) < sum(tile.seconds for tile in problem.singles)
    assert builder.packs == {}


@pytest.mark.feature("W17", "W24")
def test_tiles_are_chosen_for_less_room_where_programs_hold_more_than_predicted() -> None:
    """The tile that is predicted best exceeds the level by a byte, and no other one is looked at."""
    gpu = target_model_of(device("a100"))
    small = replace(gpu, levels=(gpu.levels[0], replace(gpu.levels[1], capacity=4096), gpu.levels[2]))
    graph = convolutions()
    problem, builder = problem_of(graph, small), GroupBuilder(graph)
    members = tuple(range(1, len(problem.parts)))  # the first one is cheap alone
    best = problem.core_tiles(members)[0]
    plan = legalizing.single_group_plan(members, best, problem, builder)
    held = int(footprint(lower(plan.groups[0], plan.groups[0].variants[0], plan))["smem"].value)  # type: ignore[union-attr]
    with mock.patch.object(legalizing, "overflows", side_effect=lambda program: tighter(program, held - 1)):
        (group,) = legalize_groups([members], problem, builder, options=LegalizeGroups(candidates=1))
    assert group.members == members
    assert (group.tiles[0].sizes, group.tiles[0].steps) != (best.sizes, best.steps)
    assert group.tiles[0].seconds < sum(tile.seconds for tile in problem.singles[1:])


def tighter(program: Program, most: int) -> tuple[Refusal, ...]:
    """That a program exceeds a level of some bytes, where it does."""
    held = int(footprint(program)["smem"].value)  # type: ignore[union-attr]
    numbers: dict[str, int | str] = {"level": "smem", "bytes": held, "capacity": most}
    return (Refusal("", "capacity", numbers),) if held > most else ()


def test_caches_need_no_second_look() -> None:
    problem, builder = softmax(target_model_of(device("zen5-avx512")))
    (group,) = legalize_groups([(0, 1, 2, 3)], problem, builder, 3)
    assert group.members == (0, 1, 2, 3)
    assert 1 < len(group.tiles) <= 3


@cache
def concatenated() -> tuple[FusionProblem, tuple[int, ...]]:
    """A result beside what is computed from it, and a group of all whose first task needs only the former."""
    e = {"s": 4, "n": 13}
    nodes = [
        ("top[s] = max(n, x[s, n])", e),
        ("t[s, n] = exp(x[s, n] - top[s])", e),
        ("c[s, n] = ceil(t[s, n])", e),
        ("y[s, n] = where(s < 4, t[s, n], c[s - 4, n])", {"s": 8, "n": 13}),
    ]
    graph = make_graph({"x": (4, 13)}, nodes, ["c", "y"])
    target = target_model_of(device("zen5-avx512"))
    problem = FusionProblem(graph, fuse_registers(graph).parts, target, Candidates(), "time", frozenset({"c", "y"}))
    whole = tuple(range(len(problem.parts)))
    halves = replace(problem.core_tiles(whole)[0], sizes={"s": 4})
    problem.cache.tiles[problem.key(whole, problem.leaving(whole))] = (LOWERED_CANDIDATES, (halves,))
    return problem, whole


@pytest.mark.feature("W06")
def test_tasks_that_need_one_of_two_results_have_a_legal_program() -> None:
    problem, whole = concatenated()
    (group,) = legalize_groups([whole], problem, GroupBuilder(problem.graph))
    assert group.members == whole
    assert group.tiles[0].sizes == {"s": 4}


@pytest.mark.feature("W06")
def test_a_group_without_a_legal_program_falls_apart_and_says_so() -> None:
    problem, whole = concatenated()
    problem = replace(problem, cache=replace(problem.cache, legal={}))
    with mock.patch("tilec.scheduler.fusion.legalize.check_program", return_value=("c is written twice",)):
        found = legalize_groups([whole], problem, GroupBuilder(problem.graph))
        sets = (GroupSet(problem, (whole,)),)
        state = SearchState(problem, ScheduleOptions(), (), GroupBuilder(problem.graph), sets=sets)
        legalized = LegalizeGroups().run(state, NO_TRACE)
    assert [group.members for group in found] == [(n,) for n in whole]
    assert legalized.legal is not None
    assert [group.members for group in legalized.legal] == [(n,) for n in whole]
    assert illegality(whole, problem, GroupBuilder(problem.graph)).code == "illegal"
    between = {edge_name(tensor, name) for edges in problem.edges for tensor, name in edges}
    assert {edge: reason.code for edge, reason in legalized.refused.items()} == dict.fromkeys(between, "illegal")


@pytest.mark.feature("W17")
@pytest.mark.parametrize(("size", "most", "fits"), [(8, 12000, {"step": 32}), (64, 3000, {"step": 1, "tile": "m=8"})])
def test_a_group_that_fell_apart_says_what_would_fit(size: int, most: int, fits: dict[str, int | str]) -> None:
    """With 8 rows and a step of k, 4 * (8 * k + k * 64) bytes of operands and 2080 of results; then 8 rows with 1."""
    e = {"m": 64, "n": 64, "k": 256}
    nodes = [("C[m, n] = sum(k, A[m, k] * B[k, n])", e), ("top[m] = max(n, C[m, n])", e)]
    graph = make_graph({"A": (64, 256), "B": (256, 64)}, nodes, ["top"])
    gpu = target_model_of(device("a100"))
    small = replace(gpu, levels=(gpu.levels[0], replace(gpu.levels[1], capacity=most), gpu.levels[2]))
    problem = FusionProblem(graph, fuse_registers(graph).parts, small, Candidates(), "time", frozenset({"top"}))
    tile = replace(problem.core_tiles((0, 1))[0], sizes={"m": size}, steps={}, stages=1)
    problem.cache.tiles[problem.key((0, 1), ("top",))] = (LOWERED_CANDIDATES, (tile,))
    reason = illegality((0, 1), problem, GroupBuilder(graph))
    assert reason.code == "capacity"
    assert {name: n for name, n in reason.numbers.items() if name not in ("level", "bytes", "capacity")} == fits


@pytest.mark.feature("W24")
def test_a_part_whose_tiles_do_not_fit_takes_a_smaller_one() -> None:
    """However wrong the estimate was, what a plan says fits."""
    gpu = target_model_of(device("a100"))
    graph = make_graph({"x": (512, 512)}, [("y[s, n] = exp(x[n, s])", {"s": 512, "n": 512})], ["y"])
    problem = FusionProblem(graph, fuse_registers(graph).parts, gpu, Candidates(), "time", frozenset({"y"}))
    whole = replace(problem.core_tiles((0,))[0], sizes={}, held=0)
    with mock.patch.object(FusionProblem, "core_tiles", return_value=(whole,)):
        (group,) = legalize_groups([(0,)], problem, GroupBuilder(graph))
    tile = group.tiles[0]
    assert group.members == (0,)
    assert 4 * tile.sizes["s"] * tile.sizes["n"] < (gpu.levels[gpu.core].capacity or 0)
