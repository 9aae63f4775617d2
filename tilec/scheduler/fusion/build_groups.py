"""Groups with their tiles as blocks, variants and packed weights (W15, W41)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from tilec.scheduler.building.size_variants import with_size_variants
from tilec.scheduler.state import SearchState, SearchStep, Stage
from tilec.scheduler.trace import Trace


@dataclass(frozen=True)
class BuildGroups(SearchStep):
    """Groups built as a plan has them."""

    name: ClassVar[str] = "build_groups"
    template: ClassVar[str] = (
        "every group is built with the first of its tiles, and weights are packed as it reads them"
    )
    stage: ClassVar[Stage] = "built"
    required: ClassVar[str] = "a plan is made of the groups that it builds"

    def applies(self, state: SearchState) -> bool:
        """Where tiles are legal."""
        return super().applies(state) and state.legal is not None

    def run(self, state: SearchState, _trace: Trace) -> SearchState:
        """The groups in execution order."""
        assert state.legal is not None
        builder, target = state.builder, state.problem.target
        blocks = [builder.core_block(each.problem, each.members, each.tiles[0]) for each in state.legal]
        groups = tuple(
            builder.tiled_group(block, each.problem.leaving(each.members), target, each.tiles[0].seconds)
            for block, each in zip(blocks, state.legal, strict=True)
        )
        most = state.options.variants
        pairs = zip(groups, state.legal, strict=True)
        varied = (with_size_variants(g, of.problem, of.members, of.tiles[0], builder, most) for g, of in pairs)
        return replace(state, groups=tuple(varied))
