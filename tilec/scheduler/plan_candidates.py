"""Whole plans of one graph with more and less fusion, of which the one that is predicted cheapest is taken (W16).

A pass that computes elements again, or a part that shares registers, is decided before tiles are known; what it comes
to shows in the finished plan.  So no plan is worse than one of the same graph with less fusion.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Literal

from tilec.ir.bind_plan import bind_plan
from tilec.ir.graph import Graph
from tilec.ir.plan import Plan, Refusal
from tilec.scheduler.building.assemble_plan import assemble_plan
from tilec.scheduler.building.group_builder import GroupBuilder, picoseconds
from tilec.scheduler.building.plan_costs import tiled_traffic, with_costs
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.refusals import RewrittenGraph
from tilec.scheduler.segments import segments_of
from tilec.scheduler.state import SearchState, SearchStep, run_steps
from tilec.scheduler.trace import NO_TRACE, ListedStep, Trace
from tilec.scheduler.tuning.tuner import Tuner
from tilec.spec.recipe import ScheduleOptions

Fusion = Literal["none", "register", "apollo", "full"]


@dataclass(frozen=True)
class PlanSearch:
    """What all whole plans of a graph have in common.

    graph    the graph as it was given
    options  the recipe's options
    root     the problem without parts: graph, target, objective, and the cache
    drafts   the graph after its passes; behind it, where that differs, after all but optional ones, last after none
    steps    the steps that lead to groups
    """

    graph: Graph
    options: ScheduleOptions
    root: FusionProblem
    drafts: tuple[RewrittenGraph, ...]
    steps: tuple[SearchStep, ...]
    trace: Trace = NO_TRACE

    def candidate(self, draft: RewrittenGraph, fusion: Fusion, tuner: Tuner | None = None) -> PlanCandidate:
        """The plan of a draft with a way to fuse, outlined; a tuner chooses its tiles."""
        builder = GroupBuilder(draft.graph)
        label = ", ".join((f"fusion {fusion}", *draft.without))
        options = self.options.model_copy(update={"fusion": fusion})
        starts = []
        for segment in segments_of(draft.graph):
            outputs = frozenset(port.tensor for port in segment.outputs)
            problem = replace(self.root, graph=segment, outputs=outputs)
            starts.append(SearchState(problem, options, self.steps, builder, label, tuner))
        steps = [step for step in self.steps if step.stage == "outline"]
        return PlanCandidate(self, draft, fusion, tuple(run_steps(steps, start, self.trace) for start in starts))


@dataclass(frozen=True, eq=False)
class PlanCandidate:
    """A whole plan; tiles are only looked at, and groups only built, when that is asked for.

    `outline` is the state of every segment after the steps that all candidates go through.
    """

    search: PlanSearch
    draft: RewrittenGraph
    fusion: Fusion
    outline: tuple[SearchState, ...]

    @property
    def tuner(self) -> Tuner | None:
        """What chooses tiles; None: the first is taken."""
        return self.outline[0].tuner

    @cached_property
    def legal(self) -> tuple[SearchState, ...]:
        """The segments with tiles that are legal and fit; costs about as much as the outline on explicit levels."""
        steps = [step for step in self.search.steps if step.stage == "legal"]
        return tuple(run_steps(steps, state, self.search.trace) for state in self.outline)

    @cached_property
    def built(self) -> tuple[SearchState, ...]:
        """The segments with their groups."""
        steps = [step for step in self.search.steps if step.stage == "built"]
        return tuple(run_steps(steps, state, self.search.trace) for state in self.legal)

    @cached_property
    def plan(self) -> Plan:
        """The plan, its traffic not yet counted."""
        groups = [group for state in self.built for group in state.groups or ()]
        refused = dict(self.draft.refused)
        for state in self.built:
            refused |= state.refused
        builder = self.outline[0].builder
        packs = tuple(builder.packs.values())
        return assemble_plan(self.search.graph, builder.graph, groups, packs, refused, self.search.root.target)

    @property
    def counts_bytes(self) -> bool:
        """Whether plans are compared by bytes of the lowest level instead of picoseconds."""
        return self.search.options.objective == "traffic"

    @cached_property
    def lower_bound(self) -> int:
        """What `cost` is not less than, as far as can be told from the outline."""
        return self.cost if self.counts_bytes else sum(picoseconds(n) for state in self.outline for n in state.seconds)

    @cached_property
    def cost(self) -> int:
        """Predicted picoseconds, or bytes, symbols counting as the sizes they are taken for."""
        if self.counts_bytes:
            bound = bind_plan(self.plan, self.search.root.scenarios[0])
            return int(self.search.root.numbers.size(tiled_traffic(with_costs(bound))))
        return sum(picoseconds(each) for state in self.legal for each in state.seconds)


@dataclass(frozen=True, eq=False)
class PlanState:
    """Whole plans of a graph: the candidates, that with most fusion first, and which one is taken.

    A tuner chooses tiles of that one.
    """

    search: PlanSearch
    tuner: Tuner | None = None
    candidates: tuple[PlanCandidate, ...] = field(default=())
    best: PlanCandidate | None = None

    @property
    def quick(self) -> PlanCandidate | None:
        """The candidate that a search with little effort takes; None where there is none beside."""
        registers = [each for each in self.candidates if each.fusion == "register"]
        return min(registers, key=lambda each: each.lower_bound, default=None)

    @property
    def taken(self) -> PlanCandidate:
        """The candidate that is taken: the asked fusion where no step compared any."""
        return self.best if self.best is not None else self.candidates[0]

    @cached_property
    def plan(self) -> Plan:
        """The plan that is taken, with the reasons of those with more fusion; its traffic is not yet counted."""
        best = self.taken
        tuned = best if best.tuner is self.tuner else self.search.candidate(best.draft, best.fusion, self.tuner)
        plan = tuned.plan
        for other in reversed(self.candidates[: self.candidates.index(best)]):
            if other.draft is best.draft:
                plan = _explained(plan, other.plan, other.cost, best.cost)
        return plan


class PlanStep(ListedStep, ABC):
    """A step of the search over whole plans."""

    def applies(self, _state: PlanState) -> bool:
        """Whether the step has something to decide."""
        return True

    @abstractmethod
    def run(self, state: PlanState, trace: Trace) -> PlanState:
        """The state after the step."""


@dataclass(frozen=True)
class ComparePlans(PlanStep):
    """The plan with the asked fusion, or with less where that costs less."""

    name: ClassVar[str] = "compare_plans"
    template: ClassVar[str] = (
        "the whole plan is compared with those with less fusion, and the one that costs least is taken"
    )

    near: float = 1.01
    """Times the cost of the draft that register fusion likes best, up to which full fusion is tried on others."""

    def applies(self, state: PlanState) -> bool:
        """Where less fusion, or rules, were not asked for; bytes that groups hold are no sum."""
        options = state.search.options
        return options.tried_fusion in ("register", "full") and options.objective != "footprint"

    def run(self, state: PlanState, _trace: Trace) -> PlanState:
        """All candidates, and the cheapest. Full fusion is tried on the draft that register fusion likes best, and on
        those that it likes about as well."""
        search = state.search
        fused = sorted((search.candidate(draft, "register") for draft in search.drafts), key=lambda c: c.lower_bound)
        full: list[PlanCandidate] = []
        if search.options.tried_fusion == "full":
            drafts = [each.draft for each in fused if each.lower_bound <= fused[0].lower_bound * self.near]
            full = [search.candidate(draft, "full") for draft in drafts]
        candidates = (*full, *fused, search.candidate(search.drafts[-1], "none"))
        return replace(state, candidates=candidates, best=cheapest(candidates))


def cheapest(candidates: Sequence[PlanCandidate]) -> PlanCandidate:
    """The candidate that costs least, of equal ones that with more fusion. Tiles of one whose lower bound is more are
    not looked at."""
    order = sorted(range(len(candidates)), key=lambda place: candidates[place].lower_bound)
    best = order[0]
    for place in order[1:]:
        if (candidates[place].lower_bound, place) < (candidates[best].cost, best):
            best = min(best, place, key=lambda each: (candidates[each].cost, each))
    return candidates[best]


def search_plans(search: PlanSearch, steps: Sequence[PlanStep], tuner: Tuner | None = None) -> PlanState:
    """The whole plans after the steps that compare them; one with the asked fusion where none does."""
    state = PlanState(search, tuner)
    for step in steps:
        if step.applies(state):
            after = step.run(state, search.trace)
            search.trace.record(step, state, after)
            state = after
    if state.candidates:
        return state
    return replace(state, candidates=(search.candidate(search.drafts[0], search.options.tried_fusion, tuner),))


def _explained(plan: Plan, other: Plan, joined: int, apart: int) -> Plan:
    """The plan with the reasons of one with more fusion: edges that only that one connects do not pay, in all."""
    connected = {edge for group in other.groups for edge in group.connect}
    reasons = {reason.edge: reason for reason in other.refusals}
    reasons |= {e: Refusal(e, "slower", {"joined": joined, "apart": apart}) for e in connected}
    return replace(plan, refusals=tuple(reasons.get(reason.edge, reason) for reason in plan.refusals))
