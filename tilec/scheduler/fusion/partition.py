"""Partition of the parts into groups that share a core's level, by predicted cost (Welder's connect, W16; A05, A07,
A11).

Parts stand in an order in which they can run.  Dynamic programming finds the cheapest cut of that order into intervals,
each one group or several single parts; an interval may look worse than its pieces before it is complete, so it grows
until it exceeds the level, or none of several in a row has hope to gain.  Intervals only join neighbours of the order:
afterwards any two groups that share an edge are tried as one, until nothing gains.  A group of any parts is allowed
whose last node depends on all others, or whose other results are tiled along with it (`tiling.further_sinks`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from tilec.ir.plan import Refusal
from tilec.scheduler.analysis.reachability import Reachability
from tilec.scheduler.fusion.group_costs import GroupCosts, cost_numbers
from tilec.scheduler.fusion.interval_partition import partition_intervals
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.graph_passes.fuse_registers import execution_order
from tilec.scheduler.refusals import edge_name, refusal
from tilec.scheduler.state import GroupSet, Members, SearchState, SearchStep
from tilec.scheduler.trace import Advance, Trace, no_advance


@dataclass(frozen=True)
class PartitionGroups(SearchStep):
    """Parts joined to groups that share a core's level."""

    name: ClassVar[str] = "partition_groups"
    template: ClassVar[str] = (
        "the order of the parts is cut into intervals, and groups that share an edge are joined, where that is "
        "predicted to take less than {gain:g} of what it takes as it is"
    )

    patience: int = 10
    """An interval grows no further once this many in a row are no better than one tried before, by a first look.  Of
    an image-restoration network on a GPU 10 finds 8454.9 us in 27 s of search, 30 finds 8454.2 us in 35 s; groups are
    as large with both."""

    gain: float = 0.99
    """A group is joined where it is predicted to cost less than this fraction of its pieces: less is noise."""

    def applies(self, state: SearchState) -> bool:
        """Only full fusion holds several parts at a core's level."""
        return super().applies(state) and state.options.fusion == "full"

    def run(self, state: SearchState, trace: Trace) -> SearchState:
        """Groups with the least predicted cost."""
        partition = partition_parts(state.problem, state.refused, self, partial(trace.advance, self.name))
        return replace(state, sets=(GroupSet(state.problem, partition.groups),), refused=partition.refused)


@dataclass(frozen=True, slots=True)
class Partition:
    """Groups in execution order; why edges between groups are not connected."""

    groups: tuple[Members, ...]
    refused: Mapping[str, Refusal]


def separate_parts(problem: FusionProblem, refused: Mapping[str, Refusal]) -> Partition:
    """Every part a group of its own."""
    return Partition(tuple((n,) for n in range(len(problem.parts))), refused)


def partition_parts(
    problem: FusionProblem,
    refused: Mapping[str, Refusal],
    options: PartitionGroups,
    advance: Advance = no_advance,
) -> Partition:
    """The groups with the least predicted cost; `refused` says why edges are not inside parts."""
    costs = GroupCosts(problem, options.gain)
    groups = merge_groups(costs, partition_intervals(costs, options.patience, advance), options)
    return Partition(groups, partition_refusals(costs, groups, refused))


def merge_groups(costs: GroupCosts, groups: Sequence[Members], options: PartitionGroups) -> tuple[Members, ...]:
    """Groups that share an edge merged, as long as that gains and no path between them leads through others (A05)."""
    problem = costs.problem
    members = list(groups)
    home = {n: g for g, numbers in enumerate(members) for n in numbers}
    ancestry = Reachability()
    for _ in members:
        ancestry.add()
    for g, numbers in enumerate(members):
        ancestry.read(g, {home[m] for n in numbers for m in problem.needs[n]} - {g})
    again = True
    while again:
        again = False
        for reader in range(len(members)):
            for producer in sorted({home[m] for n in members[reader] for m in problem.needs[n]} - {reader}):
                joined = tuple(sorted((*members[producer], *members[reader])))
                if _through_others(problem, ancestry, home, members, producer, reader):
                    continue
                apart = costs.total((members[producer], members[reader])) * options.gain
                cost = costs.cost(joined, apart)
                if isinstance(cost, Refusal) or cost >= apart:
                    continue
                members[reader], members[producer] = joined, ()
                home |= dict.fromkeys(joined, reader)
                ancestry.read(producer, [reader])
                ancestry.read(reader, [producer])
                again = True
    groups = [numbers for numbers in members if numbers]
    place = {n: i for i, numbers in enumerate(groups) for n in numbers}
    needs = [{place[m] for n in numbers for m in problem.needs[n]} - {i} for i, numbers in enumerate(groups)]
    return tuple(groups[i] for i in execution_order(needs, [numbers[-1] for numbers in groups]))


def _through_others(
    problem: FusionProblem,
    ancestry: Reachability,
    home: Mapping[int, int],
    members: Sequence[Members],
    producer: int,
    reader: int,
) -> bool:
    """Whether another path from the producer to the reader leaves both (A07)."""
    outside = {home[m] for g in (producer, reader) for n in members[g] for m in problem.needs[n]} - {producer, reader}
    return any(ancestry.leads(producer, other) for other in outside)


def partition_refusals(
    costs: GroupCosts, groups: Sequence[Members], refused: Mapping[str, Refusal]
) -> dict[str, Refusal]:
    """Why edges between groups are not connected: what joining the two groups comes to."""
    problem = costs.problem
    home = {n: g for g, numbers in enumerate(groups) for n in numbers}
    reasons = dict(refused)
    for reader, edges in enumerate(problem.edges):
        for tensor, name in edges:
            producer = home[problem.home[tensor]]
            if producer == home[reader]:
                reasons.pop(edge_name(tensor, name), None)
                continue
            joined = tuple(sorted((*groups[producer], *groups[home[reader]])))
            apart = costs.total((groups[producer], groups[home[reader]]))
            reason = costs.cost(joined, apart)
            if not isinstance(reason, Refusal):
                gains = reason < apart * costs.gain
                reason = (
                    refusal("", "", "cycle")
                    if gains
                    else refusal("", "", "slower", **cost_numbers(reason, apart, problem, costs.gain))
                )
            reasons[edge_name(tensor, name)] = Refusal(edge_name(tensor, name), reason.code, reason.numbers)
    return reasons
