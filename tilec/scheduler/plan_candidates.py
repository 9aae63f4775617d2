"""rivals: whole plans of one graph with more and less fusion, of which the one that is predicted best is taken (W16).

A pass that computes elements again, or a part that shares registers, is decided before tiles are known; what it comes
to shows in the finished plan.  So no plan is worse than one of the same graph with less fusion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Protocol

from tilec.ir.intervals import Candidates
from tilec.ir.plan import Plan, Refusal
from tilec.scheduler.building.group_builder import picoseconds
from tilec.scheduler.building.plan_costs import lowest_traffic, with_costs
from tilec.scheduler.refusals import RewrittenGraph
from tilec.scheduler.segment_schedule import SegmentSchedule
from tilec.scheduler.tuning.tuner import Tuner
from tilec.spec.recipe import ScheduleOptions

Fusion = Literal["none", "register", "full"]


@dataclass(frozen=True)
class PlanOutline:
    """A plan that is decided and need not be made: the time that the search hopes for; `made` makes it, other costs
    not counted.

    `segments` are what was decided for the parts of the graph between its calls.
    """

    hoped: int
    made: Callable[[], Plan]
    segments: tuple[SegmentSchedule, ...] = ()

    @cached_property
    def picoseconds(self) -> int:
        """Its predicted time."""
        return sum(picoseconds(each) for segment in self.segments for each in segment.settled.seconds)

    @cached_property
    def plan(self) -> Plan:
        """The plan."""
        return self.made()


class PlanSearch(Protocol):
    """Decides the plans of drafts."""

    def __call__(self, draft: RewrittenGraph, fusion: Fusion, tuner: Tuner | None = None) -> PlanOutline:
        """The plan of a draft with a way to fuse; a tuner chooses its tiles."""


def best_plan(
    outlined: PlanSearch,
    drafts: Sequence[RewrittenGraph],
    options: ScheduleOptions,
    numbers: Candidates,
    tuner: Tuner | None,
) -> Plan:
    """The plan with the asked fusion, or with less where that comes to less; `drafts` are the graph with and without
    what passes compute again, of which full fusion takes the better one.

    A `tuner` chooses tiles of the winner.
    """
    if options.fusion == "none" or options.objective == "footprint":
        return outlined(drafts[0], options.fusion, tuner).plan
    rivals = plan_candidates(outlined, drafts, options, numbers)
    best = cheapest(rivals)
    plan = outlined(best.draft, best.fusion, tuner).plan if tuner is not None else best.outline.plan
    return with_refusals(plan, rivals)


def plan_candidates(
    outlined: PlanSearch, drafts: Sequence[RewrittenGraph], options: ScheduleOptions, numbers: Candidates
) -> tuple[PlanCandidate, ...]:
    """The plans that are compared, the one with most fusion first; one alone where nothing else is asked for."""
    if options.fusion == "none" or options.objective == "footprint":
        return (PlanCandidate(drafts[0], options.fusion, outlined(drafts[0], options.fusion)),)
    counted = numbers if options.objective == "traffic" else None

    def rival(draft: RewrittenGraph, fusion: Fusion) -> PlanCandidate:
        return PlanCandidate(draft, fusion, outlined(draft, fusion), counted)

    rivals = sorted((rival(draft, "register") for draft in drafts), key=lambda found: found.hoped)
    if options.fusion == "full":
        rivals.insert(0, rival(rivals[0].draft, "full"))
    return (*rivals, rival(drafts[-1], "none"))


def cheapest(rivals: Sequence[PlanCandidate]) -> PlanCandidate:
    """The plan that comes to least, of equal ones that with more fusion. Plans that hope for more than it are not
    settled."""
    order = sorted(range(len(rivals)), key=lambda place: rivals[place].hoped)
    best = order[0]
    for place in order[1:]:
        if (rivals[place].hoped, place) < (rivals[best].cost, best):
            best = min(best, place, key=lambda each: (rivals[each].cost, each))
    return rivals[best]


def with_refusals(plan: Plan, rivals: Sequence[PlanCandidate]) -> Plan:
    """The plan of the least rival with the reasons of those with more fusion."""
    best = cheapest(rivals)
    for other in reversed(rivals[: rivals.index(best)]):
        if other.draft is best.draft:
            plan = _explained(plan, other.outline.plan, other.cost, best.cost)
    return plan


@dataclass(frozen=True, eq=False)
class PlanCandidate:
    """A plan and what it comes to: picoseconds or, where symbols have `numbers`, bytes of the lowest level."""

    draft: RewrittenGraph
    fusion: Fusion
    outline: PlanOutline
    numbers: Candidates | None = None

    @property
    def hoped(self) -> int:
        """What it comes to at least, as far as can be told without settling it."""
        return self.outline.hoped if self.numbers is None else self.cost

    @cached_property
    def cost(self) -> int:
        """What it comes to."""
        if self.numbers is None:
            return self.outline.picoseconds
        return int(self.numbers.size(lowest_traffic(with_costs(self.outline.plan))))


def _explained(plan: Plan, other: Plan, joined: int, apart: int) -> Plan:
    """The plan with the reasons of one with more fusion: edges that only that one connects do not pay, in all."""
    connected = {edge for group in other.groups for edge in group.connect}
    reasons = {reason.edge: reason for reason in other.refusals}
    reasons |= {e: Refusal(e, "slower", {"joined": joined, "apart": apart}) for e in connected}
    return replace(plan, refusals=tuple(reasons.get(reason.edge, reason) for reason in plan.refusals))
