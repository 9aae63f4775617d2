"""Tiles whose tile programs are legal and really fit (W17, W24).

Windows of candidates follow the rules of lowering (`tilec.ir.group_windows`), but at one place, where a tile starts at
0. What a program holds beyond that is known when it is lowered: halos on both sides where a buffer stands for guards,
what the last tile of a strided reader stores, alignment and the gaps that storage by best fit leaves, and whether the
results of one group get into each other's way. So the best tiles are lowered until one fits.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from tilec.ir.bind_plan import bind_plan
from tilec.ir.expr import variables
from tilec.ir.plan import Plan, Refusal
from tilec.ir.verify.program import check_program
from tilec.lower.checks.check_plan import overflows
from tilec.lower.checks.plan_errors import PlanError
from tilec.lower.lowering import lower
from tilec.scheduler.building.group_builder import GroupBuilder, levels_of, picoseconds, plan_group
from tilec.scheduler.building.largest_sizes import overflows_at_largest
from tilec.scheduler.building.size_variants import clipped
from tilec.scheduler.building.subplan import subplan
from tilec.scheduler.fusion.group_costs import GroupCosts
from tilec.scheduler.fusion.group_order import execution_order_of
from tilec.scheduler.fusion.interval_partition import partition_intervals
from tilec.scheduler.fusion.partition import PartitionGroups
from tilec.scheduler.fusion_problem import LOWERED_CANDIDATES, FusionProblem
from tilec.scheduler.refusals import edge_name, refusal
from tilec.scheduler.state import LegalGroup, Members, SearchState, SearchStep, Stage
from tilec.scheduler.tiling.task_tiles import TaskTile, smaller
from tilec.scheduler.trace import Advance, Trace, no_advance

ROOM_LEFT = 0.95
"""What tiles that are chosen anew may hold of what a tile held whose program exceeded a level, once as much is taken
off as it was exceeded by."""

ROUNDS = 3
"""How often tiles are chosen anew: programs of an image-restoration network's groups on a GPU hold up to 1.12 times
what is predicted."""


@dataclass(frozen=True)
class LegalizeGroups(SearchStep):
    """Groups with tiles whose programs are legal and fit."""

    name: ClassVar[str] = "legalize_groups"
    template: ClassVar[str] = (
        "a group is kept if a tile program of it is legal and fits the level; one of which none of the {candidates} "
        "best tiles does, nor those for less room, falls apart into the cheapest groups of its parts, a part takes a "
        "smaller tile"
    )
    stage: ClassVar[Stage] = "legal"
    required: ClassVar[str] = "without it programs may be illegal or exceed a level"

    candidates: int = LOWERED_CANDIDATES
    """Tiles of a group that are lowered, best first, until one is legal and fits."""

    partition: PartitionGroups = PartitionGroups()
    """How the parts of a group that falls apart are partitioned."""

    def run(self, state: SearchState, trace: Trace) -> SearchState:
        """The groups in execution order with the tiles that they may have."""
        most = state.tuner.most if state.tuner is not None else 1
        legal: list[LegalGroup] = []
        refused = dict(state.refused)
        for of in state.sets:
            advance = partial(trace.advance, self.name)
            tiled = legalize_groups(of.groups, of.problem, state.builder, most, self, advance)
            for members in set(of.groups) - {group.members for group in tiled}:
                refused |= _apart(members, of.problem, state.builder, self.candidates)
            legal += tiled
        order = execution_order_of([(group.problem, group.members) for group in legal])
        return replace(state, legal=tuple(legal[n] for n in order), refused=refused)


def legalize_groups(
    groups: Sequence[Members],
    problem: FusionProblem,
    builder: GroupBuilder,
    most: int = 1,
    options: LegalizeGroups | None = None,
    advance: Advance = no_advance,
) -> list[LegalGroup]:
    """Every group with up to `most` tiles whose programs are legal and, on explicit levels, fit; groups that are alike
    are looked at once.  A group without such a tile falls apart into cheapest smaller ones, a part takes a smaller
    tile."""
    options = options or LegalizeGroups()
    legal: list[LegalGroup] = []
    waiting = list(reversed(groups))
    while waiting:
        members = waiting.pop()
        tiles = _fitting(members, problem, builder, most, options.candidates)
        if not tiles and len(members) == 1:
            smallest = min(problem.core_tiles(members, options.candidates), key=lambda tile: tile.held)
            tiles = (_shrunk(members, smallest, problem, builder),)
        if tiles:
            legal.append(LegalGroup(problem, members, tiles))
        else:
            waiting += reversed(cheapest_pieces(members, problem, options.partition))
        advance(len(legal), len(legal) + len(waiting))
    return legal


def all_legal(
    groups: Iterable[Members], problem: FusionProblem, builder: GroupBuilder, candidates: int = LOWERED_CANDIDATES
) -> bool:
    """Whether none of the groups falls apart."""
    several = (members for members in groups if len(members) > 1 or problem.chain_of(members) is not None)
    return all(_fitting(members, problem, builder, 1, candidates) for members in several)


def _fitting(
    members: Members, problem: FusionProblem, builder: GroupBuilder, most: int, candidates: int
) -> tuple[TaskTile, ...]:
    """The first `most` tiles whose programs are legal and, on explicit levels, fit; on others a part may have any."""
    level = problem.target.levels[problem.target.core]
    roomy = level.managed == "implicit" or level.capacity is None
    tiles = problem.core_tiles(members, most if roomy else max(most, candidates))
    if roomy and len(members) == 1:
        return tiles
    key = (problem.key(members, problem.leaving(members)), most, candidates)
    if key not in problem.cache.legal:
        places = _places(members, tiles, problem, builder, most, roomy)
        room = 1.0
        if not places and len(members) > 1 and not roomy:
            room, places = _places_in_less_room(members, tiles[0], problem, builder, most, candidates)
        problem.cache.legal[key] = room, places
    room, places = problem.cache.legal[key]
    tiles = tiles if room == 1 else _group_alone(members, problem, room).core_tiles(range(len(members)), candidates)
    return tuple(tiles[place] for place in places)


def _places_in_less_room(
    members: Members, tile: TaskTile, problem: FusionProblem, builder: GroupBuilder, most: int, candidates: int
) -> tuple[float, tuple[int, ...]]:
    """The share of a level for which tiles are chosen so that some fit all of it, and their places; no places where
    there are none, or where they take longer than the parts apart. `tile` exceeds the level."""
    apart = sum(problem.singles[n].objective for n in members)
    for _ in range(ROUNDS):
        exceeded = _exceeded(members, tile, problem, builder)
        if not exceeded:
            break
        numbers = exceeded[0].numbers
        least = tile.held * int(numbers["capacity"]) / int(numbers["bytes"])
        room = ROOM_LEFT * least / problem.target.capacity
        tiles = _group_alone(members, problem, room).core_tiles(range(len(members)), candidates)
        tile = tiles[0]
        if not tile.fits or tile.objective >= apart:
            break
        places = _places(members, tiles, problem, builder, most, False)
        if places:
            return room, places
    return 1.0, ()


def _group_alone(members: Members, problem: FusionProblem, room: float = 1.0) -> FusionProblem:
    """The problem of the parts of one group, with a share of a core's level."""
    target = problem.target if room == 1 else problem.target.with_room(room)
    return replace(
        problem,
        parts=tuple(problem.parts[n] for n in members),
        outputs=frozenset(problem.leaving(members)),
        target=target,
        chain=problem.chain_of(members),
        cache=problem.cache if room == 1 else problem.cache.of_target(target),
    )


