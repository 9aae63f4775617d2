"""exact: tiles whose tile programs really fit, for the search only estimates what a level holds (W17, W24)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilec.ir.plan import Plan
from tilec.lower.check_plan import overflows
from tilec.lower.lowering import lower
from tilec.scheduler.alone import alone
from tilec.scheduler.atoms import Atoms
from tilec.scheduler.build import Builder, group_of, levels_of
from tilec.scheduler.cores import CoreTile

CLOSELY = 6
"""Candidates of a group that are lowered until one fits."""

Settled = list[tuple[tuple[int, ...], tuple[CoreTile, ...]]]
"""Groups, each with the tiles that it may have, best first."""


def settled(groups: Sequence[tuple[int, ...]], atoms: Atoms, builder: Builder, most: int = 1) -> Settled:
    """Every group with up to `most` tiles; on explicit levels only those that fit when they are lowered, for groups
    that are alike looked at once.  A group without such a tile falls apart into its parts."""
    level = atoms.target.levels[atoms.target.core]
    if level.managed == "implicit" or level.capacity is None or atoms.graph.symbols:
        return [(members, atoms.core_tiles(members, most)) for members in groups]
    known = atoms.fitting
    found: Settled = []
    waiting = list(reversed(groups))
    while waiting:
        members = waiting.pop()
        tiles = atoms.core_tiles(members, max(most, CLOSELY))
        key = (atoms.key(members, atoms.leaving(members)), most)
        if key not in known:
            known[key] = _fitting(members, tiles, atoms, builder, most)
        if known[key] or len(members) == 1:
            found.append((members, tuple(tiles[place] for place in known[key]) or tiles[:1]))
        else:
            waiting += [(number,) for number in reversed(members)]
    return found


def _fitting(
    members: tuple[int, ...], tiles: Sequence[CoreTile], atoms: Atoms, builder: Builder, most: int
) -> tuple[int, ...]:
    """Places of the first tiles that fit."""
    places: list[int] = []
    for place, tile in enumerate(tiles):
        plan = one_group(members, tile, atoms, builder)
        (group,) = plan.groups
        if not overflows(lower(group, group.variants[0], plan)):
            places.append(place)
        if len(places) == most:
            break
    return tuple(places)


def overflow(members: tuple[int, ...], atoms: Atoms, builder: Builder) -> Mapping[str, int | str]:
    """The level that a group without a tile that fits exceeds, and by how much, with the least of its tiles."""
    tiles = atoms.core_tiles(members, CLOSELY)
    plan = one_group(members, min(tiles, key=lambda tile: tile.held), atoms, builder)
    (group,) = plan.groups
    return overflows(lower(group, group.variants[0], plan))[0].numbers


def one_group(members: Sequence[int], tile: CoreTile, atoms: Atoms, builder: Builder) -> Plan:
    """A plan of one group with a core tile; the builder stays as it is."""
    aside = builder.aside()
    block = aside.core_block(atoms, members, tile)
    draught = aside.draught(block, atoms.leaving(members), atoms.target, tile.seconds)
    target = atoms.target
    return alone([group_of(draught)], draught.outputs, aside.graph.tensors, levels_of(target), target.name)
