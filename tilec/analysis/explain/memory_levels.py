"""What joining comes to at a level below a core's, by the walk that the search counts with (W46)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf

from tilec.analysis.explain.relax import FACTORS, Relaxation
from tilec.analysis.explain.replay import Replay, unit_of
from tilec.ir.plan import Refusal
from tilec.scheduler.explain_search import (
    PICO,
    IntervalCosts,
    LevelCost,
    LevelProblem,
    Members,
    joining,
    joint_group,
    last_decision,
    problem_of_level,
)
from tilec.scheduler.refusals import refusal


@dataclass(frozen=True, slots=True)
class LevelUse:
    """Parts that a level is asked to hold together: their nodes, what that is predicted to cost (picoseconds or bytes;
    None where no tile fits), bytes over the link from the level below, bytes held."""

    nodes: tuple[str, ...]
    objective: int | None
    moved_bytes: int
    held_bytes: int


@dataclass(frozen=True, slots=True)
class LevelJoin:
    """Two sets of parts at a level, and both as one; `reason` why they are not one, `relaxations` what would have to be
    otherwise, the cheapest first."""

    level: str
    capacity_bytes: int | None
    apart: tuple[LevelUse, LevelUse]
    joined: LevelUse
    reason: Refusal
    relaxations: tuple[Relaxation, ...]


def level_join(replay: Replay, tensor: str, node: str) -> LevelJoin | None:
    """What the last level below a core's that was asked to hold both ends of an edge says of it; None where it holds
    both, or there is no such level."""
    if replay.fullest.fusion != "full":
        return None
    for state in replay.fullest.outline:
        decision = last_decision(state, tensor, node)
        if decision is not None and joint_group(decision, tensor, node) is None:
            sets = [group.members for group in decision.groups]
            return _level_join(replay, problem_of_level(state, decision), sets, tensor, node)
    return None


def _level_join(replay: Replay, problem: LevelProblem, sets: list[Members], tensor: str, node: str) -> LevelJoin:
    pair = _of(sets, problem.home[tensor]), _of(sets, problem.home[node])
    costs, capacity, level = IntervalCosts(problem), problem.capacity, problem.target.levels[problem.level].name
    closed = level in replay.options.closed
    return LevelJoin(
        level,
        None if capacity == inf else int(capacity),
        (_held(costs, pair[0]), _held(costs, pair[1])),
        _held(costs, tuple(sorted((*pair[0], *pair[1])))),
        refusal("", "", "closed", level=level) if closed else joining(costs, sets, pair),
        tuple(_relaxed(problem, pair)),
    )


def _relaxed(problem: LevelProblem, pair: tuple[Members, Members]) -> Iterator[Relaxation]:
    """A larger level, or a slower link from the level below, with which both are predicted to cost less as one.

    A group whose program then exceeds the level after all would still be cut again.
    """
    level, link = problem.target.levels[problem.level], problem.link
    has = level.capacity or 0
    for factor in FACTORS if has else ():
        enough = replace(level, capacity=has * factor)
        levels = (*problem.target.levels[: problem.level], enough, *problem.target.levels[problem.level + 1 :])
        costs = _pays(replace(problem, target=replace(problem.target, levels=levels)), pair)
        if costs is not None:
            yield Relaxation("capacity", level.name, has, has * factor, *costs)
            break
    for factor in FACTORS:
        links = tuple(n / factor if place == problem.level else n for place, n in enumerate(problem.target.links))
        costs = _pays(replace(problem, target=replace(problem.target, links=links)), pair)
        if costs is not None:
            below = problem.target.levels[problem.level - 1].name
            yield Relaxation("bandwidth", below, int(link), int(link / factor), *costs)
            break


def _pays(problem: LevelProblem, pair: tuple[Members, Members]) -> tuple[int, int, str] | None:
    """What two sets cost as one and apart, if one is cheaper."""
    costs = IntervalCosts(problem)
    joined = costs.cost(tuple(sorted((*pair[0], *pair[1])))).value
    apart = sum(costs.cost(members).value for members in pair)
    unit = PICO if problem.objective == "time" else 1
    return (int(joined * unit), int(apart * unit), unit_of(problem.objective)) if joined < apart < inf else None


def _of(sets: list[Members], number: int) -> Members:
    return next(members for members in sets if number in members)


def _held(costs: IntervalCosts, members: Members) -> LevelUse:
    problem, cost = costs.problem, costs.cost(members)
    nodes = tuple(node.name for number in members for node in problem.parts[number])
    return LevelUse(nodes, _whole(cost, problem), int(cost.moved), int(cost.held))


def _whole(cost: LevelCost, problem: LevelProblem) -> int | None:
    return int(cost.value * (PICO if problem.objective == "time" else 1)) if cost.value < inf else None
