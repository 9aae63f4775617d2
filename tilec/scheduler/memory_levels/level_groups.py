"""spans: which parts share the memory of a level below a core's, and the tile that it holds of them (W10, W17, W46).

Such a level (device memory above a host's, chip memory above streaming memory) is filled by serial loops over tiles.
What it costs is counted by `tier_walk`, which sets of parts it holds together is decided by `tier_partition`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from tilec.ir.graph import Graph, Node
from tilec.ir.intervals import Candidates
from tilec.ir.plan import Refusal
from tilec.scheduler.memory_levels.incremental_cost import LevelCost
from tilec.scheduler.memory_levels.interval_costs import IntervalCosts
from tilec.scheduler.memory_levels.level_partition import (
    CHANGE_GAIN,
    Set,
    components,
    level_refusals,
    partition_level,
    running_order,
)
from tilec.scheduler.memory_levels.level_problem import LevelProblem, OuterExtents
from tilec.scheduler.memory_levels.level_tiles import LevelTiles, finer
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.tiling.tiling_problem import Objective

ROUNDS = 8
"""How often a tile is refined at most."""

TRIES, LESS = 24, 0.95
"""How often a tile of which some instance does not fit is replaced by one that holds less, and how much less."""


@dataclass(frozen=True, slots=True)
class LevelGroup:
    """Parts that a level holds together, by number in topological order, and the tile of their last node.

    `sizes` and `order` (outermost first) are its tile loops, both empty for whole tensors; `extents` says for every
    node how far each iterator runs in one tile.  `moved` counts bytes over the link from the level below, `held` the
    most bytes that the level holds, `seconds` is what the model expects.
    """

    members: tuple[int, ...]
    sizes: Mapping[str, int]
    order: tuple[str, ...]
    extents: OuterExtents
    moved: int
    held: int
    seconds: float


def level_groups(
    parts: Sequence[Sequence[Node]],
    graph: Graph,
    target: TargetModel,
    level: int,
    numbers: Candidates,
    objective: Objective = "time",
    closed: bool = False,
    around: OuterExtents | None = None,
) -> tuple[LevelGroup, ...]:
    """The spans of `parts` (topological order) at a level between the lowest and a core's, in execution order.

    Every part is in one span, every span is connected by what it makes; what fits whole is not cut.  `around` gives,
    for nodes in the tile of a span of the level below, how far their iterators run.  With `closed` every part is a span
    of its own.  Raises LevelTooSmallError for a part of which not even one element's tile fits.
    """
    return search_level(LevelProblem(parts, graph, target, level, numbers, objective, around or {}), closed)[0]


def search_level(tier: LevelProblem, closed: bool = False) -> tuple[tuple[LevelGroup, ...], dict[str, Refusal]]:
    """The spans of a tier's parts, and why edges between them are not inside one (none where the level is closed)."""
    if not tier.parts:
        return (), {}
    runs = IntervalCosts(tier)
    single = [(number,) for number in range(len(tier.parts))]
    sets = single if closed else _whole(runs) or partition_level(runs)
    order = running_order(tier.needs, sets)
    assert order is not None
    found = tuple(span for at in order for span in _spans(runs, sets[at]))
    return found, {} if closed else level_refusals(runs, [span.members for span in found])


def _whole(runs: IntervalCosts) -> list[Set] | None:
    """Everything that is connected as one span with whole tensors; None where that does not fit."""
    found = components(runs.tier.needs)
    return found if all(runs.walk(members, LevelTiles({}, {})).best().value < inf for members in found) else None


def _spans(runs: IntervalCosts, members: Set) -> tuple[LevelGroup, ...]:
    """The span of some parts, or those of every one of them if no tile fits after all."""
    found = _span(runs, members)
    if isinstance(found, LevelGroup):
        return (found,)
    if len(members) == 1:
        raise runs.too_small(members[0], found)
    return tuple(span for number in members for span in _spans(runs, (number,)))


def _span(runs: IntervalCosts, members: Set) -> LevelGroup | LevelCost:
    """The span of some parts with the best tile of which every instance fits; without one, what was found instead."""
    limit = runs.tier.capacity
    for _ in range(TRIES):
        tiles, found = _refined(runs, members, limit)
        if found.value == inf:
            return found
        sure = runs.walk(members, tiles.only(found.candidate))
        best = sure.best()
        if best.value < inf:
            extents = runs.tier.facts[runs.tier.parts[members[-1]][-1].name].extents
            sizes = {i: int(n[found.candidate]) for i, n in tiles.sizes.items()}
            loops = {i: n for i, n in sizes.items() if n < extents[i]}
            return LevelGroup(
                members, loops, best.order, sure.extents(0), int(best.moved), int(best.held), best.seconds
            )
        limit = found.held * LESS
    return best


def _refined(runs: IntervalCosts, members: Set, limit: float) -> tuple[LevelTiles, LevelCost]:
    """The best of finer and finer candidates that hold no more than a limit."""
    extents = runs.tier.facts[runs.tier.parts[members[-1]][-1].name].extents
    tiles = runs.grid(members[-1])
    found = runs.walk(members, tiles).best(limit)
    for _ in range(ROUNDS if found.value < inf else 0):
        nearer = finer({i: int(n[found.candidate]) for i, n in tiles.sizes.items()}, extents)
        better = runs.walk(members, nearer).best(limit)
        if not better.value < found.value * (1 - CHANGE_GAIN):
            break
        tiles, found = nearer, better
    return tiles, found
