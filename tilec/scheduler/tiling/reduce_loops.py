"""Reduce loops at a core's level: how often they go round, and what lives in them (W08)."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilec.scheduler.analysis.window_propagation import extent_of
from tilec.scheduler.tiling.tiling_problem import TilingProblem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Steps = Mapping[str, Mapping[str, Ints]]
"""Node -> reduce iterator -> reduce steps."""


class ReduceLoops:
    """Reduce loops at a core's level: how often they go round, what lives in them, how often sums are added to."""

    def __init__(self, problem: TilingProblem, steps: Steps) -> None:
        self.problem = problem
        self.steps = problem.group.spread(steps)
        self.rounds: dict[str, Floats] = {}
        self.inside: dict[str, dict[str, frozenset[str]]] = {}
        self.sums: dict[str, Floats] = {}
        self.sharing: dict[str, frozenset[str]] = {}
        for node in problem.group.nodes:
            if node.name in steps:
                extents = {i: extent_of(node.expr.domain[i], problem.numbers) for i in steps[node.name]}
                self.rounds[node.name] = np.asarray(
                    prod(-(-extents[i] // np.maximum(n, 1)) for i, n in steps[node.name].items()), np.float64
                )
                self.inside[node.name] = problem.group.inside(node.name, tuple(steps[node.name]))
                self.sharing[node.name] = frozenset(problem.group.sharing(node.name))
                self.sums |= dict.fromkeys(self.sharing[node.name], self.rounds[node.name])

    def times(self, tensor: str) -> Floats:
        """How often a task loads a window of a tensor from outside: loads that a loop does not move stand before it."""
        most: Floats = np.asarray(1.0)
        for _, seat, node in self.problem.group.readers[tensor] if self.inside else ():
            times: Floats = np.asarray(1.0)
            for stepped, moving in self.inside.items():
                if seat.moves(moving.get(node, frozenset())):
                    times = times * self.rounds[stepped]
            most = np.maximum(most, times)
        return most

    def around(self, part: int) -> Floats:
        """How often a part runs in a task; a reduction that a loop cuts runs once."""
        names = [node.name for node in self.problem.group.parts[part]]
        return prod(
            (
                self.rounds[s]
                for s, moving in self.inside.items()
                if names[-1] in moving and self.sharing[s].isdisjoint(names)
            ),
            start=np.asarray(1.0),
        )

    def span(self, tensor: str, first: int, last: int) -> tuple[int, int]:
        """The parts during which a window is held: all of a loop that does not move it."""
        problem = self.problem
        for stepped, moving in self.inside.items():
            members = [problem.group.made[name] for name in moving]
            low, high = min(members), max(members)
            summed = tensor in self.sharing[stepped]
            if tensor in moving and not summed:
                continue
            if last < low or first > high:
                continue
            reads = [(seat, n) for _, seat, n in problem.group.readers.get(tensor, []) if n in moving]
            if summed or not any(seat.moves(moving[n]) for seat, n in reads):
                first, last = min(first, low), max(last, high)
        return first, last
