"""decided: what the search has decided for a part of a graph between its calls, before groups are built."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tilec.ir.graph import Graph
from tilec.ir.plan import Refusal
from tilec.scheduler.groups.atoms import Atoms
from tilec.scheduler.groups.build import Builder, Draught
from tilec.scheduler.groups.chosen import Chosen
from tilec.scheduler.passes.parts import Partition
from tilec.scheduler.tiers.nest import Nest


@dataclass(frozen=True, slots=True)
class Settled:
    """Groups in execution order before they are built: what each takes; why edges are not connected; what is chosen of
    parts, where a core's level is the lowest that copies fill."""

    seconds: Sequence[float]
    draughts: Callable[[], Sequence[Draught]]
    refused: Mapping[str, Refusal]
    groups: Chosen | None = None


@dataclass(frozen=True)
class Decided:
    """What the search found: `hoped` seconds of its groups, which are fewer than they take where tiles turn out not to
    be legal or not to fit; `settle` finds out, which costs as much as the search where levels are explicit.

    `fused` are the parts that share registers before any is cut, `atoms` those that groups are made of.  Devices with
    levels below a core's that are filled by copies have a `nest` instead.
    """

    graph: Graph
    builder: Builder
    hoped: Sequence[float]
    settle: Callable[[], Settled]
    fused: Partition
    atoms: Atoms | None = None
    nest: Nest | None = None

    @cached_property
    def settled(self) -> Settled:
        """The groups with tiles that are legal and fit."""
        return self.settle()
