"""Reductions with too few results to keep a device busy are spread over its units (split-K).

One unit that adds up a whole image, or one thread a row, leaves all others idle.  Whether partial results pay, how many
and of which elements is predicted for every reduction by the costs that the search itself goes by: the partial and the
final reduction as one group, or as two, against the reduction as it is.  Partial and final reductions are reductions
themselves, and are tried again: tasks that each take a run of the elements, whose threads each take some of that run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

from tilec.ir.graph import Node
from tilec.scheduler.fusion.group_costs import PICO
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.graph_passes.partial_reductions import ReductionSplit
from tilec.scheduler.graph_passes.rewrite import constant_tensors, with_nodes
from tilec.scheduler.refusals import ReductionSpread, RewrittenGraph
from tilec.scheduler.spreading.chain_costs import (
    ChainCosts,
    PartialChain,
    Shape,
    Splits,
    on_core,
    split_chain,
)
from tilec.scheduler.spreading.reduction_splits import splits_into
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.trace import ListedStep


@dataclass(frozen=True)
class SpreadReductions(ListedStep):
    """Reductions of few results as partial and final reductions."""

    name: ClassVar[str] = "spread_reductions"
    template: ClassVar[str] = (
        "a reduction with fewer results than the device works on at a time is spread over partial results where that "
        "is predicted to take less than {gain:g} of it"
    )
    without: ClassVar[str] = "reductions whole"
    always: ClassVar[bool] = False

    gain: float = 0.9
    """A split is made where the chain that comes of it is predicted to take less than this fraction: fusion may make up
    for less."""

    near: float = 1.5
    """A reduction that takes no more than so many times what its arithmetic and its traffic take at full rates is left
    as it is."""

    share: float = 0.01
    """The same for reductions that could save no more than this part of what all of the graph take at full rates."""

    min_steps: int = 16
    """Elements of a result at least: a window of 3x3 is no reduction to share."""

    spacing: int = 8
    """Numbers of partial results that are tried lie by this factor apart."""

    tried: int = 4
    """How many of them are tried."""

    depth: int = 3
    """Splits of one reduction and of what comes of it at most."""

    members: int = 2
    """Reductions that differ, of those that are split alike, by which the split is chosen."""

    def run(self, draft: RewrittenGraph, problem: FusionProblem) -> RewrittenGraph:
        """Split the reductions of a graph for the target of a problem.

        args:
            draft: the graph, and the edges refused so far
            problem: the target and its costs; graph and parts of it are not looked at
        rewrite:
            `split_into_partials`, of reductions with equal extents alike, so that they can share tiles
        checks:
            the device works on more results at a time than the reduction has
            the reduction is predicted to take longer than its arithmetic and its traffic at full rates
            the chain of reductions, fused or not, is predicted to take less than `gain` of it
        """
        units = at_a_time(problem.target)
        if problem.objective != "time" or units <= 1:
            return draft
        graph, constants = draft.graph, constant_tensors(draft.graph)
        costs = ChainCosts(on_core(problem), graph, constants)
        alike: dict[Shape, list[Node]] = {}
        for node in graph.nodes:
            if node.expr.reduce and node.name not in constants:
                alike.setdefault(costs.shape(node.expr), []).append(node)
        few = [self._left(shape, units) == "" for shape in alike]
        full = sum(len(nodes) * costs.least(nodes[0]) for nodes in alike.values()) if any(few) else 0.0
        spread: dict[str, ReductionSpread] = {}
        chains: dict[str, PartialChain] = {}
        tensors = dict(graph.tensors)
        for shape, nodes in alike.items():
            splits, numbers = self._decided(shape, nodes, costs, full * self.share)
            for node in nodes:
                chain = split_chain(node, splits, replace(graph, tensors=tensors), constants)
                spread[node.name] = replace(numbers, node=node.name)
                if len(chain.nodes) > 1:
                    chains[node.name] = chain
                    tensors |= chain.tensors
        if not chains:
            return replace(draft, spread=spread)
        rewritten = [
            each for node in graph.nodes for each in (chains[node.name].nodes if node.name in chains else (node,))
        ]
        return RewrittenGraph(with_nodes(graph, rewritten, tensors), draft.refused, spread)

    def _decided(
        self, shape: Shape, nodes: Sequence[Node], costs: ChainCosts, worth: float
    ) -> tuple[Splits, ReductionSpread]:
        """The splits of reductions with equal extents, none where they do not pay, and the figures behind that; what
        saves less than `worth` is not looked for."""
        units = at_a_time(costs.problem.target)
        numbers = ReductionSpread("", prod(shape[1]), prod(shape[2]), units)
        if reason := self._left(shape, units):
            return (), replace(numbers, reason=reason)
        members = costs.distinct(nodes)[: self.members]
        whole = sum(costs.seconds([node], {}) for node in members) / len(members)
        least = sum(costs.least(node) for node in members) / len(members)
        numbers = replace(numbers, whole=int(whole * PICO), split=int(least * PICO))
        if whole <= least * self.near or (whole - least) * len(nodes) <= worth:
            return (), replace(numbers, reason="rates" if whole <= least * self.near else "share")
        splits: Splits = ()
        best = whole
        while len(splits) < self.depth and best > least * self.near:
            seconds, found = costs.best(
                members, [(*splits, step) for step in self._steps(members[0], splits, costs)], best
            )
            if seconds >= best * self.gain:
                break
            best, splits = seconds, found
        if not splits:
            return (), replace(numbers, reason="slower")
        partials = costs.partials(costs.chain(members[0], splits))
        return splits, replace(numbers, split=int(best * PICO), partials=partials)

    def _steps(self, node: Node, splits: Splits, costs: ChainCosts) -> Iterator[tuple[int, ReductionSplit]]:
        """One more split of any reduction of a chain that has too few results."""
        units = at_a_time(costs.problem.target)
        for place, each in enumerate(costs.chain(node, splits).nodes):
            _, spatial, reduce = shape = costs.shape(each.expr)
            if self._left(shape, units):
                continue
            most = min(units // prod(spatial), prod(reduce) // 2)
            counts = [n for k in range(self.tried) if (n := (1 << most.bit_length() - 1) // self.spacing**k) > 1]
            options = dict.fromkeys(split for n in counts for split in splits_into(each.expr, reduce, n, costs.graph))
            yield from ((place, split) for split in options)

    def _left(self, shape: Shape, units: int) -> str:
        """Why reductions are left whole that have so many results of so many elements; empty where there is no such
        reason."""
        _, spatial, reduce = shape
        if prod(reduce) < self.min_steps:
            return "short"
        return "" if 0 < prod(spatial) < units else "results"


def at_a_time(target: TargetModel) -> int:
    """Results that a device works on at a time: one for each lane of the units of every core; of one core's vectors
    any reduction makes use."""
    units = target.cores * target.threads
    return units * target.lanes(4) if units > 1 else 1
