"""stitch: parts that work on the same rows stay in a core's cache (first form of Welder's connect; W16, A11, B17).

The steps of a softmax or a normalisation are row reductions and elementwise parts over the same rows.  They become
one group, connected at the level of a core, with tiles of whole rows.  Products of tensors stay by themselves: to
hold their rows whole would undo their tiling.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

import numpy as np

from tilec.ir.expr import Expr, TensorExpr, operands
from tilec.ir.graph import Graph, Node
from tilec.ir.intervals import Candidates
from tilec.ir.plan import Refusal
from tilec.ir.propagate import propagate
from tilec.scheduler.ancestry import Ancestry
from tilec.scheduler.contraction import is_contraction
from tilec.scheduler.parts import Partition, execution_order
from tilec.scheduler.reasons import edge, refusal
from tilec.scheduler.rows import rows_of
from tilec.scheduler.target import Target
from tilec.scheduler.windows import Box, Shapes, Windows, element_bytes, windows

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
    parts = _Parts(graph, partition.parts, target, numbers)
    groups: list[tuple[int, ...]] = []
    home: list[int] = []
    refused = dict(partition.refused)
    ancestry = Ancestry()
    for number, edges in enumerate(parts.edges):
        home.append(number)
        groups.append((number,))
        ancestry.add()
        ancestry.read(number, parts.needs[number])
        producers = sorted({home[parts.home[tensor]] for tensor, _ in edges}, reverse=True)
        for chosen in dict.fromkeys([tuple(producers), *((p,) for p in producers)]):
            members = tuple(sorted({n for g in chosen for n in groups[g]} | {number}))
            outside = {n for m in members for n in parts.needs[m]}.difference(members)
            reason = _objection(parts, members)
            if reason is None and any(ancestry.leads(g, n) for g in chosen for n in outside):
                reason = refusal("", "", "cycle")
            inside = [(t, name) for t, name in edges if home[parts.home[t]] in chosen]
            if reason is None and chosen:
                for t, name in inside:
                    refused.pop(edge(t, name), None)
                groups[number] = members
                for g in chosen:
                    groups[g] = ()
                    ancestry.read(g, [number])
                for n in members:
                    home[n] = number
                break
            if reason is not None and reason.code != PRODUCT:
                refused |= {edge(t, name): replace(reason, edge=edge(t, name)) for t, name in inside}
    kept = [members for members in groups if members]
    place = {n: i for i, members in enumerate(kept) for n in members}
    needs = [{place[n] for m in members for n in parts.needs[m]} - {i} for i, members in enumerate(kept)]
    order = execution_order(needs, [members[-1] for members in kept])
    return Grouping(tuple(tuple(parts.parts[n] for n in kept[i]) for i in order), refused)


@dataclass(frozen=True)
class _Parts:
    """Parts by number, and what does not change while they are joined."""

    graph: Graph
    parts: tuple[tuple[Node, ...], ...]
    target: Target
    numbers: Candidates
    followed: dict[tuple[object, ...], Windows] = field(default_factory=dict)

    def follow(self, expr: TensorExpr, box: Box, shapes: Shapes, numbers: Candidates) -> Windows:
        """Propagate through a node for one box, remembered: a group that grows asks the same again."""
        key = (expr.tensor, *((int(lo), int(hi)) for lo, hi in box.values()))
        found = self.followed.get(key)
        if found is None:
            found = self.followed[key] = propagate(expr, box, shapes, numbers)
        return found

    @cached_property
    def home(self) -> dict[str, int]:
        """Tensor -> number of the part that computes it."""
        return {node.name: number for number, part in enumerate(self.parts) for node in part}

    @cached_property
    def edges(self) -> tuple[tuple[tuple[str, str], ...], ...]:
        """For every part the (tensor, node) pairs by which it reads other parts."""
        return tuple(
            tuple((t, n.name) for n in part for t in operands(n.expr) if self.home.get(t, number) != number)
            for number, part in enumerate(self.parts)
        )

    @cached_property
    def needs(self) -> tuple[frozenset[int], ...]:
        """For every part the parts that it reads."""
        return tuple(frozenset(self.home[t] for t, _ in edges) for edges in self.edges)

    @cached_property
    def products(self) -> tuple[bool, ...]:
        """For every part whether it multiplies tensors."""
        return tuple(any(is_contraction(node.expr) for node in part) for part in self.parts)

    @cached_property
    def shapes(self) -> dict[str, tuple[Expr, ...]]:
        """Tensor -> shape."""
        return {name: t.shape for name, t in self.graph.tensors.items()}


def _objection(parts: _Parts, members: Sequence[int]) -> Refusal | None:
    """Why parts should not be one group; None when they may. The edge is filled in by the caller."""
    if any(parts.products[n] for n in members):
        return refusal("", "", PRODUCT)
    nodes = tuple(node for n in members for node in parts.parts[n])
    if not _all_lead_to_last(nodes):
        return refusal("", "", "outputs-differ")
    rows = rows_of(nodes)
    if not rows.iterators:
        reduced = parts.parts[members[-1]][0].expr.reduce
        return refusal("", "", "reduction", iterators=", ".join(reduced) or "none shared")
    one = {i: np.asarray(1, np.int64) for i in rows.iterators}
    held = windows(nodes, one, {}, parts.shapes, parts.numbers, parts.follow)
    size = sum(int(n) * element_bytes(parts.graph.tensors[t].ttype) for t, n in held.items())
    if size * SHARE > parts.target.capacity:
        return refusal("", "", "capacity", bytes=size, capacity=parts.target.capacity)
    total = prod(int(parts.numbers.size(extent)) for extent in rows.extents)
    if total < parts.target.cores and size * total > parts.target.near:
        return refusal("", "", "parallelism", rows=total, units=parts.target.cores)
    return None


def _all_lead_to_last(nodes: Sequence[Node]) -> bool:
    """Whether the last node depends on all others."""
    reached = {nodes[-1].name}
    for node in reversed(nodes):
        if node.name not in reached:
            return False
        reached.update(operands(node.expr))
    return True
