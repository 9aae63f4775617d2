"""The search for a plan, run again and kept: which rivals there were, and which parts were tried where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from tilec.ir.graph import Graph
from tilec.ir.plan import Plan, Refusal
from tilec.scheduler.building.group_builder import GroupBuilder
from tilec.scheduler.building.plan_costs import with_costs
from tilec.scheduler.fusion.partition import Partition, separate_parts
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.plan_candidates import PlanCandidate, cheapest, plan_candidates, with_refusals
from tilec.scheduler.schedule import prepare_search
from tilec.scheduler.segment_schedule import SegmentSchedule
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.tiling.task_tiles import TaskTile
from tilec.spec.device import DeviceSpec
from tilec.spec.recipe import ScheduleOptions


@dataclass(frozen=True)
class PartitionedParts:
    """Where a core's level was filled: the parts that were tried together there, and their groups before programs of
    them were looked at, with the reasons why there are no larger ones."""

    atoms: FusionProblem
    grouping: Partition

    def has(self, *nodes: str) -> bool:
        """Whether all of some nodes are among the parts."""
        return all(name in self.atoms.home for name in nodes)

    def group(self, node: str) -> tuple[int, ...]:
        """The group that holds a node, as numbers of its parts."""
        number = self.atoms.home[node]
        return next(members for members in self.grouping.groups if number in members)


@dataclass(frozen=True, eq=False)
class Replay:
    """What the search for a plan found when it was run again.

    `plan` is what it comes to; `rivals` are the whole plans that were compared, `fullest` the one with most fusion of
    the graph that was chosen: it gives the reasons.
    """

    options: ScheduleOptions
    target: TargetModel
    rivals: tuple[PlanCandidate, ...]

    @cached_property
    def best(self) -> PlanCandidate:
        """The rival that was taken."""
        return cheapest(self.rivals)

    @cached_property
    def fullest(self) -> PlanCandidate:
        """The rival with most fusion of the graph that was taken."""
        return next(rival for rival in self.rivals if rival.draft is self.best.draft)

    @cached_property
    def plan(self) -> Plan:
        """The plan, its traffic counted."""
        return with_costs(with_refusals(self.best.outline.plan, self.rivals))

    @cached_property
    def refusals(self) -> dict[str, Refusal]:
        """Edge -> why it is not connected, as the search says it."""
        return {refusal.edge: refusal for refusal in self.plan.refusals}

    def segment(self, *nodes: str) -> SegmentSchedule | None:
        """The part of the graph, of the rival that gives the reasons, in which all of some nodes are."""
        for segment in self.fullest.outline.segments:
            if set(nodes) <= {node.name for part in segment.fused.parts for node in part}:
                return segment
        return None

    @cached_property
    def homes(self) -> tuple[PartitionedParts, ...]:
        """Where groups were chosen of the rival that gives the reasons, the last decision on a part last."""
        segments = self.fullest.outline.segments
        if self.fullest.fusion == "full":
            return tuple(PartitionedParts(*found) for found in segments[0].builder.groupings)
        apart = [segment.atoms for segment in segments if segment.atoms is not None]
        return tuple(PartitionedParts(atoms, separate_parts(atoms, {})) for atoms in apart)

    def home(self, *nodes: str) -> PartitionedParts | None:
        """The last place where all of some nodes were among the parts; None where there is none."""
        return next((home for home in reversed(self.homes) if home.has(*nodes)), None)

    @cached_property
    def chosen(self) -> dict[str, tuple[FusionProblem, tuple[int, ...], TaskTile, GroupBuilder]]:
        """Last node of what a core's level holds together -> its parts and its tile, in the plan that was taken, in
        execution order. Of nodes that were cut again with less room the last cut counts."""
        found: dict[str, tuple[FusionProblem, tuple[int, ...], TaskTile, GroupBuilder]] = {}
        taken: set[str] = set()
        for segment in reversed(self.best.outline.segments):
            nested = [each for _, own in segment.nest.cores for each in own] if segment.nest is not None else []
            for own, members, tile in reversed([*(segment.settled.groups or []), *nested]):
                nodes = [node.name for number in members for node in own.parts[number]]
                if taken.isdisjoint(nodes):
                    taken.update(nodes)
                    found[nodes[-1]] = own, members, tile, segment.builder
        return dict(reversed(found.items()))


def replay(
    graph: Graph, device: DeviceSpec, options: ScheduleOptions, sizes: Mapping[str, int] | None = None
) -> Replay:
    """Run the search again, without a tuner. Raises what `schedule` raises."""
    search = prepare_search(graph, device, options, sizes=sizes)
    rivals = plan_candidates(search, search.drafts, search.options, search.root.numbers)
    return Replay(options, search.root.target, rivals)


@cache
def unit_of(objective: str) -> str:
    """What the search counts in."""
    return "picoseconds" if objective == "time" else "bytes"
