"""The cheapest cut of the order of parts into intervals, each a group, by dynamic programming (W16).

Most of a search is spent here.  Where processors are idle, child processes go through later stretches of the order and
return the costs that they worked out; this process goes through all of it, with less left to work out.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from math import inf
from typing import Any

from tilec.ir.plan import Refusal
from tilec.scheduler.fusion.group_costs import GroupCosts
from tilec.scheduler.parallel.child_process import in_child_process
from tilec.scheduler.parallel.work_partition import partition_work
from tilec.scheduler.tiling.task_tiles import look_effort
from tilec.scheduler.trace import Advance, no_advance
from tilec.spec.cpus import process_count

CLOSE_LOOKS = 2
"""Close looks at groups with one final part that tell what others of these come to."""


def partition_intervals(costs: GroupCosts, patience: int, advance: Advance = no_advance) -> tuple[tuple[int, ...], ...]:
    """The cheapest cut of the parts' order into intervals; one grows no further once `patience` in a row have no hope
    to gain.  Parts that stay together are not cut."""
    whole = _Cuts(costs, patience, 0, advance)
    first, *others = partition_work(costs.problem, process_count())
    with ExitStack() as running:
        answers = [
            running.enter_context(in_child_process(partial(_new_costs, costs, patience, stretch))) for stretch in others
        ]
        whole.go_to(first.stop)
        for stretch, answer in zip(others, answers, strict=True):
            for memory, news in zip(costs.memories, answer() or (), strict=False):
                memory.update((key, value) for key, value in news.items() if key not in memory)
            whole.go_to(stretch.stop)
    return whole.groups()


def _new_costs(costs: GroupCosts, patience: int, stretch: range) -> tuple[dict[Any, Any], ...]:
    """Entries that a stretch of the order adds to the tables by content."""
    before = [len(memory) for memory in costs.memories]
    _Cuts(costs, patience, stretch.start).go_to(stretch.stop)
    return tuple(
        dict(islice(memory.items(), count, None)) for memory, count in zip(costs.memories, before, strict=True)
    )


@dataclass(frozen=True)
class _Cuts:
    """The cheapest cuts of parts from `first` on: for every place the cost of the parts before it, and where the last
    of their groups begins."""

    costs: GroupCosts
    patience: int
    first: int
    advance: Advance = no_advance
    best: list[float] = field(default_factory=lambda: [0.0])
    cut: list[int] = field(default_factory=list)

    def go_to(self, stop: int) -> None:
        """Find the cheapest cuts of the parts up to another place."""
        for end in range(self.first + len(self.best), stop + 1):
            cost, start = self._last(end)
            self.best.append(cost)
            self.cut.append(start)
            self.advance(end, len(self.costs.problem.parts))

    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The cheapest cut of all parts so far."""
        groups: list[tuple[int, ...]] = []
        end = self.first + len(self.cut)
        while end > self.first:
            groups.append(tuple(range(self.cut[end - self.first - 1], end)))
            end = groups[-1][0]
        return tuple(reversed(groups))

    def _last(self, end: int) -> tuple[float, int]:
        """The least cost of the parts before a place, and where the last of their groups begins."""
        costs, problem = self.costs, self.costs.problem
        inside = problem.inside
        where = next(start for start in range(end - 1, -1, -1) if start not in inside)
        least = self._before(where) + costs.total([tuple(range(where, end))]) if end not in inside else inf
        promising: list[tuple[float, int]] = []
        nearest, worse = least, 0
        for start in range(where - 1, self.first - 1, -1):
            if start in inside or end in inside or self._before(start) == inf or not problem.joins(start, end):
                continue
            bound = costs.lower_bound(tuple(range(start, end)))
            worse += 1
            if not isinstance(bound, Refusal):
                about = self._before(start) + problem.look(tuple(range(start, end))).objective
                promising.append((about, start))
                nearest, worse = min(nearest, about), worse if about >= nearest else 0
            elif bound.code in ("capacity", "length"):
                break  # what is put before these parts takes room as well
            if worse > self.patience:
                break
        return self._closest(end, sorted(promising), least, where)

    def _closest(self, end: int, promising: Sequence[tuple[float, int]], least: float, where: int) -> tuple[float, int]:
        """The same with groups that begin at `promising` places, each with about what all parts come to then. What
        close looks found of the first says which of the others need one."""
        spread, found = look_effort(self.costs.problem.target).spread, list[float]()
        for about, start in promising:
            before = self._before(start)
            if len(found) >= CLOSE_LOOKS and before + (about - before) * (min(found) - spread) >= least:
                continue
            cost = self.costs.cost(tuple(range(start, end)), least - before)
            if isinstance(cost, Refusal):
                continue
            if about > before:
                found.append(cost / (about - before))
            if before + cost < least:
                least, where = before + cost, start
        return least, where

    def _before(self, start: int) -> float:
        return self.best[start - self.first]
