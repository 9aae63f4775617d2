"""exact: tiles whose tile programs are legal and really fit, for the search only estimates what a level holds and does
not see every way in which results of one group can get into each other's way (W17, W24)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from tilec.ir.plan import Plan, Refusal
from tilec.ir.verify.program import check_program
from tilec.lower.checks.check_plan import overflows
from tilec.lower.checks.plan_errors import PlanError
from tilec.lower.lowering import lower
from tilec.scheduler.building.group_builder import GroupBuilder, levels_of, plan_group
from tilec.scheduler.building.subplan import subplan
from tilec.scheduler.fusion_problem import LOWERED_CANDIDATES, FusionProblem
from tilec.scheduler.refusals import refusal
from tilec.scheduler.tiling.task_tiles import TaskTile, smaller

LegalTiles = list[tuple[tuple[int, ...], tuple[TaskTile, ...]]]
"""Groups, each with the tiles that it may have, best first."""


def legalize_groups(
    groups: Sequence[tuple[int, ...]], atoms: FusionProblem, builder: GroupBuilder, most: int = 1
) -> LegalTiles:
    """Every group with up to `most` tiles whose programs are legal and, on explicit levels, fit; groups that are alike
    are looked at once.  A group without such a tile falls apart into its parts, a part takes a smaller one."""
    if atoms.graph.symbols:
        return [(members, atoms.core_tiles(members, most)) for members in groups]
    found: LegalTiles = []
    waiting = list(reversed(groups))
    while waiting:
        members = waiting.pop()
        tiles = _fitting(members, atoms, builder, most)
        if tiles:
            found.append((members, tiles))
        elif len(members) == 1:
            smallest = min(atoms.core_tiles(members, LOWERED_CANDIDATES), key=lambda tile: tile.held)
            found.append((members, (_shrunk(members, smallest, atoms, builder),)))
        else:
            waiting += [(number,) for number in reversed(members)]
    return found


def all_legal(groups: Iterable[tuple[int, ...]], atoms: FusionProblem, builder: GroupBuilder) -> bool:
    """Whether none of the groups falls apart."""
    several = (members for members in groups if len(members) > 1)
    return bool(atoms.graph.symbols) or all(_fitting(members, atoms, builder, 1) for members in several)


def _fitting(members: tuple[int, ...], atoms: FusionProblem, builder: GroupBuilder, most: int) -> tuple[TaskTile, ...]:
    """The first `most` tiles whose programs are legal and, on explicit levels, fit; on others a part may have any."""
    level = atoms.target.levels[atoms.target.core]
    roomy = level.managed == "implicit" or level.capacity is None
    tiles = atoms.core_tiles(members, most if roomy else max(most, LOWERED_CANDIDATES))
    if roomy and len(members) == 1:
        return tiles
    key = (atoms.key(members, atoms.leaving(members)), most)
    if key not in atoms.fitting:
        atoms.fitting[key] = _places(members, tiles, atoms, builder, most, roomy)
    return tuple(tiles[place] for place in atoms.fitting[key])


def _places(
    members: tuple[int, ...],
    tiles: Sequence[TaskTile],
    atoms: FusionProblem,
    builder: GroupBuilder,
    most: int,
    roomy: bool,
) -> tuple[int, ...]:
    """Places of the first tiles whose programs are legal and fit; a `roomy` level holds anything."""
    places: list[int] = []
    for place, tile in enumerate(tiles):
        plan = single_group_plan(members, tile, atoms, builder)
        (group,) = plan.groups
        try:
            program = lower(group, group.variants[0], plan)
        except PlanError:
            continue
        shapes = {name: tensor.shape for name, tensor in plan.tensors.items()}
        if (roomy or not overflows(program)) and (len(members) == 1 or not check_program(program, shapes)):
            places.append(place)
        if len(places) == most:
            break
    return tuple(places)


def illegality(members: tuple[int, ...], atoms: FusionProblem, builder: GroupBuilder) -> Refusal:
    """Why a group has no tile that it may have: the level that its smallest one exceeds, by how much, and with which
    reduce step, or else which tile, it would fit; or that no legal program comes of it; groups that are alike are
    looked at once. The edge is filled in by the caller."""
    key = atoms.key(members, atoms.leaving(members))
    if key not in atoms.objections:
        atoms.objections[key] = _objection(members, atoms, builder)
    return atoms.objections[key]


def _objection(members: tuple[int, ...], atoms: FusionProblem, builder: GroupBuilder) -> Refusal:
    smallest = min(atoms.core_tiles(members, LOWERED_CANDIDATES), key=lambda tile: tile.held)
    found = _exceeded(members, smallest, atoms, builder)
    if not found:
        return refusal("", "", "illegal", parts=len(members))
    tile = _shrunk(members, smallest, atoms, builder)
    return refusal("", "", "capacity", **found[0].numbers, **(_different(tile, smallest) if tile != smallest else {}))


def _shrunk(members: tuple[int, ...], tile: TaskTile, atoms: FusionProblem, builder: GroupBuilder) -> TaskTile:
    """The first of ever smaller tiles that really fits, the tile itself if none does: what a tile needs falls with it,
    so it is found by halving."""
    tiles = tuple(smaller(atoms.problem(members, atoms.leaving(members), tile.registers), tile))
    place = bisect_left(tiles, True, key=lambda each: _exceeded(members, each, atoms, builder) == ())
    return tiles[place] if place < len(tiles) else tile


def _different(tile: TaskTile, other: TaskTile) -> dict[str, int | str]:
    """What makes a tile smaller than another: the longest reduce step that is shorter, and its sizes."""
    steps = [n for node, of in tile.steps.items() for i, n in of.items() if other.steps.get(node, {}).get(i) != n]
    found: dict[str, int | str] = {"step": max(steps)} if steps else {}
    return (
        found if tile.sizes == other.sizes else {**found, "tile": " ".join(f"{i}={n}" for i, n in tile.sizes.items())}
    )


def _exceeded(
    members: tuple[int, ...], tile: TaskTile, atoms: FusionProblem, builder: GroupBuilder
) -> tuple[Refusal, ...] | None:
    """The levels that a group with a tile exceeds, None where no program comes of it."""
    plan = single_group_plan(members, tile, atoms, builder)
    (group,) = plan.groups
    try:
        return overflows(lower(group, group.variants[0], plan))
    except PlanError:
        return None


def single_group_plan(members: Sequence[int], tile: TaskTile, atoms: FusionProblem, builder: GroupBuilder) -> Plan:
    """A plan of one group with a core tile; the builder stays as it is."""
    aside = builder.aside()
    block = aside.core_block(atoms, members, tile)
    draught = aside.draught(block, atoms.leaving(members), atoms.target, tile.seconds)
    target = atoms.target
    return subplan([plan_group(draught)], draught.outputs, aside.graph.tensors, levels_of(target), target.name)
