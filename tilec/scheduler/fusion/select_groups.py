"""groups: what a core's level holds together and how it is tiled, in execution order (W16, W17, W20)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilec.ir.plan import Refusal
from tilec.scheduler.building.group_builder import GroupBuilder
from tilec.scheduler.fusion.legalize import illegality, legalize_groups
from tilec.scheduler.fusion.local_search import local_search
from tilec.scheduler.fusion.online_reductions import GroupSets, execution_order_of, join_reductions
from tilec.scheduler.fusion.partition import Partition, partition_parts, separate_parts
from tilec.scheduler.fusion.tune_groups import tune_groups
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.refusals import edge_name
from tilec.scheduler.tiling.task_tiles import TaskTile
from tilec.scheduler.tuning.tuner import Tuner
from tilec.spec.recipe import ScheduleOptions

SelectedGroups = list[tuple[FusionProblem, tuple[int, ...], TaskTile]]
"""Groups in execution order: the numbers of their parts among some, and their tile."""


def partition_groups(
    atoms: FusionProblem, refused: Mapping[str, Refusal], builder: GroupBuilder, options: ScheduleOptions
) -> GroupSets:
    """The groups of some parts, as good as the search can tell; `refused` says why edges between parts are not
    connected."""
    if options.fusion == "full":
        return join_reductions(*search_groups(atoms, refused), builder)
    single = separate_parts(atoms, refused)
    return GroupSets(((atoms, single.groups),), single.refused)


def select_groups(
    found: GroupSets, builder: GroupBuilder, tuner: Tuner | None = None
) -> tuple[SelectedGroups, Mapping[str, Refusal]]:
    """Groups whose tiles are legal and fit, and why edges are not connected."""
    chosen: SelectedGroups = []
    reasons = dict(found.refused)
    for own, groups in found.groups:
        tiled = legalize_groups(groups, own, builder, tuner.most if tuner is not None else 1)
        for members in set(groups) - {members for members, _ in tiled}:
            reasons |= _apart(members, own, builder)
        if tuner is not None:
            tiled = tune_groups(tiled, own, builder, tuner)
        chosen += [(own, members, tile) for members, (tile, *_) in tiled]
    return [chosen[n] for n in execution_order_of([(own, members) for own, members, _ in chosen])], reasons


def search_groups(atoms: FusionProblem, refused: Mapping[str, Refusal]) -> tuple[FusionProblem, Partition]:
    """The parts, some of them cut, and the groups that are predicted to cost least."""
    return local_search(atoms, partition_parts(atoms, refused), refused)


def _apart(members: tuple[int, ...], atoms: FusionProblem, builder: GroupBuilder) -> dict[str, Refusal]:
    """Why the edges of a group that fell apart are not connected: what became of it when it was lowered."""
    reason = illegality(members, atoms, builder)
    inside = [edge_name(t, name) for n in members for t, name in atoms.edges[n] if atoms.home[t] in members]
    return {e: replace(reason, edge=e) for e in inside}
