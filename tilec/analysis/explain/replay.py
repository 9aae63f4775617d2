"""The search for a plan, run again: which whole plans were compared, and which groups were decided where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

from tilec.ir.graph import Graph
from tilec.ir.plan import Plan, Refusal
from tilec.scheduler.explain_search import (
    Decide,
    GroupBuilder,
    GroupSet,
    LegalGroup,
    Members,
    PartitionGroups,
    PlanCandidate,
    PlanState,
    RecordedTrace,
    SearchState,
    TargetModel,
    TraceEntry,
    apollo_rules,
    counted_plan,
    last_core,
    lineage,
    partition_options,
    replay_search,
)
from tilec.spec.device import DeviceSpec
from tilec.spec.recipe import ScheduleOptions


@dataclass(frozen=True, eq=False)
class Replay:
    """The search for a plan, run again: its last state and its trace."""

    options: ScheduleOptions
    state: PlanState
    trace: RecordedTrace
    decide: Decide | None = None

    @property
    def target(self) -> TargetModel:
        """The device as the search sees it."""
        return self.state.search.root.target

    @property
    def candidates(self) -> tuple[PlanCandidate, ...]:
        """The whole plans that were compared, that with most fusion first."""
        return self.state.candidates

    @property
    def best(self) -> PlanCandidate:
        """The candidate that was taken."""
        return self.state.taken

    @cached_property
    def fullest(self) -> PlanCandidate:
        """The candidate with most fusion of the graph that was taken: it gives the reasons."""
        return next(candidate for candidate in self.candidates if candidate.draft is self.best.draft)

    @property
    def thresholds(self) -> PartitionGroups:
        """By which groups are joined at a core's level."""
        return partition_options(self.state.search.steps)

    @cached_property
    def plan(self) -> Plan:
        """The plan, its traffic counted."""
        return counted_plan(self.state, self.decide)

    @cached_property
    def refusals(self) -> dict[str, Refusal]:
        """Edge -> why it is not connected, as the search says it."""
        return {refusal.edge: refusal for refusal in self.plan.refusals}

    @cached_property
    def rules(self) -> dict[str, str]:
        """Edge -> the rule by which `fusion: apollo` joins its ends."""
        return apollo_rules(self.fullest)

    def entries(self, state: SearchState, *nodes: str) -> list[TraceEntry]:
        """The steps that led to a state, in order; below a core's level with those of the last search at a core's
        level that has all of some nodes, in front of the step that it was part of."""
        known = {id(entry.after): entry for entry in self.trace.entries}
        entries: list[TraceEntry] = []
        for entry in lineage(known, state):
            core = last_core(entry.after, *nodes) if entry.after.cores is not entry.before.cores else None
            entries += [*(lineage(known, core) if core is not None else []), entry]
        return entries

    def home(self, *nodes: str) -> GroupSet | None:
        """The last groups of the candidate that gives the reasons, before their programs were looked at, among which
        all of some nodes are; None where there are none."""
        for segment in reversed(self.fullest.outline):
            for entry in reversed(self.entries(segment, *nodes)):
                state: SearchState = entry.after
                if state.legal is None and state.problem.target.core <= 1:
                    for of in reversed(state.sets):
                        if all(group_of(of, name) is not None for name in nodes):
                            return of
        return None

    @cached_property
    def chosen(self) -> dict[str, tuple[LegalGroup, GroupBuilder]]:
        """Last node of what a core's level holds together -> the group with its tiles, in the plan that was taken, in
        execution order, and what builds it. Of nodes that were cut again with less room the last cut counts."""
        chosen: dict[str, tuple[LegalGroup, GroupBuilder]] = {}
        taken: set[str] = set()
        for state in reversed(self.best.legal):
            for group in reversed(list(_legal(state))):
                if taken.isdisjoint(group.nodes):
                    taken.update(group.nodes)
                    chosen[group.nodes[-1]] = group, state.builder
        return dict(reversed(chosen.items()))


def _legal(state: SearchState) -> Iterator[LegalGroup]:
    yield from state.legal or ()
    for core in state.cores:
        yield from core.legal or ()


def group_of(of: GroupSet, node: str) -> Members | None:
    """The group that has a node, None where no group has."""
    number = of.problem.home.get(node)
    return next((members for members in of.groups if number in members), None)


def replay(graph: Graph, device: DeviceSpec, options: ScheduleOptions, decide: Decide | None = None) -> Replay:
    """Run the search again, without a tuner; `decide` are the rules of the device's back end. Raises the errors of
    `schedule`."""
    return Replay(options, *replay_search(graph, device, options), decide)


@cache
def unit_of(objective: str) -> str:
    """The unit of what the search minimises."""
    return "picoseconds" if objective == "time" else "bytes"
