"""What a plan says of the code of a group: vectors, unrolling, accumulators, fetches, streamed stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

PrefetchKind = Literal["step", "task", "both"]
"""Who fetches a tensor ahead: the reductions that read it, while they compute the step before; the longest reduction of
a task, for the next one; both."""


@dataclass(frozen=True, slots=True)
class NodeDecision:
    """How the full tile of a node is computed: along which iterator vectors run ("": scalar code), how many points of
    an iterator one body covers (absent: one, or one vector), how many accumulators a point of a reduction has."""

    vector: str
    unroll: Mapping[str, int] = field(default_factory=dict)
    accumulators: int = 1


@dataclass(frozen=True, slots=True)
class Decisions:
    """What code generation obeys. Nodes that are absent, and fetches and streamed stores that are None, are left to the
    rules that `decide` writes down."""

    nodes: Mapping[str, NodeDecision] = field(default_factory=dict)
    prefetch: Mapping[str, PrefetchKind] | None = None
    streamed: frozenset[str] | None = None


UNDECIDED = Decisions()
"""Everything left to the rules."""