def cheapest_pieces(members: Members, problem: FusionProblem, options: PartitionGroups) -> list[Members]:
    """The cheapest groups of the parts of a group that cannot be one; reductions that share a loop do not stay
    together without it."""
    whole = tuple(range(len(members)))
    if problem.chain_of(members) is not None:
        return [(number,) for number in members]
    costs = GroupCosts(_group_alone(members, problem), options.gain, barred=frozenset({whole}))
    return [tuple(members[n] for n in piece) for piece in partition_intervals(costs, options.patience)]


def _places(
    members: Members,
    tiles: Sequence[TaskTile],
    problem: FusionProblem,
    builder: GroupBuilder,
    most: int,
    roomy: bool,
) -> tuple[int, ...]:
    """Places of the first tiles whose programs are legal and, unless the level is `roomy`, fit at every size."""
    places: list[int] = []
    for place, tile in enumerate(tiles):
        plan = single_group_plan(members, tile, problem, builder)
        checked = len(members) > 1 or problem.chain_of(members) is not None
        legal = all(_is_legal(bind_plan(plan, sizes), roomy, checked) for sizes in problem.scenarios)
        if legal and _overflows_at_largest(plan, problem) == ():
            places.append(place)
        if len(places) == most:
            break
    return tuple(places)


def _overflows_at_largest(plan: Plan, problem: FusionProblem) -> tuple[Refusal, ...] | None:
    """The levels that the variant for all sizes of a plan's group exceeds at the largest ones, None where no program
    comes of it; nothing where no extent varies, or a cache keeps what fits."""
    (group,) = plan.groups
    if problem.target.is_cached or not any(variables(extent) for node in group.nodes for extent in node.expr.extents):
        return ()
    try:
        return overflows_at_largest(plan, clipped(group.variants[0], group.nodes, problem.graph.symbol_ranges))
    except PlanError:
        return None


