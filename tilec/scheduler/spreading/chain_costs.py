"""Predicted times of reductions and of the chains of partial and final reductions that come of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, prod

from tilec.ir.expr import TensorExpr
from tilec.ir.graph import Graph, Node, Tensor
from tilec.scheduler.analysis.contraction import is_contraction
from tilec.scheduler.analysis.window_propagation import extent_of
from tilec.scheduler.fusion.group_costs import roofline
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.graph_passes.partial_reductions import ReductionSplit, split_into_partials
from tilec.scheduler.memory_levels.hierarchical_search import upper_levels
from tilec.scheduler.search_cache import Part

Shape = tuple[bool, tuple[int, ...], tuple[int, ...]]
"""Whether a reduction is a contraction, and the extents of its spatial and of its reduce iterators."""

Splits = tuple[tuple[int, ReductionSplit], ...]
"""Splits one after the other: which reduction of the chain that came of those before, and how."""


@dataclass(frozen=True, slots=True)
class PartialChain:
    """A reduction and what became of it: nodes of which each reads the one before it, and the tensors between them."""

    nodes: tuple[Node, ...]
    tensors: Mapping[str, Tensor]


def on_core(problem: FusionProblem) -> FusionProblem:
    """The problem for the levels from that below a core's upward."""
    while problem.target.core > 1:
        target = upper_levels(problem.target)
        problem = replace(problem, target=target, cache=problem.cache.of_target(target))
    return problem


def split_chain(node: Node, splits: Splits, graph: Graph, constants: frozenset[str]) -> PartialChain:
    """A reduction of a graph after some splits; without nodes where one of them is none of it."""
    nodes, tensors = [node], dict[str, Tensor]()
    for place, split in splits:
        known = replace(graph, tensors={**graph.tensors, **tensors})
        pair = split_into_partials(nodes[place], split, known, constants)
        if pair is None:
            return PartialChain((), {})
        nodes[place : place + 1] = [pair.partial, pair.final]
        tensors[pair.partial.name] = pair.tensor
    return PartialChain(tuple(nodes), tensors)


@dataclass(frozen=True)
class ChainCosts:
    """Predicted times of reductions and of the chains that come of them."""

    problem: FusionProblem
    graph: Graph
    constants: frozenset[str]

    def shape(self, expr: TensorExpr) -> Shape:
        """What reductions have in common that are split alike."""
        spatial = tuple(extent_of(n, self.problem.numbers) for n in expr.shape)
        reduce = tuple(extent_of(expr.domain[i], self.problem.numbers) for i in expr.reduce)
        return is_contraction(expr), spatial, reduce

    def distinct(self, nodes: Sequence[Node]) -> list[Node]:
        """The first of all nodes that are the same but for the names of tensors."""
        first: dict[int, Node] = {}
        for each, node in zip(self._problem(nodes, {}).descriptions, nodes, strict=True):
            first.setdefault(each.number, node)
        return list(first.values())

    def chain(self, node: Node, splits: Splits) -> PartialChain:
        """A reduction after some splits."""
        return split_chain(node, splits, self.graph, self.constants)

    def best(self, nodes: Sequence[Node], trials: Sequence[Splits], limit: float) -> tuple[float, Splits]:
        """The splits with which some reductions take least on average, the first of several, if that is below a limit.

        Where the partial reductions alone exceed what was found, their chains are not looked at.
        """
        found: tuple[float, Splits] = (limit, ())
        for splits in trials:
            chains = [self.chain(node, splits) for node in nodes]
            if not all(chain.nodes for chain in chains):
                continue
            if sum(self.seconds(chain.nodes[:1], chain.tensors) for chain in chains) / len(nodes) < found[0]:
                seconds = sum(self.seconds(chain.nodes, chain.tensors) for chain in chains) / len(nodes)
                found = min(found, (seconds, splits), key=lambda each: each[0])
        return found

    def seconds(self, nodes: Sequence[Node], tensors: Mapping[str, Tensor]) -> float:
        """Predicted time of a chain, cut into the groups that take least; of several nodes only groups that look as if
        they took less are searched."""
        problem = self._problem(nodes, tensors)
        best = [0.0]
        for end in range(1, len(nodes) + 1):
            least = best[-1] + problem.core_tiles((end - 1,))[0].seconds
            for start in range(end - 1):
                members = tuple(range(start, end))
                if best[start] + problem.look(members).hoped < least:
                    tile = problem.core_tiles(members)[0]
                    least = min(least, best[start] + (tile.seconds if tile.fits else inf))
            best.append(least)
        return best[-1]

    def least(self, node: Node) -> float:
        """Time that no tiling of a reduction falls short of."""
        return roofline(self._problem([node], {}), (0,))

    def partials(self, chain: PartialChain) -> int:
        """Partial results of every result, those of all splits."""
        first, last = (prod(self.shape(node.expr)[1]) for node in (chain.nodes[0], chain.nodes[-1]))
        return first // max(1, last)

    def _problem(self, nodes: Sequence[Node], tensors: Mapping[str, Tensor]) -> FusionProblem:
        graph = replace(self.graph, nodes=(*self._prepared, *nodes), tensors={**self.graph.tensors, **tensors})
        return replace(
            self.problem, graph=graph, parts=tuple((node,) for node in nodes), outputs=frozenset({nodes[-1].name})
        )

    @cached_property
    def _prepared(self) -> Part:
        return tuple(node for node in self.graph.nodes if node.name in self.constants)
