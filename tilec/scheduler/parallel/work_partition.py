"""Partition of the parts of a graph into consecutive ranges of about equal search work."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from tilec.scheduler.fusion.group_costs import MAX_PARTS
from tilec.scheduler.fusion_problem import FusionProblem

MIN_PARTS = 2000
"""Parts of candidate groups that are worth a process: evaluating one takes about a millisecond per part, and groups
that occur in several ranges are evaluated once in every process."""

CandidateCounts = Sequence[tuple[int, object]]
"""The candidate groups that end with a part: the number of parts before it, and the group's content up to tensor
names."""


def partition_work(atoms: FusionProblem, most: int) -> tuple[range, ...]:
    """The places of the parts in up to `most` consecutive ranges of balanced work.

    Equal groups are evaluated once per range, at a cost proportional to their parts. Parts that must stay together are
    in one range.
    """
    places = range(len(atoms.parts))
    if most == 1:
        return (places,)
    candidates = _candidate_counts(atoms)
    whole = sum({key: before for ending in candidates for before, key in ending}.values())
    count = max(1, min(most, whole // MIN_PARTS))
    if count == 1:
        return (places,)
    inside = atoms.inside
    least = bisect_left(range(whole), True, key=lambda work: len(_ranges_within(candidates, inside, work)) <= count)
    return _ranges_within(candidates, inside, least)


def _candidate_counts(atoms: FusionProblem) -> list[CandidateCounts]:
    """For every part the candidate groups that end with it; parts with equal predecessors share the result."""
    numbers = [described.number for described in atoms.descriptions]
    by_window: dict[tuple[int, ...], CandidateCounts] = {}
    counts: list[CandidateCounts] = []
    for last in range(len(numbers)):
        window = tuple(numbers[max(0, last + 1 - MAX_PARTS) : last + 1])
        if window not in by_window:
            by_window[window] = _groups_ending_at(atoms, last)
        counts.append(by_window[window])
    return counts


def _groups_ending_at(atoms: FusionProblem, last: int) -> CandidateCounts:
    groups = []
    for start in range(last - 1, max(-1, last - MAX_PARTS), -1):
        members = tuple(range(start, last + 1))
        if atoms.joins(start, last + 1):
            groups.append((last - start, atoms.key(members, atoms.leaving(members))))
    return groups


def _ranges_within(candidates: Sequence[CandidateCounts], inside: frozenset[int], most: int) -> tuple[range, ...]:
    """Consecutive ranges, each as long as its work does not exceed `most`."""
    starts, evaluated, work = [0], set[object](), 0
    for last, ending in enumerate(candidates):
        new = {key: before for before, key in ending if last - before >= starts[-1] and key not in evaluated}
        if work + sum(new.values()) > most and last > starts[-1] and last not in inside:
            starts.append(last)
            evaluated, work = set(), 0
        else:
            evaluated |= new.keys()
            work += sum(new.values())
    return tuple(map(range, starts, [*starts[1:], len(candidates)]))
