"""tuned: the core tile of every group as a tuner chooses it, among those that the model likes best (W17, W20, W41)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilec.ir.plan import Plan
from tilec.scheduler.alone import alone
from tilec.scheduler.atoms import Atoms
from tilec.scheduler.build import Builder, Draught, group_of, levels_of
from tilec.scheduler.choose import Tuner
from tilec.scheduler.cores import CoreTile
from tilec.scheduler.signature import signature

Members = Sequence[int]

Make = Callable[[Builder, Members, CoreTile], Draught]
"""The group of some parts with a core tile."""


def tuned(
    groups: Sequence[Members], atoms: Atoms, builder: Builder, make: Make, tuner: Tuner, budget: int
) -> list[Draught]:
    """Every group with the tile that the tuner chooses of the `budget` best, the same one for groups that are alike."""
    keys = [atoms.key(members, atoms.leaving(members)) for members in groups]
    tuner.expect(len(set(keys)))
    places: dict[object, int] = {}
    found: list[Draught] = []
    for key, members in zip(keys, groups, strict=True):
        tiles = atoms.core_tiles(members, budget)
        if key not in places:
            places[key] = _place(members, tiles, atoms, builder, make, tuner)
        found.append(make(builder, members, tiles[places[key]]))
    return found


def _place(
    members: Members, tiles: Sequence[CoreTile], atoms: Atoms, builder: Builder, make: Make, tuner: Tuner
) -> int:
    """The place of the chosen tile of a group."""

    def plan_of(place: int) -> Plan:
        aside = Builder(builder.graph, dict(builder.packs), orders=builder.orders)
        draught = make(aside, members, tiles[place])
        target = atoms.target
        return alone([group_of(draught)], draught.outputs, aside.graph.tensors, levels_of(target), target.name)

    nodes = [node for number in members for node in atoms.parts[number]]
    content = signature(nodes, atoms.leaving(members), atoms.graph.tensors, atoms.constants)
    return tuner.chosen(content, range(len(tiles)), plan_of)
