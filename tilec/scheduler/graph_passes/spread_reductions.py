"""Reductions with too few results to keep a device busy are spread over its units (B11, W26; split-K).

One unit that adds up a whole image, or one thread a row, leaves all others idle.  Whether partial results pay, how many
and of which elements is predicted for every reduction by the costs that the search itself goes by: the partial and the
final reduction as one group, or as two, against the reduction as it is.  Partial and final reductions are reductions
themselves, and are tried again: tasks that each take a run of the elements, whose threads each take some of that run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, prod
from typing import ClassVar

from tilec.ir.expr import TensorExpr, accesses, constant_value
from tilec.ir.graph import Graph, Node, Tensor
from tilec.scheduler.analysis.access import stride
from tilec.scheduler.analysis.contraction import is_contraction
from tilec.scheduler.analysis.window_propagation import extent_of
from tilec.scheduler.fusion.group_costs import PICO, roofline
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.graph_passes.partial_reductions import AxisSplit, ReductionSplit, split_into_partials
from tilec.scheduler.graph_passes.rewrite import constant_tensors, with_nodes
from tilec.scheduler.memory_levels.hierarchical_search import upper_levels
from tilec.scheduler.refusals import ReductionSpread, RewrittenGraph
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.trace import ListedStep

Shape = tuple[bool, tuple[int, ...], tuple[int, ...]]
"""Whether a reduction is a contraction, and the extents of its spatial and of its reduce iterators."""

Splits = tuple[tuple[int, ReductionSplit], ...]
"""Splits one after the other: which reduction of the chain that came of those before, and how."""


@dataclass(frozen=True, slots=True)
class ReductionChain:
    """A reduction and what became of it: nodes of which each reads the one before it, and the tensors between them."""

    nodes: tuple[Node, ...]
    tensors: Mapping[str, Tensor]


@dataclass(frozen=True)
class SpreadReductions(ListedStep):
    """Reductions of few results as partial and final reductions."""

    name: ClassVar[str] = "spread_reductions"
    template: ClassVar[str] = (
        "a reduction with fewer results than the device works on at a time is spread over partial results where that "
        "is predicted to take less than {gain:g} of it"
    )
    without: ClassVar[str] = "reductions whole"

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
        if problem.objective != "time" or at_a_time(problem.target) <= 1:
            return draft
        graph, constants = draft.graph, constant_tensors(draft.graph)
        costs = ChainCosts(on_core(problem), graph, constants)
        alike: dict[Shape, list[Node]] = {}
        for node in graph.nodes:
            if node.expr.reduce and node.name not in constants:
                alike.setdefault(costs.shape(node.expr), []).append(node)
        full = sum(costs.least(node) for nodes in alike.values() for node in nodes)
        spread: dict[str, ReductionSpread] = {}
        chains: dict[str, ReductionChain] = {}
        tensors = dict(graph.tensors)
        for shape, nodes in alike.items():
            splits, numbers = self._decided(shape, nodes, costs, full * self.share)
            for node in nodes:
                spread[node.name] = replace(numbers, node=node.name)
                if splits:
                    chains[node.name] = split_chain(node, splits, replace(graph, tensors=tensors), constants)
                    tensors |= chains[node.name].tensors
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
        _, spatial, reduce = shape
        results, steps, units = prod(spatial), prod(reduce), at_a_time(costs.problem.target)
        numbers = ReductionSpread("", results, steps, units)
        if results >= units or steps < self.min_steps or not results:
            return (), replace(numbers, reason="short" if steps < self.min_steps else "results")
        members = costs.distinct(nodes)[: self.members]
        whole = sum(costs.seconds([node], {}) for node in members) / len(members)
        least = sum(costs.least(node) for node in members) / len(members)
        numbers = replace(numbers, whole=int(whole * PICO), split=int(least * PICO))
        if whole <= least * self.near or (whole - least) * len(nodes) <= worth:
            return (), replace(numbers, reason="rates" if whole <= least * self.near else "share")
        splits: Splits = ()
        best = whole
        while len(splits) < self.depth and best > least * self.near:
            seconds, found = costs.best(members, [(*splits, step) for step in self._steps(members[0], splits, costs)], best)
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
            _, spatial, reduce = costs.shape(each.expr)
            results, steps = prod(spatial), prod(reduce)
            if results >= units or steps < self.min_steps:
                continue
            most = min(units // results, steps // 2)
            counts = [n for k in range(self.tried) if (n := (1 << most.bit_length() - 1) // self.spacing**k) > 1]
            options = dict.fromkeys(split for n in counts for split in costs.splits(each, reduce, n))
            yield from ((place, split) for split in options)


def _taken(
    expr: TensorExpr, extents: Sequence[int], order: Sequence[int], parts: int, *, interleaved: bool
) -> ReductionSplit:
    """Reduce iterators in an order, whole ones as long as there are parts enough, then some of the next one's."""
    axes: list[AxisSplit] = []
    for position in order:
        extent = extents[position]
        if parts < 2 or extent == 1:
            continue
        if extent <= parts * 3 // 2:
            axes.append(AxisSplit(position))
            parts = -(-parts // extent)
            continue
        if constant_value(expr.domain[expr.reduce[position]]) is not None:
            axes.append(AxisSplit(position, number_of_parts(extent, parts), interleaved))
        break
    return tuple(sorted(axes, key=lambda axis: axis.position))


def number_of_parts(extent: int, parts: int) -> int:
    """The divisor of an extent next to a number of parts, within a factor of two; else as many of equal length, a
    shorter last one, that none is empty."""
    near = [d for d in range(max(2, -(-parts // 2)), min(2 * parts, extent // 2) + 1) if extent % d == 0]
    if near:
        return min(near, key=lambda d: max(d / parts, parts / d))
    return -(-extent // -(-extent // parts))


def at_a_time(target: TargetModel) -> int:
    """Results that a device works on at a time: one for each thread of every core, or each lane of a vector; of one
    core's vectors any reduction makes use."""
    if target.cores * target.threads == 1:
        return 1
    return target.cores * (target.threads if target.threads > 1 else target.lanes(4))


def on_core(problem: FusionProblem) -> FusionProblem:
    """The problem for the levels from that below a core's upward."""
    while problem.target.core > 1:
        target = upper_levels(problem.target)
        problem = replace(problem, target=target, cache=problem.cache.of_target(target))
    return problem


def split_chain(node: Node, splits: Splits, graph: Graph, constants: frozenset[str]) -> ReductionChain:
    """A reduction of a graph after some splits; without nodes where one of them is none of it."""
    nodes, tensors = [node], dict[str, Tensor]()
    for place, split in splits:
        known = replace(graph, tensors={**graph.tensors, **tensors})
        pair = split_into_partials(nodes[place], split, known, constants)
        if pair is None:
            return ReductionChain((), {})
        nodes[place : place + 1] = [pair.partial, pair.final]
        tensors[pair.partial.name] = pair.tensor
    return ReductionChain(tuple(nodes), tensors)


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
        described = self._problem(nodes, {}).descriptions
        return list({each.number: node for each, node in zip(reversed(described), reversed(nodes), strict=True)}.values())

    def chain(self, node: Node, splits: Splits) -> ReductionChain:
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
        """Predicted time of a chain, cut into the groups that take least."""
        problem = self._problem(nodes, tensors)
        best = [0.0]
        for end in range(1, len(nodes) + 1):
            tiles = [problem.core_tiles(tuple(range(start, end)))[0] for start in range(end)]
            best.append(min(best[n] + (tile.seconds if tile.fits or n == end - 1 else inf) for n, tile in enumerate(tiles)))
        return best[-1]

    def least(self, node: Node) -> float:
        """Time that no tiling of a reduction falls short of."""
        return roofline(self._problem([node], {}), (0,))

    def partials(self, chain: ReductionChain) -> int:
        """Partial results of every result, those of all splits."""
        first, last = (prod(self.shape(node.expr)[1]) for node in (chain.nodes[0], chain.nodes[-1]))
        return first // max(1, last)

    def splits(self, node: Node, extents: Sequence[int], parts: int) -> Iterator[ReductionSplit]:
        """Splits of a reduction into about so many partial results: in runs, and, unless it is a contraction, whose
        operands are loaded in blocks, interleaved; interleaved first where neighbours along the last reduce iterator
        are neighbours in memory."""
        expr = node.expr
        runs = _taken(expr, extents, range(len(extents)), parts, interleaved=False)
        turns = _taken(expr, extents, range(len(extents) - 1, -1, -1), parts, interleaved=True)
        both = (runs,) if is_contraction(expr) else (turns, runs) if self._in_line(expr) else (runs, turns)
        yield from (split for split in both if split)

    def _in_line(self, expr: TensorExpr) -> bool:
        """Whether neighbours along the last reduce iterator are neighbours in an operand."""
        last = expr.reduce[-1]
        known = [a for a in accesses(expr) if a.tensor in self.graph.tensors]
        steps = (stride(a, self.graph.tensors[a.tensor].shape, last, expr.domain[last]) for a in known)
        return any(step is not None and constant_value(step) == 1 for step in steps)

    def _problem(self, nodes: Sequence[Node], tensors: Mapping[str, Tensor]) -> FusionProblem:
        prepared = tuple(node for node in self.graph.nodes if node.name in self.constants)
        graph = replace(self.graph, nodes=(*prepared, *nodes), tensors={**self.graph.tensors, **tensors})
        return replace(
            self.problem, graph=graph, parts=tuple((node,) for node in nodes), outputs=frozenset({nodes[-1].name})
        )