def _is_legal(plan: Plan, roomy: bool, checked: bool) -> bool:
    """Whether a program comes of a group at one size that fits, and is legal where that is `checked`."""
    (group,) = plan.groups
    try:
        program = lower(group, group.variants[0], plan)
    except PlanError:
        return False
    shapes = {name: tensor.shape for name, tensor in plan.tensors.items()}
    return (roomy or not overflows(program)) and not (checked and check_program(program, shapes))


def illegality(
    members: Members, problem: FusionProblem, builder: GroupBuilder, candidates: int = LOWERED_CANDIDATES
) -> Refusal:
    """Why a group has no tile that it may have: the level that its smallest one exceeds, by how much, and with which
    reduce step, or else which tile, it would fit; or that no legal program comes of it; groups that are alike are
    looked at once. The edge is filled in by the caller."""
    key = (problem.key(members, problem.leaving(members)), candidates)
    if key not in problem.cache.illegal:
        problem.cache.illegal[key] = _objection(members, problem, builder, candidates)
    return problem.cache.illegal[key]


def _objection(members: Members, problem: FusionProblem, builder: GroupBuilder, candidates: int) -> Refusal:
    smallest = min(problem.core_tiles(members, candidates), key=lambda tile: tile.held)
    exceeded = _exceeded(members, smallest, problem, builder)
    if not exceeded:
        return refusal("", "", "illegal", parts=len(members))
    tile = _shrunk(members, smallest, problem, builder)
    return refusal(
        "", "", "capacity", **exceeded[0].numbers, **(_different(tile, smallest) if tile != smallest else {})
    )


def _shrunk(members: Members, tile: TaskTile, problem: FusionProblem, builder: GroupBuilder) -> TaskTile:
    """The first of ever smaller tiles that really fits, the tile itself if none does: what a tile needs falls with it,
    so it is found by halving."""
    tiles = tuple(smaller(problem.tiling_problem(members, problem.leaving(members), tile.registers), tile))
    place = bisect_left(tiles, True, key=lambda each: _exceeded(members, each, problem, builder) == ())
    return tiles[place] if place < len(tiles) else tile


def _different(tile: TaskTile, other: TaskTile) -> dict[str, int | str]:
    """What makes a tile smaller than another: the longest reduce step that is shorter, and its sizes."""
    steps = [n for node, of in tile.steps.items() for i, n in of.items() if other.steps.get(node, {}).get(i) != n]
    difference: dict[str, int | str] = {"step": max(steps)} if steps else {}
    return (
        difference
        if tile.sizes == other.sizes
        else {**difference, "tile": " ".join(f"{i}={n}" for i, n in tile.sizes.items())}
    )


def _exceeded(
    members: Members, tile: TaskTile, problem: FusionProblem, builder: GroupBuilder
) -> tuple[Refusal, ...] | None:
    """The levels that a group with a tile exceeds, None where no program comes of it."""
    plan = single_group_plan(members, tile, problem, builder)
    exceeded: list[Refusal] = []
    for sizes in problem.scenarios:
        bound = bind_plan(plan, sizes)
        (group,) = bound.groups
        try:
            exceeded += overflows(lower(group, group.variants[0], bound))
        except PlanError:
            return None
    at_largest = _overflows_at_largest(plan, problem)
    return None if at_largest is None else (*exceeded, *at_largest)


def single_group_plan(members: Sequence[int], tile: TaskTile, problem: FusionProblem, builder: GroupBuilder) -> Plan:
    """A plan of one group with a core tile and the time that is predicted for it; the builder stays as it is."""
    aside = builder.aside()
    block = aside.core_block(problem, members, tile)
    tiled = aside.tiled_group(block, problem.leaving(members), problem.target, tile.seconds)
    target, group = problem.target, plan_group(tiled)
    group = replace(group, cost=replace(group.cost, picoseconds=picoseconds(tile.seconds)))
    plan = subplan([group], tiled.outputs, aside.graph.tensors, levels_of(target), target.name)
    graph = problem.graph
    return replace(plan, symbols=graph.symbols, symbol_ranges=graph.symbol_ranges, constraints=graph.constraints)


def _apart(members: Members, problem: FusionProblem, builder: GroupBuilder, candidates: int) -> dict[str, Refusal]:
    """Why the edges of a group that fell apart are not connected: what became of it when it was lowered."""
    reason = illegality(members, problem, builder, candidates)
    inside = [edge_name(t, name) for n in members for t, name in problem.edges[n] if problem.home[t] in members]
    return {e: replace(reason, edge=e) for e in inside}
