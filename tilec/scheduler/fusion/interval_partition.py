"""runs: the best cut of the order of parts into groups, by dynamic programming (W16).

Most of a search is spent here.  Where processors are idle, processes beside this one go through later stretches of the
order and hand back what they found out about groups; this one goes through all of it, with less left to look at.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from math import inf
from typing import Any

from tilec.ir.plan import Refusal
from tilec.scheduler.fusion.group_costs import MAX_PARTS, GroupCosts
from tilec.scheduler.parallel.child_process import in_child_process, process_count
from tilec.scheduler.parallel.work_partition import partition_work


def partition_intervals(trial: GroupCosts) -> tuple[tuple[int, ...], ...]:
    """The best cut of the parts' order into runs; parts that stay together are not cut."""
    whole = _Walk(trial, 0)
    first, *others = partition_work(trial.atoms, process_count())
    with ExitStack() as running:
        found = [running.enter_context(in_child_process(partial(_found_out, trial, own))) for own in others]
        whole.go_to(first.stop)
        for own, answer in zip(others, found, strict=True):
            for memory, news in zip(trial.memories, answer() or (), strict=False):
                memory.update((key, value) for key, value in news.items() if key not in memory)
            whole.go_to(own.stop)
    return whole.groups()


def _found_out(trial: GroupCosts, stretch: range) -> tuple[dict[Any, Any], ...]:
    """What going through a stretch adds to what is remembered."""
    before = [len(memory) for memory in trial.memories]
    _Walk(trial, stretch.start).go_to(stretch.stop)
    return tuple(
        dict(islice(memory.items(), count, None)) for memory, count in zip(trial.memories, before, strict=True)
    )


@dataclass(frozen=True)
class _Walk:
    """The best cuts of parts from `first` on: for every place what the parts before it cost, and where the last of
    their groups begins."""

    trial: GroupCosts
    first: int
    best: list[float] = field(default_factory=lambda: [0.0])
    cut: list[int] = field(default_factory=list)

    def go_to(self, stop: int) -> None:
        """Find the best cuts of the parts up to another place."""
        for end in range(self.first + len(self.best), stop + 1):
            cost, start = self._last(end)
            self.best.append(cost)
            self.cut.append(start)

    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The best cut of all parts so far."""
        found: list[tuple[int, ...]] = []
        end = self.first + len(self.cut)
        while end > self.first:
            found.append(tuple(range(self.cut[end - self.first - 1], end)))
            end = found[-1][0]
        return tuple(reversed(found))

    def _last(self, end: int) -> tuple[float, int]:
        """What the parts before a place cost at best, and where the last of their groups begins."""
        trial, inside = self.trial, self.trial.atoms.inside
        where = next(start for start in range(end - 1, -1, -1) if start not in inside)
        found = self._before(where) + trial.total([tuple(range(where, end))]) if end not in inside else inf
        promising: list[tuple[float, int]] = []
        for start in range(where - 1, max(self.first - 1, end - 1 - MAX_PARTS), -1):
            if start in inside or end in inside or self._before(start) == inf or not trial.atoms.joins(start, end):
                continue
            hope = trial.hope(tuple(range(start, end)))
            if not isinstance(hope, Refusal):
                promising.append((self._before(start) + trial.atoms.look(tuple(range(start, end)))[1], start))
            elif hope.code == "capacity":
                break  # what is put before these parts takes room as well
        for _, start in sorted(promising):
            cost = trial.cost(tuple(range(start, end)), found - self._before(start))
            if not isinstance(cost, Refusal) and self._before(start) + cost < found:
                found, where = self._before(start) + cost, start
        return found, where

    def _before(self, start: int) -> float:
        return self.best[start - self.first]
