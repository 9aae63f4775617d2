"""What a plan says of the code of a group: vectors, unrolling, accumulators, fetches, streamed stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tilec.ir.plan import PrefetchKind, Variant
from tilec.ir.program import Program

OWN = frozenset({"vectors", "unroll", "accumulators", "prefetch", "streamed"})
"""The fields of a variant that say what the code of a CPU is."""


@dataclass(frozen=True, slots=True)
class NodeDecision:
    """How the full tile of a node is computed: along which iterator vectors run ("": scalar code), how many points of
    an iterator one body covers (absent: one, or one vector), how many accumulators a point of a reduction has."""

    vector: str
    unroll: Mapping[str, int] = field(default_factory=dict)
    accumulators: int = 1


@dataclass(frozen=True, slots=True)
class Decisions:
    """What code generation obeys, fetches and stores by the names of parameters. Nodes that are absent, and fetches and
    streamed stores that are None, are left to the rules that `decided_variant` writes down."""

    nodes: Mapping[str, NodeDecision] = field(default_factory=dict)
    prefetch: Mapping[str, PrefetchKind] | None = None
    streamed: frozenset[str] | None = None

    def fetched(self, kind: Literal["step", "task"]) -> frozenset[str] | None:
        """What is fetched in one way; None where that is not decided."""
        if self.prefetch is None:
            return None
        return frozenset(memory for memory, of in self.prefetch.items() if of in (kind, "both"))

    @classmethod
    def of(cls, variant: Variant, program: Program) -> Decisions:
        """What a variant says of its program; one without `vectors` says nothing."""
        if not variant.vectors:
            return UNDECIDED
        nodes = {
            node: NodeDecision(vector, variant.unroll.get(node, {}), variant.accumulators.get(node, 1))
            for node, vector in variant.vectors.items()
        }
        memories = {parameter.tensor: parameter.name for parameter in program.parameters}
        prefetch = {memories.get(tensor, tensor): kind for tensor, kind in variant.prefetch.items()}
        return cls(nodes, prefetch, frozenset(memories.get(tensor, tensor) for tensor in variant.streamed))


UNDECIDED = Decisions()
"""Everything left to the rules."""
