"""The core tile of every group as a tuner chooses it, among those that are predicted best (W17, W20, W41)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from tilec.ir.plan import Plan
from tilec.scheduler.building.group_builder import GroupBuilder
from tilec.scheduler.fusion.legalize import single_group_plan
from tilec.scheduler.state import LegalGroup, SearchState, SearchStep, Stage
from tilec.scheduler.trace import Trace
from tilec.scheduler.tuning.signature import signature
from tilec.scheduler.tuning.tuner import Tuner


@dataclass(frozen=True)
class TuneGroups(SearchStep):
    """Tiles chosen by a tuner."""

    name: ClassVar[str] = "tune_groups"
    template: ClassVar[str] = "of the tiles that are predicted best, the one that was measured fastest is taken"
    stage: ClassVar[Stage] = "legal"

    def applies(self, state: SearchState) -> bool:
        """Where there is a tuner."""
        return super().applies(state) and state.tuner is not None and state.legal is not None

    def run(self, state: SearchState, _trace: Trace) -> SearchState:
        """Every group with one tile."""
        assert state.tuner is not None
        assert state.legal is not None
        return replace(state, legal=tune_groups(state.legal, state.builder, state.tuner))


def tune_groups(groups: tuple[LegalGroup, ...], builder: GroupBuilder, tuner: Tuner) -> tuple[LegalGroup, ...]:
    """Every group with the tile that the tuner chooses of those that it may have, the same one for groups that are
    alike."""
    keys = [group.problem.key(group.members, group.problem.leaving(group.members)) for group in groups]
    tuner.expect(len(set(keys)))
    places: dict[object, int] = {}
    for key, group in zip(keys, groups, strict=True):
        if key not in places:
            places[key] = _chosen(group, builder, tuner)
    return tuple(replace(group, tiles=(group.tiles[places[key]],)) for key, group in zip(keys, groups, strict=True))


def _chosen(group: LegalGroup, builder: GroupBuilder, tuner: Tuner) -> int:
    """The place of the tile that the tuner chooses for a group."""
    problem, members = group.problem, group.members
    nodes = [node for number in members for node in problem.parts[number]]
    content = signature(nodes, problem.leaving(members), problem.graph.tensors, problem.constants)

    def plan_of(place: int) -> Plan:
        return single_group_plan(members, group.tiles[place], problem, builder)

    return tuner.chosen(content, range(len(group.tiles)), plan_of)
