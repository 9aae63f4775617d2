"""Random graphs: no plan moves less than must, nor does the best known."""

from __future__ import annotations

from math import prod

from hypothesis import HealthCheck, Phase, assume, given, settings

from tests.random_graphs import Case, Model, models
from tests.random_plans import NAMES, cases, hierarchies
from tilec.bounds.einsum.oro import oro
from tilec.bounds.graph.best_known import graph_curve
from tilec.bounds.graph.chains import chains
from tilec.bounds.graph.compulsory import compulsory
from tilec.bounds.graph.contractions import contractions
from tilec.lower.checks.plan_errors import PlanError
from tilec.lower.lowering import lower
from tilec.machine import execute

SLOW = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large, HealthCheck.large_base_example)
QUICK = settings(max_examples=40, deadline=None, derandomize=True, phases=[Phase.generate], suppress_health_check=SLOW)

TWO_LEVELS = hierarchies(NAMES[2:4], fans=(4,))


@QUICK
@given(cases(hierarchy=TWO_LEVELS))
def test_no_plan_on_the_tile_machine_moves_less_than_must(case: Case) -> None:
    try:
        program = lower(case.group, case.variant, case.plan)
    except PlanError:
        assume(False)
        raise
    # What is read where it lies, or stays at the lowest level, is not counted.
    variant = case.variant
    assume(len(variant.levels) == 2 and all(variant.loads.values()))
    assume(set(case.group.connect.values()) <= {variant.levels[1]})
    moved = execute(program, case.arrays()).moved
    assert sum(each.read + each.written for each in moved.values()) >= compulsory(case.graph)


@QUICK
@given(models())
def test_the_best_known_is_no_less_than_must_and_falls(model: Model) -> None:
    graph = model.graph
    found = graph_curve(graph, oro, ragged=False)
    moves = [point.traffic_bytes for point in found.points]
    assert moves == sorted(moves, reverse=True)
    assert moves[-1] >= found.compulsory == compulsory(graph)
    found_contractions, found_chains = contractions(graph), chains(graph)
    chained = sum(each.count * len(each.chain.operators) for each in found_chains)
    assert sum(len(each.nodes) for each in found_contractions) >= chained
    assert all(prod(each.einsum.extents.values()) for each in found_contractions)
