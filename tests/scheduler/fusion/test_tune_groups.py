"""Plans whose tiles a tuner chose: legal and right whatever it takes, the same for groups that are alike."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scheduler.graphs import make_graph, values_of
from scheduler.models import attention, convolutions
from scheduler.running import illegal, run_plan, tiny

from tilec.ir.evaluate import integer
from tilec.ir.expr import operands
from tilec.ir.graph import Graph
from tilec.ir.plan import Plan
from tilec.scheduler import schedule
from tilec.scheduler.tuning.record import Record
from tilec.scheduler.tuning.tuner import Tuner, Tuning
from tilec.spec.recipe import ScheduleOptions

OPTIONS = ScheduleOptions(fusion="register", budget=4)


class Last:
    """Finds the last candidate fastest; keeps all plans that it was asked about."""

    def __init__(self) -> None:
        self.plans: list[Plan] = []
        self.groups: list[list[Plan]] = []

    def __call__(self, plans: Sequence[Plan]) -> list[float | None]:
        self.plans += plans
        self.groups.append(list(plans))
        return [1.0 / (n + 1) for n in range(len(plans))]


def tuned(
    graph: Graph, measure: Last | None, record: Record | None = None, budget: int = OPTIONS.budget
) -> tuple[Plan, Tuner, list[Record]]:
    kept = [record or Record()]

    def keep(entry, instead):
        kept.append(kept[-1].merged(entry, instead))
        return kept[-1]

    tuner = Tuner(Tuning(kept[0], {"device": "d"}, budget, measure, keep))
    return schedule(graph, tiny(), OPTIONS, tuner=tuner), tuner, kept


@pytest.mark.slow_cases("attention")
@pytest.mark.feature("W20")
@pytest.mark.parametrize("graph", [attention(), convolutions()], ids=["attention", "convolutions"])
def test_any_choice_is_legal_and_computes_the_same(graph: Graph) -> None:
    measure = Last()
    plan, tuner, kept = tuned(graph, measure)
    assert tuner.sources["measured"] == len(kept) - 1 > 0
    assert illegal(plan) == []
    found = run_plan(plan, dict(values_of(replace(graph, outputs=graph.inputs))))
    for name, value in values_of(graph).items():
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-4)
    plain = schedule(graph, tiny(), OPTIONS)
    assert {g.variants[0].kernel for g in plan.groups} != {g.variants[0].kernel for g in plain.groups}


def test_candidates_are_plans_of_their_own_that_run() -> None:
    graph = convolutions()
    measure = Last()
    tuned(graph, measure)
    rng = np.random.default_rng(0)
    for plan in measure.plans:
        assert len(plan.groups) == 1
        assert illegal(plan) == []
        shapes = {port.name: [integer(e, {}) for e in plan.tensors[port.tensor].shape] for port in plan.inputs}
        found = run_plan(plan, {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()})
        assert set(found) == set(plan.groups[0].outputs)


@pytest.mark.feature("W41")
def test_groups_that_are_alike_are_asked_for_once_and_treated_alike() -> None:
    measure = Last()
    plan, _, kept = tuned(attention(), measure)
    asked = len({entry.group.digest for entry in kept[-1].entries.values()})
    assert asked == len(kept) - 1 < len(plan.groups)
    kernels = [group.variants[0].kernel for group in plan.groups]
    assert len(set(kernels)) < len(kernels)


def test_what_other_candidates_would_pack_is_not_in_the_plan() -> None:
    plan, _, _ = tuned(convolutions(), Last())
    read = {t for group in plan.groups for node in group.nodes for t in operands(node.expr)}
    read |= {t for node in plan.prepared for t in operands(node.expr)}
    assert {node.name for node in plan.prepared} <= read
    assert set(plan.tensors) == read | {node.name for g in plan.groups for node in g.nodes} | {
        node.name for node in plan.prepared
    }


def test_the_record_makes_the_same_plan_without_a_measurement() -> None:
    plan, _, kept = tuned(attention(), Last())
    again, tuner, _ = tuned(attention(), None, kept[-1])
    assert again == plan
    assert set(tuner.sources) == {"recorded"}


@pytest.mark.feature("W20")
@pytest.mark.parametrize("budget", [2, 8])
def test_as_many_different_candidates_are_measured_as_may_be(budget: int) -> None:
    """Best first by the predicted time, no two of which decide the same."""
    e = {"m": 64, "n": 96, "k": 40}
    graph = make_graph({"x": (64, 40), "w": (40, 96)}, [("y[m, n] = sum(k, x[m, k] * w[k, n])", e)], ["y"])
    measure = Last()
    plan, _, kept = tuned(graph, measure, budget=budget)
    (plans,) = measure.groups
    assert len(plans) == budget
    assert len({each.groups[0].variants[0].kernel for each in plans}) == budget
    seconds = [each.groups[0].cost.picoseconds for each in plans]
    assert seconds[0] == min(seconds)
    (entry,) = kept[-1].entries.values()
    assert entry.chosen == budget - 1
    assert plan.groups[0].variants[0].kernel == plans[-1].groups[0].variants[0].kernel
