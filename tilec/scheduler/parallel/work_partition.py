"""Partition of the parts of a graph into consecutive ranges of about equal search work."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from tilec.scheduler.fusion_problem import FusionProblem

MIN_PARTS = 2000
"""Parts of candidate groups that are worth a process: evaluating one takes about a millisecond per part, and groups
that occur in several ranges are evaluated once in every process."""

COUNTED_PARTS = 16
"""Parts of the longest candidate groups that the work is counted by.  Longer ones are tried where they have hope, which
is known when they are looked at."""

CandidateCounts = Sequence[tuple[int, object]]
"""The candidate groups that end with a part: the number of parts before it, and the group's content up to tensor
names."""


def partition_work(problem: FusionProblem, most: int) -> tuple[range, ...]:
    """The places of the parts in up to `most` stretches: groups that are alike are looked at once in each, and what a
    look takes grows with their parts.  Parts that stay together are in one."""
    places = range(len(problem.parts))
    if most == 1:
        return (places,)
    looks = _looks(problem)
    whole = sum({key: before for ending in looks for before, key in ending}.values())
    count = max(1, min(most, whole // MIN_PARTS))
    if count == 1:
        return (places,)
    inside = problem.inside
    least = bisect_left(range(whole), True, key=lambda work: len(_divided(looks, inside, work)) <= count)
    return _divided(looks, inside, least)


def _looks(problem: FusionProblem) -> list[CandidateCounts]:
    """For every part the groups that end with it; parts behind the same ones in the same order have the same."""
    numbers = [described.number for described in problem.descriptions]
    known: dict[tuple[int, ...], CandidateCounts] = {}
    found: list[CandidateCounts] = []
    for last in range(len(numbers)):
        window = tuple(numbers[max(0, last + 1 - COUNTED_PARTS) : last + 1])
        if window not in known:
            known[window] = _ending(problem, last)
        found.append(known[window])
    return found


def _ending(problem: FusionProblem, last: int) -> CandidateCounts:
    found = []
    for start in range(last - 1, max(-1, last - COUNTED_PARTS), -1):
        members = tuple(range(start, last + 1))
        if problem.joins(start, last + 1):
            found.append((last - start, problem.key(members, problem.leaving(members))))
    return found


def _divided(looks: Sequence[CandidateCounts], inside: frozenset[int], most: int) -> tuple[range, ...]:
    """Stretches in order, each as long as its work is no more than some."""
    starts, seen, work = [0], set[object](), 0
    for last, ending in enumerate(looks):
        new = {key: before for before, key in ending if last - before >= starts[-1] and key not in seen}
        if work + sum(new.values()) > most and last > starts[-1] and last not in inside:
            starts.append(last)
            seen, work = set(), 0
        else:
            seen |= new.keys()
            work += sum(new.values())
    return tuple(map(range, starts, [*starts[1:], len(looks)]))
