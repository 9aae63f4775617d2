"""Plans with less fusion: taken where they are predicted better, with a reason for every edge."""

from dataclasses import dataclass
from itertools import product

import pytest
from scheduler.graphs import make_graph
from scheduler.running import device, threaded

from tilec.ir.graph import Graph
from tilec.ir.plan import Plan
from tilec.scheduler import plan_candidates, schedule
from tilec.scheduler.plan_candidates import PlanState
from tilec.scheduler.schedule import search_plan
from tilec.spec.recipe import ScheduleOptions

E = {"s": 512, "n": 768}
NORM = [
    ("m[s] = sum(n, x[s, n])", E),
    ("c[s, n] = x[s, n] - m[s]", E),
    ("v[s] = sum(n, c[s, n] * c[s, n])", E),
    ("y[s, n] = c[s, n] / sqrt(v[s] / 768 + 0.00001)", E),
]


def norm() -> Graph:
    return make_graph({"x": (512, 768)}, NORM, ["y"])


def nodes(plan: Plan) -> set[str]:
    return {node.name for group in plan.groups for node in group.nodes}


def predicted(plan: Plan) -> int:
    return sum(group.cost.picoseconds for group in plan.groups)


@pytest.mark.feature("W16", "A09")
def test_of_the_graphs_of_optional_passes_that_is_taken_which_is_predicted_fastest() -> None:
    """Threads that each reduce a row are few: what they compute again takes longer than storing it does, unless they
    share the rows."""
    device_, optional = threaded("a100"), ("rematerialize", "spread_reductions")
    every = [
        tuple(n for n, taken in zip(optional, of, strict=True) if taken) for of in product((False, True), repeat=2)
    ]
    plans = [schedule(norm(), device_, ScheduleOptions(fusion="register", passes=passes)) for passes in every]
    assert len({frozenset(nodes(plan)) for plan in plans}) == len({predicted(plan) for plan in plans}) == 4
    chosen = schedule(norm(), device_, ScheduleOptions(fusion="register"))
    best = min(plans, key=predicted)
    assert nodes(chosen) == nodes(best)
    assert predicted(chosen) == predicted(best)
    whole = min(
        plan
        for passes, plan in zip(every, map(predicted, plans), strict=True)
        if len(passes) < 2 and passes != optional[1:]
    )
    assert predicted(chosen) < whole / 1.5


@pytest.mark.feature("W16", "W49")
def test_a_plan_without_fusion_says_what_fusion_comes_to() -> None:
    plan = schedule(norm(), device("a100"), ScheduleOptions(fusion="none"))
    other = schedule(norm(), device("a100"), ScheduleOptions(fusion="full"))
    connected = {edge for group in other.groups for edge in group.connect}
    explained = plan_candidates._explained(plan, other, joined=9, apart=7)
    assert {r.edge for r in explained.refusals} == {r.edge for r in plan.refusals}
    assert connected & {r.edge for r in plan.refusals}
    for reason in explained.refusals:
        if reason.edge in connected:
            assert (reason.code, reason.numbers) == ("slower", {"joined": 9, "apart": 7})


@dataclass(frozen=True)
class Candidate:
    """A plan whose cost is no less than its lower bound."""

    lower_bound: int
    cost: int


@pytest.mark.feature("W16")
def test_the_cheapest_plan_is_taken_and_of_equal_ones_the_first() -> None:
    kinds = [Candidate(least, cost) for least, cost in product(range(3), range(3)) if least <= cost]
    for candidates in product(kinds, repeat=3):
        best = plan_candidates.cheapest(candidates)  # type: ignore[arg-type]
        assert best is min(candidates, key=lambda candidate: candidate.cost)


@dataclass(frozen=True, eq=False)
class BuiltCandidate(Candidate):
    """A plan of a draft, complete."""

    draft: str
    plan: Plan
    tuner: None = None


@pytest.mark.feature("W16")
def test_a_plan_explains_what_plans_of_its_draft_with_more_fusion_come_to() -> None:
    """Of two plans with more fusion one is of another draft, whose edges are others."""
    plan, fused = (schedule(norm(), device("a100"), ScheduleOptions(fusion=fusion)) for fusion in ("none", "full"))
    connected = {edge for group in fused.groups for edge in group.connect} & {r.edge for r in plan.refusals}
    assert connected
    most = BuiltCandidate(9, 9, "stored", fused)
    other = BuiltCandidate(8, 8, "again", fused)
    least = BuiltCandidate(7, 7, "stored", plan)

    def taken(*candidates: BuiltCandidate) -> Plan:
        return PlanState(None, candidates=candidates, best=least).plan  # type: ignore[arg-type]

    explained = taken(most, other, least)
    found = {reason.edge: dict(reason.numbers) for reason in explained.refusals if reason.edge in connected}
    assert found == {edge: {"joined": 9, "apart": 7} for edge in connected}
    assert taken(other, least) == plan


@pytest.mark.parametrize("fusion", ["none", "register", "apollo", "full"])
def test_little_effort_searches_for_no_full_fusion(fusion: str) -> None:
    """The plan is that of register fusion, or with less where less was asked for; it is never predicted faster."""
    quick = schedule(norm(), device("zen5-avx512"), ScheduleOptions(fusion=fusion, effort="quick"))
    asked = "register" if fusion == "full" else fusion
    assert quick == schedule(norm(), device("zen5-avx512"), ScheduleOptions(fusion=asked))
    full = search_plan(norm(), device("zen5-avx512"), ScheduleOptions())
    candidate = full.quick
    assert candidate is not None
    assert candidate.fusion == "register"
    assert candidate.cost >= full.taken.cost
