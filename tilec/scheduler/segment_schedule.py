"""decided: what the search has decided for a part of a graph between its calls, before groups are built."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tilec.ir.graph import Graph
from tilec.ir.plan import Refusal
from tilec.scheduler.building.group_builder import GroupBuilder, TiledGroup
from tilec.scheduler.fusion.select_groups import SelectedGroups
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.graph_passes.fuse_registers import RegisterFusion
from tilec.scheduler.memory_levels.hierarchical_search import HierarchicalSearch


@dataclass(frozen=True, slots=True)
class LegalGroups:
    """Groups in execution order before they are built: what each takes; why edges are not connected; what is chosen of
    parts, where a core's level is the lowest that copies fill."""

    seconds: Sequence[float]
    draughts: Callable[[], Sequence[TiledGroup]]
    refused: Mapping[str, Refusal]
    groups: SelectedGroups | None = None


@dataclass(frozen=True)
class SegmentSchedule:
    """What the search found: `hoped` seconds of its groups, which are fewer than they take where tiles turn out not to
    be legal or not to fit; `settle` finds out, which costs as much as the search where levels are explicit.

    `fused` are the parts that share registers before any is cut, `atoms` those that groups are made of.  Devices with
    levels below a core's that are filled by copies have a `nest` instead.
    """

    graph: Graph
    builder: GroupBuilder
    hoped: Sequence[float]
    settle: Callable[[], LegalGroups]
    fused: RegisterFusion
    atoms: FusionProblem | None = None
    nest: HierarchicalSearch | None = None

    @cached_property
    def settled(self) -> LegalGroups:
        """The groups with tiles that are legal and fit."""
        return self.settle()
