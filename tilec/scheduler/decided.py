"""decided: what the search has decided for a part of a graph between its calls, before groups are built."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tilec.ir.graph import Graph
from tilec.ir.plan import Refusal
from tilec.scheduler.groups.atoms import Atoms
from tilec.scheduler.groups.build import Builder, Draught
from tilec.scheduler.groups.chosen import Chosen
from tilec.scheduler.passes.parts import Partition
from tilec.scheduler.tiers.nest import Nest


@dataclass(frozen=True, slots=True)
class Decided:
    """Groups in execution order before they are built: what each takes; why edges are not connected.

    `fused` are the parts that share registers before any is cut, `atoms` those that groups are made of, and `groups`
    what is chosen of them.  Devices with levels below a core's that are filled by copies have a `nest` instead.
    """

    graph: Graph
    builder: Builder
    seconds: Sequence[float]
    draughts: Callable[[], Sequence[Draught]]
    refused: Mapping[str, Refusal]
    fused: Partition
    atoms: Atoms | None = None
    groups: Chosen | None = None
    nest: Nest | None = None
