"""Tile requests: the task that a level passes to the level above."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tilec.ir.program import Buffer, Statement
from tilec.lower.connected_parts import ConnectedPart
from tilec.lower.lowering_context import Box, Window
from tilec.lower.split import LoopHead


@dataclass(frozen=True, slots=True)
class RequestTarget:
    """Destination of a tensor of a part: a buffer at a lower level, and the region of it that the part must store."""

    buffer: Buffer
    region: Window


@dataclass(frozen=True, slots=True)
class ReduceNest:
    """Reduce loops of one node, the box of one step, and the statements of a step in front of the level above."""

    heads: tuple[LoopHead, ...]
    chunk: Box
    body: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True)
class Limit:
    """The box of a node at the level below, valid while the node is inside the reduce loops of the nodes `inside`."""

    inside: frozenset[str]
    box: Window


@dataclass(frozen=True, slots=True)
class TileRequest:
    """A part to be computed at a level.

    box         box of the final node; its reduce iterators as far as lower levels have split them
    targets     tensors that leave the part
    sources     (node, tensor from outside) -> buffer of a lower level that it is read from
    limits      node -> its boxes at lower levels, which the boxes at this level must not leave
    accumulate  the final node's target contains a partial result to continue
    pending     node -> reduce loops of lower levels to be placed inside this part's tile loops
    """

    part: ConnectedPart
    level: int
    box: Box
    targets: Mapping[str, RequestTarget]
    sources: Mapping[tuple[str, str], Buffer]
    limits: Mapping[str, tuple[Limit, ...]] = field(default_factory=dict)
    accumulate: bool = False
    pending: Mapping[str, tuple[ReduceNest, ...]] = field(default_factory=dict)
