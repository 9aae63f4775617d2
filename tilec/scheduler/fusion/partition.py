"""partition: which parts share a core's level, by predicted time (Welder's connect, W16; A05, A07, A11).

Parts stand in an order in which they can run.  Dynamic programming finds the best cut of that order into runs, each
one group or several single parts; a run may look worse than its pieces before it is complete, so all runs up to a
length are tried.  Runs only join neighbours of the order: afterwards any two groups that share an edge are tried as
one, until nothing gains.  A group of any parts is allowed whose last node depends on all others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilec.ir.plan import Refusal
from tilec.scheduler.analysis.reachability import Reachability
from tilec.scheduler.fusion.group_costs import JOIN_GAIN, MAX_PARTS, GroupCosts, cost_numbers
from tilec.scheduler.fusion.interval_partition import partition_intervals
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.graph_passes.fuse_registers import execution_order
from tilec.scheduler.refusals import edge_name, refusal


@dataclass(frozen=True, slots=True)
class Partition:
    """Groups in execution order, each the numbers of its parts; why edges between groups are not connected."""

    groups: tuple[tuple[int, ...], ...]
    refused: Mapping[str, Refusal]


def separate_parts(atoms: FusionProblem, refused: Mapping[str, Refusal]) -> Partition:
    """Every part a group of its own."""
    return Partition(tuple((n,) for n in range(len(atoms.parts))), refused)


def partition_parts(atoms: FusionProblem, refused: Mapping[str, Refusal]) -> Partition:
    """The groups with the least predicted time; `refused` says why edges are not inside parts."""
    trial = GroupCosts(atoms)
    groups = _improved(trial, partition_intervals(trial))
    return Partition(groups, refusals(trial, groups, refused))


def _improved(trial: GroupCosts, groups: Sequence[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    """Groups that share an edge joined, as long as that gains and no path between them leads through others."""
    atoms = trial.atoms
    members = list(groups)
    home = {n: g for g, numbers in enumerate(members) for n in numbers}
    ancestry = Reachability()
    for _ in members:
        ancestry.add()
    for g, numbers in enumerate(members):
        ancestry.read(g, {home[m] for n in numbers for m in atoms.needs[n]} - {g})
    again = True
    while again:
        again = False
        for reader in range(len(members)):
            for producer in sorted({home[m] for n in members[reader] for m in atoms.needs[n]} - {reader}):
                joined = tuple(sorted((*members[producer], *members[reader])))
                if len(joined) > MAX_PARTS or _through_others(atoms, ancestry, home, members, producer, reader):
                    continue
                apart = trial.total((members[producer], members[reader])) * JOIN_GAIN
                cost = trial.cost(joined, apart)
                if isinstance(cost, Refusal) or cost >= apart:
                    continue
                members[reader], members[producer] = joined, ()
                home |= dict.fromkeys(joined, reader)
                ancestry.read(producer, [reader])
                ancestry.read(reader, [producer])
                again = True
    kept = [numbers for numbers in members if numbers]
    place = {n: i for i, numbers in enumerate(kept) for n in numbers}
    needs = [{place[m] for n in numbers for m in atoms.needs[n]} - {i} for i, numbers in enumerate(kept)]
    return tuple(kept[i] for i in execution_order(needs, [numbers[-1] for numbers in kept]))


def _through_others(
    atoms: FusionProblem,
    ancestry: Reachability,
    home: Mapping[int, int],
    members: Sequence[tuple[int, ...]],
    producer: int,
    reader: int,
) -> bool:
    """Whether another path from the producer to the reader leaves both (A07)."""
    outside = {home[m] for g in (producer, reader) for n in members[g] for m in atoms.needs[n]} - {producer, reader}
    return any(ancestry.leads(producer, other) for other in outside)


def refusals(
    trial: GroupCosts, groups: Sequence[tuple[int, ...]], refused: Mapping[str, Refusal]
) -> dict[str, Refusal]:
    """Why edges between groups are not connected: what joining the two groups comes to."""
    atoms = trial.atoms
    home = {n: g for g, numbers in enumerate(groups) for n in numbers}
    found = dict(refused)
    for reader, edges in enumerate(atoms.edges):
        for tensor, name in edges:
            producer = home[atoms.home[tensor]]
            if producer == home[reader]:
                found.pop(edge_name(tensor, name), None)
                continue
            joined = tuple(sorted((*groups[producer], *groups[home[reader]])))
            apart = trial.total((groups[producer], groups[home[reader]]))
            if len(joined) > MAX_PARTS:
                reason: float | Refusal = refusal("", "", "length", parts=len(joined), most=MAX_PARTS)
            else:
                reason = trial.cost(joined, apart)
            if not isinstance(reason, Refusal):
                gains = reason < apart * JOIN_GAIN
                reason = (
                    refusal("", "", "cycle")
                    if gains
                    else refusal("", "", "slower", **cost_numbers(reason, apart, atoms))
                )
            found[edge_name(tensor, name)] = Refusal(edge_name(tensor, name), reason.code, reason.numbers)
    return found
