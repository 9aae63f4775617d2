"""Groups of parts that share the memory of a level below a core's, and the tile that it holds of them (W10, W17, W46).

Such a level (device memory above a host's, chip memory above streaming memory) is filled by serial loops over tiles.
What a group costs is counted by `incremental_cost`, which sets of parts are groups is decided by `level_partition`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from tilec.ir.graph import Graph, Node
from tilec.ir.intervals import Candidates
from tilec.ir.plan import Refusal
from tilec.scheduler.memory_levels.incremental_cost import LevelCost
from tilec.scheduler.memory_levels.interval_costs import IntervalCosts
from tilec.scheduler.memory_levels.level_options import LevelOptions
from tilec.scheduler.memory_levels.level_partition import (
    Set,
    components,
    level_refusals,
    partition_level,
    running_order,
)
from tilec.scheduler.memory_levels.level_problem import LevelProblem, OuterExtents
from tilec.scheduler.memory_levels.level_tiles import LevelTiles, finer
from tilec.scheduler.state import LevelGroup
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.tiling.core_storage import Objective


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
    """The groups of `parts` (topological order) at a level between the lowest and a core's, in execution order.

    Every part is in one group, every group is connected by what it makes; what fits whole is not cut.  `around` gives,
    for nodes in the tile of a group of the level below, how far their iterators run.  With `closed` every part is a
    group of its own.  Raises LevelTooSmallError for a part of which not even one element's tile fits.
    """
    return search_level(
        LevelProblem(parts, graph, target, level, numbers, objective, around or {}), LevelOptions(), closed
    )[0]


def search_level(
    problem: LevelProblem, options: LevelOptions, closed: bool = False
) -> tuple[tuple[LevelGroup, ...], dict[str, Refusal]]:
    """The groups of a level's parts, and why edges between them are not inside one (none where the level is closed)."""
    if not problem.parts:
        return (), {}
    costs = IntervalCosts(problem)
    single = [(number,) for number in range(len(problem.parts))]
    sets = single if closed else _whole(costs) or partition_level(costs, options)
    order = running_order(problem.needs, sets)
    assert order is not None
    groups = tuple(group for at in order for group in _groups(costs, sets[at], options))
    return groups, {} if closed else level_refusals(costs, [group.members for group in groups])


def _whole(costs: IntervalCosts) -> list[Set] | None:
    """Everything that is connected as one group with whole tensors; None where that does not fit."""
    sets = components(costs.problem.needs)
    return sets if all(costs.walk(members, LevelTiles({}, {})).best().value < inf for members in sets) else None


def _groups(costs: IntervalCosts, members: Set, options: LevelOptions) -> tuple[LevelGroup, ...]:
    """The group of some parts, or those of every one of them if no tile fits after all."""
    group = _group(costs, members, options)
    if isinstance(group, LevelGroup):
        return (group,)
    if len(members) == 1:
        raise costs.too_small(members[0], group)
    return tuple(group for number in members for group in _groups(costs, (number,), options))


def _group(costs: IntervalCosts, members: Set, options: LevelOptions) -> LevelGroup | LevelCost:
    """The group of some parts with the best tile of which every instance fits; without one, the cost of the best that
    does not."""
    limit = costs.problem.capacity
    for _ in range(options.tile_retries):
        tiles, cost = _refined(costs, members, limit, options)
        if cost.value == inf:
            return cost
        exact = costs.walk(members, tiles.only(cost.candidate))
        best = exact.best()
        if best.value < inf:
            extents = costs.problem.facts[costs.problem.parts[members[-1]][-1].name].extents
            sizes = {i: int(n[cost.candidate]) for i, n in tiles.sizes.items()}
            loops = {i: n for i, n in sizes.items() if n < extents[i]}
            return LevelGroup(
                members, loops, best.order, exact.extents(0), int(best.moved), int(best.held), best.seconds
            )
        limit = cost.held * options.tile_retry_share
    return best


def _refined(costs: IntervalCosts, members: Set, limit: float, options: LevelOptions) -> tuple[LevelTiles, LevelCost]:
    """The best of finer and finer candidates that hold no more than a limit."""
    extents = costs.problem.facts[costs.problem.parts[members[-1]][-1].name].extents
    tiles = costs.grid(members[-1])
    cost = costs.walk(members, tiles).best(limit)
    for _ in range(options.refinements if cost.value < inf else 0):
        nearer = finer({i: int(n[cost.candidate]) for i, n in tiles.sizes.items()}, extents)
        better = costs.walk(members, nearer).best(limit)
        if not better.value < cost.value * (1 - options.change_gain):
            break
        tiles, cost = nearer, better
    return tiles, cost
