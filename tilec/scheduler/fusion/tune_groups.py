"""tuned: the core tile of every group as a tuner chooses it, among those that the model likes best (W17, W20, W41)."""

from __future__ import annotations

from tilec.ir.plan import Plan
from tilec.scheduler.building.group_builder import GroupBuilder
from tilec.scheduler.fusion.legalize import LegalTiles, single_group_plan
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.tiling.task_tiles import TaskTile
from tilec.scheduler.tuning.signature import signature
from tilec.scheduler.tuning.tuner import Tuner


def tune_groups(groups: LegalTiles, atoms: FusionProblem, builder: GroupBuilder, tuner: Tuner) -> LegalTiles:
    """Every group with the tile that the tuner chooses of those that it may have, the same one for groups that are
    alike."""
    keys = [atoms.key(members, atoms.leaving(members)) for members, _ in groups]
    tuner.expect(len(set(keys)))
    places: dict[object, int] = {}
    found: LegalTiles = []
    for key, (members, tiles) in zip(keys, groups, strict=True):
        if key not in places:
            nodes = [node for number in members for node in atoms.parts[number]]
            content = signature(nodes, atoms.leaving(members), atoms.graph.tensors, atoms.constants)

            def plan_of(place: int, members: tuple[int, ...] = members, tiles: tuple[TaskTile, ...] = tiles) -> Plan:
                return single_group_plan(members, tiles[place], atoms, builder)

            places[key] = tuner.chosen(content, range(len(tiles)), plan_of)
        found.append((members, (tiles[places[key]],)))
    return found
