"""What a part is asked for by the level below it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tilec.ir.program import Buffer, Statement
from tilec.lower.connected_parts import ConnectedPart
from tilec.lower.lowering_context import Box, Window
from tilec.lower.split import LoopHead


@dataclass(frozen=True, slots=True)
class RequestTarget:
    """Where a tensor of a part is stored: a buffer further down, and the region of it that the part answers for."""

    buffer: Buffer
    region: Window


@dataclass(frozen=True, slots=True)
class ReduceNest:
    """Reduce loops of one node, the box of one step, and what a step does before it goes a level up."""

    heads: tuple[LoopHead, ...]
    chunk: Box
    body: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True)
class Limit:
    """The box that a node has at the level below, as long as it lives in the reduce loops of the nodes `inside`."""

    inside: frozenset[str]
    box: Window


@dataclass(frozen=True, slots=True)
class TileRequest:
    """A part to be computed at a level.

    box         iterators of the final node; its reduce iterators as far as the level below has split them
    targets     tensors that leave the part
    sources     (node, tensor from outside) -> buffer of a lower level that it is read from
    limits      node -> its boxes at the level below, which the ones here must not leave
    accumulate  the final node's target holds a partial result to continue
    pending     node -> reduce loops of lower levels that wait to be placed inside this part's tile loops
    """

    part: ConnectedPart
    level: int
    box: Box
    targets: Mapping[str, RequestTarget]
    sources: Mapping[tuple[str, str], Buffer]
    limits: Mapping[str, tuple[Limit, ...]] = field(default_factory=dict)
    accumulate: bool = False
    pending: Mapping[str, tuple[ReduceNest, ...]] = field(default_factory=dict)
