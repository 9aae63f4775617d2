"""tuned: the core tile of every group as a tuner chooses it, among those that the model likes best (W17, W20, W41)."""

from __future__ import annotations

from tilec.ir.plan import Plan
from tilec.scheduler.groups.atoms import Atoms
from tilec.scheduler.groups.build import Builder
from tilec.scheduler.groups.exact import Settled, one_group
from tilec.scheduler.tiles.cores import CoreTile
from tilec.scheduler.tuning.choose import Tuner
from tilec.scheduler.tuning.signature import signature


def tuned(groups: Settled, atoms: Atoms, builder: Builder, tuner: Tuner) -> Settled:
    """Every group with the tile that the tuner chooses of those that it may have, the same one for groups that are
    alike."""
    keys = [atoms.key(members, atoms.leaving(members)) for members, _ in groups]
    tuner.expect(len(set(keys)))
    places: dict[object, int] = {}
    found: Settled = []
    for key, (members, tiles) in zip(keys, groups, strict=True):
        if key not in places:
            nodes = [node for number in members for node in atoms.parts[number]]
            content = signature(nodes, atoms.leaving(members), atoms.graph.tensors, atoms.constants)

            def plan_of(place: int, members: tuple[int, ...] = members, tiles: tuple[CoreTile, ...] = tiles) -> Plan:
                return one_group(members, tiles[place], atoms, builder)

            places[key] = tuner.chosen(content, range(len(tiles)), plan_of)
        found.append((members, (tiles[places[key]],)))
    return found
