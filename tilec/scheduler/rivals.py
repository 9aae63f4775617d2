"""rivals: whole plans of one graph with more and less fusion, of which the one that is predicted best is taken (W16).

A pass that computes elements again, or a part that shares registers, is decided before tiles are known; what it comes
to shows in the finished plan.  So no plan is worse than one of the same graph with less fusion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, Protocol

from tilec.ir.intervals import Candidates
from tilec.ir.plan import Plan, Refusal
from tilec.scheduler.choose import Tuner
from tilec.scheduler.cost import costed, lowest_traffic
from tilec.scheduler.reasons import Draft
from tilec.spec.recipe import ScheduleOptions

Fusion = Literal["none", "register", "full"]


class Planner(Protocol):
    """Plans drafts."""

    def __call__(self, draft: Draft, fusion: Fusion, tuner: Tuner | None = None) -> Plan:
        """The plan of a draft with a way to fuse; of costs it has predicted times alone."""


def best_plan(
    planned: Planner, drafts: Sequence[Draft], options: ScheduleOptions, numbers: Candidates, tuner: Tuner | None
) -> Plan:
    """The plan with the asked fusion, or with less where that comes to less; `drafts` are the graph with and without
    what passes compute again, of which full fusion takes the better one.

    A `tuner` chooses tiles of the winner.
    """
    if options.fusion == "none" or options.objective == "footprint":
        return planned(drafts[0], options.fusion, tuner)

    def worth(plan: Plan) -> int:
        if options.objective == "traffic":
            return int(numbers.size(lowest_traffic(costed(plan))))
        return sum(group.cost.picoseconds for group in plan.groups)

    rivals: list[tuple[int, Draft, Fusion, Plan]] = []
    for draft in drafts:
        plan = planned(draft, "register")
        rivals.append((worth(plan), draft, "register", plan))
    rivals.sort(key=lambda rival: rival[0])
    if options.fusion == "full":
        draft = rivals[0][1]
        plan = planned(draft, "full")
        rivals.insert(0, (worth(plan), draft, "full", plan))
    plan = planned(drafts[-1], "none")
    rivals.append((worth(plan), drafts[-1], "none", plan))
    place = min(range(len(rivals)), key=lambda n: rivals[n][0])
    least, draft, fusion, plan = rivals[place]
    if tuner is not None:
        plan = planned(draft, fusion, tuner)
    for cost, own, _, other in reversed(rivals[:place]):
        if own is draft:
            plan = _explained(plan, other, cost, least)
    return plan


def _explained(plan: Plan, other: Plan, joined: int, apart: int) -> Plan:
    """The plan with the reasons of one with more fusion: edges that only that one connects do not pay, in all."""
    connected = {edge for group in other.groups for edge in group.connect}
    reasons = {reason.edge: reason for reason in other.refusals}
    reasons |= {e: Refusal(e, "slower", {"joined": joined, "apart": apart}) for e in connected}
    return replace(plan, refusals=tuple(reasons.get(reason.edge, reason) for reason in plan.refusals))
