"""What would have to be otherwise for two groups to be joined, tried on the search's own predictions (W16)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isqrt

from tilec.analysis.explain.figures import Join, whole
from tilec.analysis.explain.replay import unit_of
from tilec.scheduler.explain_search import FusionProblem, TargetModel, with_parts_alone

FACTORS = (2, 8, 64)
"""By how much a capacity is enlarged, or a bandwidth reduced, until joining pays."""

HALVINGS = 4
"""How often the way between a capacity that is too small and one that is enough is halved."""


@dataclass(frozen=True, slots=True)
class Relaxation:
    """One thing that would have to be otherwise (`what`: capacity, bandwidth, objective, groups), from what to what,
    and what the joined group and the groups apart come to then, in a unit."""

    what: str
    subject: str
    before: int | str
    after: int | str
    joined: int
    apart: int
    unit: str


def relaxations(join: Join) -> tuple[Relaxation, ...]:
    """The least change of each kind under which some groups would be joined; what changes only the recipe first, then
    the smallest change of the device."""
    changes = [*_objective(join), *_capacity(join), *_bandwidth(join)]
    return tuple(sorted(changes, key=_price))


def _price(relaxation: Relaxation) -> float:
    before, after = relaxation.before, relaxation.after
    if isinstance(before, str) or isinstance(after, str):
        return 0.0
    return max(after / max(1, before), before / max(1, after))


def _objective(join: Join) -> Iterator[Relaxation]:
    """Counting bytes instead of time."""
    if join.problem.objective == "time":
        other = _alone(join, replace(join.problem, objective="traffic"))
        if other.pays:
            yield _told("objective", "schedule.objective", "time", "traffic", other)


def _capacity(join: Join) -> Iterator[Relaxation]:
    """A larger level of a core: as much as the group holds at least, else more and more."""
    target = join.problem.target
    level, has = target.levels[target.core], target.capacity
    if level.capacity is None:
        return

    def roomier(capacity: int) -> Join:
        levels = (*target.levels[: target.core], replace(level, capacity=capacity), *target.levels[target.core + 1 :])
        return _alone(join, replace(join.problem, target=replace(target, levels=levels)))

    held, short = join.look[0], has
    for enough in ([held] if held > has else []) + [factor * has for factor in FACTORS]:
        if roomier(enough).pays:
            break
        short = enough
    else:
        return
    for _ in range(HALVINGS):
        middle = isqrt(short * enough)
        short, enough = (short, middle) if roomier(middle).pays else (middle, enough)
    yield _told("capacity", level.name, has, enough, roomier(enough))


def _bandwidth(join: Join) -> Iterator[Relaxation]:
    """A slower lowest level, of which a joined group asks less."""
    target = join.problem.target
    now = target.links[target.core]
    for factor in FACTORS:
        other = _alone(join, replace(join.problem, target=_slower(target, factor)))
        if other.pays:
            yield _told("bandwidth", target.levels[target.core - 1].name, int(now), int(now / factor), other)
            return


def _slower(target: TargetModel, factor: int) -> TargetModel:
    links = tuple(link / factor if place == target.core else link for place, link in enumerate(target.links))
    return replace(target, links=links, draw=target.draw / factor)


def _told(what: str, subject: str, before: int | str, after: int | str, join: Join) -> Relaxation:
    problem = join.problem
    joined, apart = whole(join.tile.objective, problem), whole(join.apart, problem)
    return Relaxation(what, subject, before, after, joined, apart, unit_of(problem.objective))


def _alone(join: Join, problem: FusionProblem) -> Join:
    """The groups among no other parts, so that nothing else is looked at; what was decided before is forgotten."""
    places = {number: place for place, number in enumerate(join.members)}
    groups = tuple(tuple(places[n] for n in group) for group in join.groups)
    return Join(with_parts_alone(problem, join.members), groups, join.gain)
