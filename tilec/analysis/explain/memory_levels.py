"""What joining comes to at a level below a core's, by the walk that the search counts with (W46)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf

from tilec.analysis.explain.relax import FACTORS, Relaxation
from tilec.analysis.explain.replay import Replay, unit_of
from tilec.ir.plan import Refusal
from tilec.scheduler.fusion.group_costs import PICO
from tilec.scheduler.memory_levels.incremental_cost import LevelCost
from tilec.scheduler.memory_levels.interval_costs import IntervalCosts
from tilec.scheduler.memory_levels.level_groups import LevelGroup
from tilec.scheduler.memory_levels.level_partition import Set, joining
from tilec.scheduler.memory_levels.level_problem import LevelProblem
from tilec.scheduler.refusals import refusal


@dataclass(frozen=True, slots=True)
class Held:
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
    apart: tuple[Held, Held]
    joined: Held
    reason: Refusal
    relaxations: tuple[Relaxation, ...]


def level_join(replay: Replay, tensor: str, node: str) -> LevelJoin | None:
    """What the last level below a core's that was asked to hold both ends of an edge says of it; None where it holds
    both, or there is no such level."""
    found = _last(replay, tensor, node)
    if found is None or replay.fullest.fusion != "full":
        return None
    tier, spans = found
    sets = [span.members for span in spans]
    pair = _of(sets, tier.made[tensor]), _of(sets, tier.made[node])
    if pair[0] == pair[1]:
        return None
    runs, capacity, level = IntervalCosts(tier), tier.capacity, tier.target.levels[tier.level].name
    closed = level in replay.options.closed
    return LevelJoin(
        level,
        None if capacity == inf else int(capacity),
        (_held(runs, pair[0]), _held(runs, pair[1])),
        _held(runs, tuple(sorted((*pair[0], *pair[1])))),
        refusal("", "", "closed", level=level) if closed else joining(runs, sets, pair),
        tuple(_relaxed(tier, pair)),
    )


def _relaxed(tier: LevelProblem, pair: tuple[Set, Set]) -> Iterator[Relaxation]:
    """A larger level, or a slower link from the level below, with which both are predicted to cost less as one.

    A group whose program then exceeds the level after all would still be cut again.
    """
    level, link = tier.target.levels[tier.level], tier.link
    has = level.capacity or 0
    for factor in FACTORS if has else ():
        enough = replace(level, capacity=has * factor)
        levels = (*tier.target.levels[: tier.level], enough, *tier.target.levels[tier.level + 1 :])
        found = _pays(replace(tier, target=replace(tier.target, levels=levels)), pair)
        if found is not None:
            yield Relaxation("capacity", level.name, has, has * factor, *found)
            break
    for factor in FACTORS:
        links = tuple(n / factor if place == tier.level else n for place, n in enumerate(tier.target.links))
        found = _pays(replace(tier, target=replace(tier.target, links=links)), pair)
        if found is not None:
            below = tier.target.levels[tier.level - 1].name
            yield Relaxation("bandwidth", below, int(link), int(link / factor), *found)
            break


def _pays(tier: LevelProblem, pair: tuple[Set, Set]) -> tuple[int, int, str] | None:
    """What two sets cost as one and apart, if one is cheaper."""
    runs = IntervalCosts(tier)
    joined = runs.cost(tuple(sorted((*pair[0], *pair[1])))).value
    apart = sum(runs.cost(members).value for members in pair)
    unit = PICO if tier.objective == "time" else 1
    return (int(joined * unit), int(apart * unit), unit_of(tier.objective)) if joined < apart < inf else None


def _last(replay: Replay, tensor: str, node: str) -> tuple[LevelProblem, tuple[LevelGroup, ...]] | None:
    segment = replay.segment(tensor, node)
    tiers = segment.nest.tiers if segment is not None and segment.nest is not None else []
    return next((found for found in reversed(tiers) if {tensor, node} <= found[0].made.keys()), None)


def _of(sets: list[Set], number: int) -> Set:
    return next(members for members in sets if number in members)


def _held(runs: IntervalCosts, members: Set) -> Held:
    tier, found = runs.tier, runs.cost(members)
    nodes = tuple(node.name for number in members for node in tier.parts[number])
    return Held(nodes, _whole(found, tier), int(found.moved), int(found.held))


def _whole(found: LevelCost, tier: LevelProblem) -> int | None:
    return int(found.value * (PICO if tier.objective == "time" else 1)) if found.value < inf else None
