"""Plans with their bounds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from report.plans import group, layers, plan

from bounds.graphs import attention, graph, mlp
from tilec.bounds.einsum.lower import lb, product_loads
from tilec.bounds.einsum.oro_plus import oro_plus
from tilec.bounds.graph.compulsory import compulsory
from tilec.bounds.graph.contractions import contraction_of
from tilec.bounds.levels import LevelCapacity, level_capacities
from tilec.bounds.plan.plan_bounds import least, leasts, with_bounds
from tilec.ir.codec import plan_from_json, plan_to_json
from tilec.ir.expr import constant_value
from tilec.ir.graph import Graph
from tilec.ir.plan import Bound, Plan, PlanLevel
from tilec.scheduler import schedule
from tilec.spec.resolve import resolve_device


def at(**capacities: int) -> list[LevelCapacity]:
    return [LevelCapacity(level, "dram", size, 1, None) for level, size in capacities.items()]


def planned_with_bounds(found: Graph, device: str) -> Plan:
    spec = resolve_device(device)
    return with_bounds(schedule(found, spec), level_capacities(spec), oro_plus)


def product(m: int, n: int, k: int, *more: tuple[str, dict[str, int]]) -> Graph:
    nodes = [("c[m, n] = sum(k, a[m, k] * b[k, n])", {"m": m, "n": n, "k": k}), *more]
    return graph({"a": (m, k), "b": (k, n)}, nodes, [nodes[-1][0].split("[")[0]])


@pytest.mark.slow_cases("attention-a100", "attention-ipu-mk2", "attention-zen5-avx512", "mlp-a100")
@pytest.mark.parametrize("device", ["a100", "zen5-avx512", "ipu-mk2"])
@pytest.mark.parametrize("found", [mlp(), attention(), product(64, 48, 80)], ids=["mlp", "attention", "product"])
def test_every_group_and_the_whole_have_bounds(found: Graph, device: str) -> None:
    made = planned_with_bounds(found, device)
    below, level = (*made.bounds, *made.bounds)[:2]
    assert below == made.levels[1].name
    for each in (*(g.bounds[level] for g in made.groups), made.bounds[level]):
        assert each.known is not None
        assert 0 < each.least <= each.known
    # Small networks fit the level: all moves once.
    assert replace(made.bounds[level], parallel=None) == Bound(compulsory(found), compulsory(found))
    units = {each.level: each.units for each in level_capacities(resolve_device(device))}
    for name, each in ((name, each) for g in (made, *made.groups) for name, each in g.bounds.items()):
        assert (each.parallel is None) == (units[name] == 1)
        assert each.parallel is None or each.parallel >= (each.known or 0)
    for g in made.groups:
        moved = (constant_value(g.cost.read[level]) or 0) + (constant_value(g.cost.written[level]) or 0)
        assert moved >= g.bounds[level].least


def test_the_same_in_the_artifact() -> None:
    made = planned_with_bounds(mlp(), "a100")
    assert plan_from_json(plan_to_json(made)) == made


def test_equal_groups_have_equal_bounds_at_their_levels() -> None:
    first, *rest = layers()
    direct = group("h r", {"h->r": "reg"}, tile={"m": 16, "n": 32}, loads={"x": ("smem",), "w": ()})
    made = with_bounds(plan(direct, *rest), at(smem=4096), oro_plus)
    assert made.capacities == {"smem": 4096}
    assert [list(g.bounds) for g in made.groups] == [["smem"]] * 3
    assert with_bounds(plan(first, *rest), at(smem=4096), oro_plus).groups[1:] == made.groups[1:]


def test_a_cache_has_a_bound_for_the_whole_plan_alone() -> None:
    """What earlier groups leave in it a group need not fetch."""
    cached = (PlanLevel("dram", None), PlanLevel("l2", 1 << 20, managed="implicit"), *plan(*layers()).levels[1:])
    made = with_bounds(plan(*layers(), levels=cached), at(l2=1 << 20, smem=4096), oro_plus)
    assert list(made.bounds) == ["l2", "smem"]
    assert made.bounds["l2"].least <= made.bounds["smem"].least
    assert [list(g.bounds) for g in made.groups] == [["smem"]] * 3


def test_a_plan_with_symbols_has_the_bounds_of_the_sizes_that_it_is_made_for() -> None:
    open_size = with_bounds(plan(*layers(), symbols=("s",)), at(smem=4096), oro_plus)
    bound = with_bounds(plan(*layers()), at(smem=4096), oro_plus)
    assert open_size.symbols == ("s",)
    assert (open_size.bounds, open_size.capacities) == (bound.bounds, bound.capacities)
    assert [group.bounds for group in open_size.groups] == [group.bounds for group in bound.groups]


def test_a_product_alone_has_its_lb() -> None:
    found = product(40, 40, 40)
    einsum = contraction_of(found.nodes[0], found.tensors)
    assert einsum is not None
    for capacity in (16, 64, 256, 1024, 1 << 20):
        assert least(found, capacity) == lb(einsum, capacity).traffic_bytes
        assert leasts(found, [capacity, 64]) == [least(found, capacity), least(found, 64)]
    assert least(found, 64) > compulsory(found)


def test_a_product_that_stays_owes_its_loads_only() -> None:
    narrow = ("y[m] = max(n, c[m, n])", {"m": 40, "n": 40})
    found = product(40, 40, 40, narrow)
    einsum = contraction_of(found.nodes[0], found.tensors)
    assert einsum is not None
    assert least(found, 64) == 40 * 4 + product_loads(einsum, 64)
    assert product_loads(einsum, 64) == lb(einsum, 64).traffic_bytes - 40 * 40 * 4


def test_a_product_of_what_the_group_makes_owes_nothing_more() -> None:
    found = graph(
        {"a": (40, 40), "b": (40, 40)},
        [
            ("d[m, k] = a[m, k] + 1.0", {"m": 40, "k": 40}),
            ("c[m, n] = sum(k, d[m, k] * b[k, n])", {"m": 40, "n": 40, "k": 40}),
        ],
        ["c"],
    )
    assert least(found, 64) == compulsory(found)


def test_nothing_known_fits() -> None:
    made = with_bounds(plan(*layers()), at(smem=3), oro_plus)
    assert made.groups[0].bounds["smem"].known is None
    assert replace(made.bounds["smem"], least=0) == Bound(0, None)


def test_a_product_of_which_one_row_is_needed_bounds_nothing() -> None:
    last = product(512, 256, 256, ("y[n] = c[511, n]", {"n": 256}))
    every = product(512, 256, 256, ("y[m, n] = c[m, n]", {"m": 512, "n": 256}))
    assert least(last, 2048) == compulsory(last)
    assert least(every, 2048) > compulsory(every)
