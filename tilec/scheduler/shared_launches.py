"""Groups that share a launch: independent ones of which one alone leaves cores idle (Apollo, parallelism stitching;
A03, A12).

A thread takes tasks of the groups of a launch in turn and waits for none of them in between.  Groups that share one
stand behind each other in the plan, and the tensors of all live as long as the launch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import heapreplace
from typing import ClassVar

from tilec.ir.expr import operands
from tilec.ir.plan import Plan, SharedLaunch
from tilec.scheduler.predicted_times.task_terms import TaskTerms, task_terms
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.trace import ListedStep

PICO = 1e12


@dataclass(frozen=True, slots=True)
class LaunchRefusal:
    """Groups that do not share a launch: its predicted picoseconds, and those of the groups one after another."""

    groups: tuple[str, ...]
    joined: int
    apart: int


@dataclass(frozen=True, slots=True)
class LaunchDecision:
    """A plan with its shared launches, and those that were looked at and do not pay (`apart`)."""

    plan: Plan
    apart: tuple[LaunchRefusal, ...] = ()


@dataclass(frozen=True)
class ShareLaunches(ListedStep):
    """Independent groups that share a launch."""

    name: ClassVar[str] = "share_launches"
    template: ClassVar[str] = (
        "a group in whose last round cores are idle for {idle:g} of its time shares its launch with independent ones "
        "among the next {window} where that is predicted to take less than {gain:g} of what they take one after another"
    )

    gain: float = 0.9
    """Groups share a launch where that is predicted to take less than this fraction."""

    idle: float = 0.1
    """Groups are looked at whose tasks leave cores idle for this fraction of the time that they take."""

    window: int = 16
    """Groups that are looked at: what is computed far ahead is gone from caches when it is read."""

    most: int = 8
    """Groups of a launch at most."""

    def run(self, plan: Plan, target: TargetModel) -> LaunchDecision:
        """The plan with its groups in an order in which those that share a launch stand together. Where launches have a
        price of their own, on one core, between calls and at sizes that vary nothing is shared."""
        if target.cores < 2 or target.launch or target.core != 1 or plan.symbols or plan.calls or len(plan.groups) < 2:
            return LaunchDecision(plan)
        return _Sharing(self, plan, target).decided()


@dataclass
class _Sharing:
    """Groups by number, those that have their place in the order, and what was looked at."""

    step: ShareLaunches
    plan: Plan
    target: TargetModel
    placed: set[int] = field(default_factory=set)
    refused: list[LaunchRefusal] = field(default_factory=list)

    @cached_property
    def needs(self) -> list[set[int]]:
        """For every group the groups that it reads."""
        home = {node.name: n for n, group in enumerate(self.plan.groups) for node in group.nodes}
        return [
            {home[t] for node in group.nodes for t in operands(node.expr) if t in home} - {n}
            for n, group in enumerate(self.plan.groups)
        ]

    @cached_property
    def terms(self) -> list[TaskTerms]:
        """What the times of the groups are made of."""
        of = task_terms(self.plan, self.target)
        return [of[group.name] for group in self.plan.groups]

    def decided(self) -> LaunchDecision:
        order: list[int] = []
        launches: list[SharedLaunch] = []
        for first in range(len(self.plan.groups)):
            if first in self.placed:
                continue
            together = self._together(first)
            self.placed.update(together)
            order += together
            if len(together) > 1:
                launches.append(SharedLaunch(self._names(together), self._time(together)))
        groups = tuple(self.plan.groups[n] for n in order)
        return LaunchDecision(replace(self.plan, groups=groups, launches=tuple(launches)), tuple(self.refused))

    def _together(self, first: int) -> list[int]:
        """A group and those that share its launch."""
        together = [first]
        for other in range(first + 1, min(len(self.needs), first + 1 + self.step.window)):
            if len(together) == self.step.most or other in self.placed or not self.needs[other] <= self.placed:
                continue
            if self._idle(together) < self.step.idle:
                break
            joined, apart = self._time([*together, other]), self._time(together) + self._time([other])
            if joined < apart * self.step.gain:
                together.append(other)
            else:
                self.refused.append(LaunchRefusal(self._names([*together, other]), joined, apart))
        return together

    def _idle(self, members: Sequence[int]) -> float:
        """The part of the time of all cores in which groups have no tasks for them, if all tasks take as long."""
        tasks = sum(self.terms[n].tasks for n in members)
        rounds = -(-tasks // self.target.cores)
        return 1 - tasks / (rounds * self.target.cores) if tasks else 0.0

    def _names(self, members: Iterable[int]) -> tuple[str, ...]:
        return tuple(self.plan.groups[n].name for n in members)

    def _time(self, members: Sequence[int]) -> int:
        if len(members) == 1:
            return self.plan.groups[members[0]].cost.picoseconds
        return launch_picoseconds([self.terms[n] for n in members], self.target)


def launch_picoseconds(groups: Sequence[TaskTerms], target: TargetModel) -> int:
    """Predicted time of some groups in one launch: their tasks in turn on whichever core is free, no less than what all
    draw from the lowest level takes with its whole bandwidth."""
    free = [0.0] * target.cores
    for group in groups:
        for _ in range(group.tasks):
            heapreplace(free, free[0] + group.task)
    longest = max(group.task for group in groups)
    span = max(free) + target.costs.imbalance * longest + target.costs.join
    drawn = max(max(group.drawn for group in groups), sum(group.bytes for group in groups) / target.links[target.core])
    return round(PICO * max(span, drawn))


def with_launch_times(plan: Plan, target: TargetModel) -> Plan:
    """The plan with the times of its shared launches, which follow from those of their groups."""
    if not plan.launches:
        return plan
    terms: Mapping[str, TaskTerms] = task_terms(plan, target)
    times = [launch_picoseconds([terms[name] for name in each.groups], target) for each in plan.launches]
    pairs = zip(plan.launches, times, strict=True)
    return replace(plan, launches=tuple(replace(each, picoseconds=time) for each, time in pairs))
