"""Predicted times of plans as they stand: those of the search, whatever tile it looked at, and others after an edit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from replay.plans import FOLDER, MODELS, graph
from scheduler.graphs import make_graph

from tilec.ir.codec import plan_from_json
from tilec.ir.graph import Graph
from tilec.ir.plan import Plan
from tilec.scheduler.building.group_builder import levels_of, picoseconds, plan_group
from tilec.scheduler.building.subplan import subplan
from tilec.scheduler.plan_candidates import PlanState
from tilec.scheduler.predicted_times.plan_times import with_times
from tilec.scheduler.schedule import complete_plan, recounted_plan, search_plan
from tilec.scheduler.state import GroupSet, Members, SearchState
from tilec.scheduler.tiling.task_tiles import TaskTile
from tilec.spec.recipe import ScheduleOptions
from tilec.spec.resolve import packaged, resolve_device

TILES = 4
"""Tiles of every group that are looked at."""


def searched(of: Graph, device: str) -> PlanState:
    return search_plan(of, resolve_device(device), ScheduleOptions())


def kept(name: str) -> Plan:
    return plan_from_json(json.loads((FOLDER / f"{name}.json").read_text()), name)


@pytest.mark.quick_cases("nerf-mlp")
@pytest.mark.parametrize("name", MODELS)
def test_the_costs_of_kept_plans_are_those_of_their_decisions(name: str) -> None:
    """Bytes and times, on every device, whether tiles of several levels or of one."""
    for file in FOLDER.glob(f"{name}.*.json"):
        plan = kept(file.stem)
        counted = recounted_plan(plan, resolve_device(plan.device))
        assert [group.cost for group in counted.groups] == [group.cost for group in plan.groups], file.name


@pytest.mark.quick_cases("avx2", "ipu-mk2", "ipu-mk2-host", "neon", "snowcat", "v100-16g-host", "zen5-avx512")
@pytest.mark.parametrize("device", sorted(packaged("devices")))
def test_a_group_is_predicted_as_the_search_predicted_it(device: str) -> None:
    """To the picosecond, but where registers have no level in the plan: there the rules say what shares them."""
    state = searched(graph("nerf-mlp"), device)
    target = state.search.root.target
    seconds = [each for state in state.taken.legal for each in state.seconds]
    times = [group.cost.picoseconds for group in complete_plan(state).groups]
    expected = [picoseconds(each) for each in seconds]
    assert times == (expected if target.top != target.core_level else pytest.approx(expected, rel=0.01))


def looked_at(state: PlanState) -> Iterator[tuple[SearchState, GroupSet, Members, TaskTile]]:
    """The best tiles of every group of every whole plan that was compared."""
    for candidate in state.candidates:
        for outline in candidate.outline:
            for of in outline.sets:
                for members in of.groups:
                    for tile in of.problem.core_tiles(members, TILES):
                        yield outline, of, members, tile


def planned(state: SearchState, of: GroupSet, members: Members, tile: TaskTile) -> Plan:
    """A plan of one group with a tile, with the weights that are packed for it."""
    problem, aside = of.problem, state.builder.aside()
    block = aside.core_block(problem, members, tile)
    tiled = aside.tiled_group(block, problem.leaving(members), problem.target, 0.0)
    tensors, packs = aside.graph.tensors, tuple(aside.packs.values())
    known = problem.constants | {node.name for node in packs}
    plan = subplan([plan_group(tiled)], tiled.outputs, tensors, levels_of(problem.target), problem.target.name)
    inputs = tuple(port for port in plan.inputs if port.tensor not in known)
    return replace(plan, inputs=inputs, prepared=packs, tensors=tensors)


@pytest.mark.quick_cases("nerf-mlp-avx2-0.95", "nerf-mlp-zen5-avx512-0.95")
@pytest.mark.parametrize(
    ("name", "device", "exact"),
    [
        *(("nerf-mlp", device, 1.0) for device in ("a100", "mi250")),
        *(("nerf-mlp", device, 0.95) for device in ("avx2", "zen5-avx512")),
        ("mobilenet-v2", "avx2", 1.0),
    ],
)
def test_every_tile_is_predicted_as_the_search_predicts_it(name: str, device: str, exact: float) -> None:
    """What explain says of another tile is what a plan with that tile says.

    On CPUs register tiles may have been fitted to another task than the one that they are in.
    """
    state = searched(graph(name), device)
    differing = []
    for of in (tiles := list(looked_at(state))):
        (group,) = with_times(planned(*of), of[1].problem.target, state.search.root.numbers).groups
        expected = picoseconds(of[-1].seconds)
        assert group.cost.picoseconds == pytest.approx(expected, rel=0.05)
        differing += [group.name] if group.cost.picoseconds != expected else []
    assert len(differing) <= (1 - exact) * len(tiles), differing


def attention(rows: int, keys: int, width: int) -> Graph:
    extents = {"m": rows, "n": keys, "k": width, "d": width}
    texts = [
        "S[m, n] = sum(k, Q[m, k] * K[n, k])",
        "X[m] = max(n, S[m, n])",
        "E[m, n] = exp(S[m, n] - X[m])",
        "Z[m] = sum(n, E[m, n])",
        "R[m, n] = E[m, n] / Z[m]",
        "O[m, d] = sum(n, R[m, n] * V[n, d])",
    ]
    inputs = {"Q": (rows, width), "K": (keys, width), "V": (keys, width)}
    return make_graph(inputs, [(text, extents) for text in texts], ["O"])


def test_reductions_that_share_a_loop_are_predicted_as_the_search_predicts_them() -> None:
    state = searched(attention(65_536, 65_536, 64), "a100")
    plan = complete_plan(state)
    assert any(group.variants[0].shared for group in plan.groups)
    seconds = [each for state in state.taken.legal for each in state.seconds]
    assert [group.cost.picoseconds for group in plan.groups] == [picoseconds(each) for each in seconds]


def test_another_decision_has_another_time() -> None:
    """Tiles at a core's level and in registers; the name of a kernel changes none."""
    device = resolve_device("a100")
    plan = recounted_plan(kept("nerf-mlp.a100"), device)
    (group,) = plan.groups
    (variant,) = group.variants

    def growth(**decisions: object) -> float:
        other = replace(plan, groups=(replace(group, variants=(replace(variant, **decisions),)),))  # type: ignore[arg-type]
        return recounted_plan(other, device).groups[0].cost.picoseconds / group.cost.picoseconds

    def halved(level: str) -> dict[str, object]:
        sizes = {node: {i: max(1, n // 2) for i, n in of.items()} for node, of in variant.tiles[level].items()}
        return {**variant.tiles, level: sizes}

    assert growth() == 1
    assert growth(kernel="another") == 1
    assert growth(tiles={**variant.tiles, "smem": {group.name: {"m": 16}}}) > 1
    assert growth(tiles=halved("reg")) > 1


def test_the_order_of_tasks_counts_where_a_cache_is_shared() -> None:
    """Of a product whose operands exceed the cache below a core's level."""
    extents = dict.fromkeys("mnk", 16_384)
    text = "y[m, n] = sum(k, x[m, k] * w[n, k])"
    graph = make_graph({"x": (16_384, 16_384), "w": (16_384, 16_384)}, [(text, extents)], ["y"])
    plan = complete_plan(searched(graph, "a100"))
    (group,) = plan.groups
    row = replace(group.variants[0], order={**group.variants[0].order, "smem": {"y": ("m", "n")}}, raster={})
    before, after = ([replace(group, variants=(each,))] for each in (group.variants[0], row))
    device = resolve_device("a100")
    times = [
        recounted_plan(replace(plan, groups=tuple(of)), device).groups[0].cost.picoseconds for of in (before, after)
    ]
    assert times[0] == group.cost.picoseconds < times[1]


def test_without_its_device_a_plan_keeps_its_times() -> None:
    plan = recounted_plan(kept("nerf-mlp.a100"), resolve_device("a100"))
    wrong = replace(plan, groups=tuple(replace(g, cost=replace(g.cost, picoseconds=7)) for g in plan.groups))
    assert [g.cost.picoseconds for g in recounted_plan(wrong, None).groups] == [7]
    assert recounted_plan(wrong, resolve_device("a100")) == plan
