"""Rows: iterators that all nodes of a group share, so that a tile of them needs nothing from other tiles (W06, B17)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilec.ir.expr import Expr, TensorExpr, Var, accesses, constant_value
from tilec.ir.graph import Node
from tilec.scheduler.tiling.further_sinks import sinks_of, twins

SharedIterator = Mapping[str, Mapping[str, str]]
"""Iterator of the final node -> node -> its iterator that moves along."""


@dataclass(frozen=True, slots=True)
class CommonIterators:
    """Shared iterators of the final node, outermost first, and what they are called in the other nodes."""

    iterators: tuple[str, ...]
    shared: SharedIterator
    extents: tuple[Expr, ...]


def common_iterators(nodes: Sequence[Node]) -> CommonIterators:
    """The iterators of the last node along which all nodes can be tiled together.

    In every node they stand before all others in storage, so that a tile is a run of whole rows.  Iterators of
    extent 1 do not count.
    """
    final, made = nodes[-1].expr, {node.name: node.expr for node in nodes}
    along = {sink: twins(final, made[sink]) for sink in sinks_of(nodes)}
    shared = {i: found for i in _moving(final) if (found := _followed(i, made, along)) is not None}
    while dropped := _not_leading(shared, nodes):
        for iterator in dropped:
            shared.pop(iterator)
    order = tuple(i for i in final.spatial if i in shared)
    return CommonIterators(order, {i: shared[i] for i in order}, tuple(final.domain[i] for i in order))


def _moving(expr: TensorExpr) -> tuple[str, ...]:
    return tuple(i for i, e in zip(expr.spatial, expr.shape, strict=True) if constant_value(e) != 1)


def _followed(
    iterator: str, made: Mapping[str, TensorExpr], along: Mapping[str, Mapping[str, str]]
) -> dict[str, str] | None:
    """What moves along with an iterator of the last node in each node, None if it is not one iterator everywhere."""
    *_, last = made
    names = {last: iterator}
    for sink, moved in along.items():
        if iterator not in moved:
            return None
        names[sink] = moved[iterator]
    for name, expr in reversed([*made.items()]):
        if name not in names:
            return None
        here = Var(names[name])
        for access in accesses(expr):
            if access.tensor not in made:
                continue
            producer = made[access.tensor]
            there = [i for i, index in zip(producer.spatial, access.index, strict=True) if index == here]
            if len(there) != 1 or producer.domain[there[0]] != expr.domain[here.name]:
                return None
            if names.setdefault(access.tensor, there[0]) != there[0]:
                return None
    return names


def _not_leading(shared: SharedIterator, nodes: Sequence[Node]) -> set[str]:
    """Shared iterators that stand behind an iterator of some node that is not shared."""
    found: set[str] = set()
    for node in nodes:
        own = {names[node.name]: iterator for iterator, names in shared.items()}
        behind = False
        for i in _moving(node.expr):
            if i not in own:
                behind = True
            elif behind:
                found.add(own[i])
    return found
