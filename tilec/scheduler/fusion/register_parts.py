"""The first step of a search: parts of elementwise nodes that stay in the registers of what they read (W32, A05)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from tilec.scheduler.graph_passes.fuse_registers import fuse_registers, single_nodes
from tilec.scheduler.state import SearchState, SearchStep
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.trace import Trace


@dataclass(frozen=True)
class FuseRegisters(SearchStep):
    """Nodes joined to parts; with fusion `none` every node is one."""

    name: ClassVar[str] = "fuse_registers"
    template: ClassVar[str] = "an elementwise node shares the registers of a producer that it reads point by point"
    required: ClassVar[str] = "groups are made of its parts; `fusion: none` leaves every node alone"

    max_nodes: int = 64
    """Nodes of a part at most: trying every place to split a part takes time in their square, and the largest parts of
    networks in use have about 40."""

    def applies(self, _state: SearchState) -> bool:
        """On every device."""
        return True

    def level(self, target: TargetModel) -> str:
        """Registers."""
        return target.top

    def run(self, state: SearchState, _trace: Trace) -> SearchState:
        """The parts, each a group of its own."""
        graph = state.problem.graph
        parted = single_nodes(graph) if state.options.fusion == "none" else fuse_registers(graph, self.max_nodes)
        return replace(state.with_parts(parted.parts, parted.refused), fused=parted.parts)
