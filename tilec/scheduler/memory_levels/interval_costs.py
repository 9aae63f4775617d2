"""Costs of sets of parts at a level below a core's; those that are alike up to names are worked out once (W41)."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field

from tilec.scheduler.memory_levels.incremental_cost import IncrementalCost, LevelCost
from tilec.scheduler.memory_levels.level_problem import LevelProblem
from tilec.scheduler.memory_levels.level_tiles import LevelTiles, coarse
from tilec.scheduler.minimum_capacity import LevelTooSmallError


@dataclass(frozen=True)
class IntervalCosts:
    """Costs of sets of parts of a level's problem, by content."""

    problem: LevelProblem
    known: dict[int, LevelCost] = field(default_factory=dict)
    keys: dict[object, int] = field(default_factory=dict)
    grids: dict[int, LevelTiles] = field(default_factory=dict)

    def grid(self, number: int) -> LevelTiles:
        """Candidate tiles of a part's last node."""
        if number not in self.grids:
            expr = self.problem.parts[number][-1].expr
            self.grids[number] = coarse(expr, self.problem.facts[expr.tensor].extents)
        return self.grids[number]

    def cost(self, members: Sequence[int]) -> LevelCost:
        """The best tile of some parts, in topological order."""
        run = GrowingInterval(self, members[-1], frozenset(members))
        for number in reversed(members):
            run.extend(number)
        return run.best()

    def walk(self, members: Sequence[int], tiles: LevelTiles) -> IncrementalCost:
        """Some parts, in topological order, under given candidates."""
        walk = IncrementalCost(self.problem, tiles, members[-1], frozenset(members))
        for number in reversed(members):
            walk.add(number)
        return walk

    def too_small(self, number: int, cost: LevelCost) -> LevelTooSmallError:
        """What to say of a part of which no tile fits."""
        problem = self.problem
        level = problem.target.levels[problem.level]
        node = problem.parts[number][-1].name
        return LevelTooSmallError(f"level {level.name}", int(cost.held), level.capacity or 0, node, problem.target.name)


class GrowingInterval:
    """Parts added backward, whose cost is only worked out where no equal run is known."""

    def __init__(self, costs: IntervalCosts, final: int, inside: Container[int]) -> None:
        self.costs, self.final, self.inside = costs, final, inside
        self.walk: IncrementalCost | None = None
        self.waiting: list[int] = []
        self.names: dict[str, int] = {}
        self.key = -1

    def extend(self, number: int) -> None:
        """One part more."""
        problem, keys = self.costs.problem, self.costs.keys
        form = problem.forms[number]
        places = tuple(self.names.setdefault(t, len(self.names)) for t in form.tensors)
        leaving = tuple(problem.home.get(t) == number and problem.leaves(t, self.inside) for t in form.tensors)
        self.key = keys.setdefault((self.key, form.number, places, leaving), len(keys))
        self.waiting.append(number)

    def best(self) -> LevelCost:
        """The best tile."""
        known = self.costs.known.get(self.key)
        if known is None:
            known = self.costs.known[self.key] = self._walked().best()
        return known

    def _walked(self) -> IncrementalCost:
        if self.walk is None:
            self.walk = IncrementalCost(self.costs.problem, self.costs.grid(self.final), self.final, self.inside)
        for number in self.waiting:
            self.walk.add(number)
        self.waiting = []
        return self.walk
