"""Plans with less fusion: taken where they are predicted better, with a reason for every edge."""

from dataclasses import dataclass
from itertools import product
from types import SimpleNamespace

import pytest
from scheduler.graphs import make_graph
from scheduler.running import device

from tilec.ir.graph import Graph
from tilec.ir.plan import Plan
from tilec.scheduler import plan_candidates, schedule
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
def test_what_is_computed_again_is_what_is_predicted_faster() -> None:
    """Threads that each reduce a row are few: what they compute again takes longer than storing it does."""
    device_ = device("a100")
    again = schedule(norm(), device_, ScheduleOptions(fusion="register", passes=("rematerialize",)))
    stored = schedule(norm(), device_, ScheduleOptions(fusion="register", passes=()))
    chosen = schedule(norm(), device_, ScheduleOptions(fusion="register"))
    assert nodes(again) != nodes(stored)
    assert predicted(again) != predicted(stored)
    best = min(again, stored, key=predicted)
    assert nodes(chosen) == nodes(best)
    assert predicted(chosen) == predicted(best)


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
class Rival:
    """A plan that hopes to come to no more than it does."""

    hoped: int
    cost: int


@pytest.mark.feature("W16")
def test_the_cheapest_plan_is_taken_and_of_equal_ones_the_first() -> None:
    kinds = [Rival(hoped, cost) for hoped, cost in product(range(3), range(3)) if hoped <= cost]
    for rivals in product(kinds, repeat=3):
        best = plan_candidates.cheapest(rivals)  # type: ignore[arg-type]
        assert best is min(rivals, key=lambda rival: rival.cost)


@dataclass(frozen=True, eq=False)
class Settled(Rival):
    """A plan of a draft, as the search has settled it."""

    draft: str
    outline: SimpleNamespace


@pytest.mark.feature("W15", "W16")
def test_a_plan_explains_what_plans_of_its_draft_with_more_fusion_come_to() -> None:
    """Of two plans with more fusion one is of another draft, whose edges are others."""
    plan, fused = (schedule(norm(), device("a100"), ScheduleOptions(fusion=fusion)) for fusion in ("none", "full"))
    connected = {edge for group in fused.groups for edge in group.connect} & {r.edge for r in plan.refusals}
    assert connected
    most = Settled(9, 9, "stored", SimpleNamespace(plan=fused))
    other = Settled(8, 8, "again", SimpleNamespace(plan=fused))
    least = Settled(7, 7, "stored", SimpleNamespace(plan=plan))
    explained = plan_candidates.with_refusals(plan, (most, other, least))  # type: ignore[arg-type]
    found = {reason.edge: dict(reason.numbers) for reason in explained.refusals if reason.edge in connected}
    assert found == {edge: {"joined": 9, "apart": 7} for edge in connected}
    assert plan_candidates.with_refusals(plan, (other, least)) == plan  # type: ignore[arg-type]
