"""stitch: parts that work on the same rows stay in a core's cache (first form of Welder's connect; W16, A11, B17).

The steps of a softmax or a normalisation are row reductions and elementwise parts over the same rows.  They become
one group, connected at the level of a core, with tiles of whole rows.  Products of tensors stay by themselves: to
hold their rows whole would undo their tiling.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tilec.ir.expr import operands
from tilec.ir.graph import Graph, Node
from tilec.ir.intervals import Candidates
from tilec.ir.plan import Refusal
from tilec.scheduler.contraction import is_contraction
from tilec.scheduler.parts import Partition, execution_order
from tilec.scheduler.reasons import edge, refusal
from tilec.scheduler.rows import rows_of
from tilec.scheduler.target import Target
from tilec.scheduler.windows import element_bytes, windows

PRODUCT = "recomputed"
"""Of what a product reads or writes, `fuse` has said why it is not connected."""

SHARE = 2
"""One row of everything that a group touches may take this fraction of a core's level."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """Groups in execution order: each a tuple of parts; why edges between groups are not connected."""

    groups: tuple[tuple[tuple[Node, ...], ...], ...]
    refused: Mapping[str, Refusal]


def separate(partition: Partition) -> Grouping:
    """Every part a group of its own."""
    return Grouping(tuple((part,) for part in partition.parts), partition.refused)


def stitch(graph: Graph, partition: Partition, target: Target, numbers: Candidates) -> Grouping:
    """Join parts whose rows coincide, as long as one row fits and there are rows for every core."""
    groups: list[list[int]] = []
    home: dict[str, int] = {}
    refused = dict(partition.refused)
    parts = partition.parts
    for number, part in enumerate(parts):
        reads = [(t, node.name) for node in part for t in operands(node.expr) if t in home]
        producers = sorted({home[t] for t, _ in reads}, reverse=True)
        joined = None
        for chosen in [producers, *([p] for p in producers)] if len(producers) > 1 else [producers][: len(producers)]:
            reason = _objection(chosen, number, groups, parts, home, graph, target, numbers)
            if reason is None:
                joined = chosen
                break
            for tensor, name in reads:
                if home[tensor] in chosen and reason.code != PRODUCT:
                    refused[edge(tensor, name)] = _about(reason, tensor, name)
        if joined is None:
            groups.append([number])
        else:
            merged = sorted({n for g in joined for n in groups[g]} | {number})
            for g in joined:
                groups[g] = []
            groups.append(merged)
            for tensor, name in reads:
                if home[tensor] in joined:
                    refused.pop(edge(tensor, name), None)
        for n in groups[-1]:
            home.update({node.name: len(groups) - 1 for node in parts[n]})
    return _in_order(groups, parts, home, refused)


def _objection(
    chosen: Sequence[int],
    number: int,
    groups: Sequence[Sequence[int]],
    parts: Sequence[tuple[Node, ...]],
    home: Mapping[str, int],
    graph: Graph,
    target: Target,
    numbers: Candidates,
) -> Refusal | None:
    """Why a part should not join some groups; None when it may. The edge of the refusal is filled in later."""
    members = sorted({n for g in chosen for n in groups[g]} | {number})
    nodes = tuple(node for n in members for node in parts[n])
    if any(is_contraction(node.expr) for node in nodes):
        return refusal("", "", PRODUCT)
    names = {node.name for node in nodes}
    if not all(_feeds(node.name, nodes) for node in nodes):
        return refusal("", "", "outputs-differ")
    outside = {home[t] for node in nodes for t in operands(node.expr) if t in home and t not in names}
    if any(set(chosen) & _below(other, groups, parts, home) for other in outside):
        return refusal("", "", "cycle")
    rows = rows_of(nodes)
    total = 1
    for extent in rows.extents:
        total *= int(numbers.size(extent))
    if not rows.iterators:
        return refusal("", "", "reduction", iterators=", ".join(parts[number][0].expr.reduce) or "none shared")
    one: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.int64]]] = {
        i: np.asarray(1, np.int64) for i in rows.iterators
    }
    shapes = {name: t.shape for name, t in graph.tensors.items()}
    held = windows(nodes, one, {}, shapes, numbers)
    size = sum(int(n) * element_bytes(graph.tensors[t].ttype) for t, n in held.items())
    if size * SHARE > target.capacity:
        return refusal("", "", "capacity", bytes=size, capacity=target.capacity)
    if total < target.cores and size * total > target.near:
        return refusal("", "", "parallelism", rows=total, units=target.cores)
    return None


def _about(reason: Refusal, tensor: str, node: str) -> Refusal:
    return Refusal(edge(tensor, node), reason.code, reason.numbers)


def _feeds(name: str, nodes: Sequence[Node]) -> bool:
    """Whether the last node depends on a node."""
    reached = {nodes[-1].name}
    for node in reversed(nodes):
        if node.name in reached:
            reached.update(operands(node.expr))
    return name in reached


def _below(
    group: int, groups: Sequence[Sequence[int]], parts: Sequence[tuple[Node, ...]], home: Mapping[str, int]
) -> set[int]:
    """A group and every group that it depends on."""
    found, waiting = {group}, [group]
    while waiting:
        for n in groups[waiting.pop()]:
            for tensor in (t for node in parts[n] for t in operands(node.expr) if t in home):
                if home[tensor] not in found:
                    found.add(home[tensor])
                    waiting.append(home[tensor])
    return found


def _in_order(
    groups: Sequence[Sequence[int]],
    parts: Sequence[tuple[Node, ...]],
    home: Mapping[str, int],
    refused: Mapping[str, Refusal],
) -> Grouping:
    kept = [g for g, members in enumerate(groups) if members]
    place = {g: i for i, g in enumerate(kept)}
    needs = [
        {place[home[t]] for n in groups[g] for node in parts[n] for t in operands(node.expr) if t in home} - {place[g]}
        for g in kept
    ]
    order = execution_order(needs, [max(groups[g]) for g in kept])
    return Grouping(tuple(tuple(parts[n] for n in sorted(groups[kept[i]])) for i in order), refused)
