"""Chains of a graph: contractions whose result only the next contraction reads, equal chains once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tilec.bounds.chain.chain import Product, ProductChain
from tilec.bounds.graph.contractions import require_bound
from tilec.bounds.graph.intervals import Surroundings
from tilec.bounds.graph.links import Reader, chain_of, next_reader
from tilec.bounds.graph.order import chained
from tilec.ir.graph import Graph, Node


@dataclass(frozen=True)
class FoundChain:
    """A chain, and the number of its occurrences in the graph; operators are named as in the first one."""

    chain: ProductChain
    count: int

    @property
    def name(self) -> str:
        """The names of the first and the last operator."""
        return f"{self.chain.operators[0].name} ... {self.chain.operators[-1].name}"


def chains(graph: Graph) -> tuple[FoundChain, ...]:
    """Every distinct maximal chain of two or more contractions. Raises UsageError while sizes are symbolic.

    A further reader of an intermediate tensor ends a chain only if it is a contraction; its traffic is not the chain's.
    """
    require_bound(graph)
    contracted = frozenset(Surroundings(graph, graph.nodes).einsums)
    around = Surroundings(graph, chained(graph, contracted))
    readers = graph.consumers()
    all_chains: list[ProductChain] = []
    growing = _Growing()
    for node in around.order:
        if node.name not in around.einsums:
            growing.between(node)
            continue
        reader = growing.next(node, around, readers)
        if reader is None:
            all_chains += growing.end(around)
            growing, reader = _Growing(), Reader(node, around.einsums[node.name])
        growing.readers.append(reader)
        growing.betweens.append({})
    all_chains += growing.end(around)
    alike: dict[tuple[Product, ...], list[ProductChain]] = {}
    for chain in all_chains:
        alike.setdefault(chain.unnamed, []).append(chain)
    return tuple(FoundChain(same[0], len(same)) for same in alike.values())


@dataclass
class _Growing:
    """A chain under construction, contraction by contraction."""

    readers: list[Reader] = field(default_factory=list)
    betweens: list[dict[str, Node]] = field(default_factory=list)

    def between(self, node: Node) -> None:
        """Add a node behind the last contraction."""
        if self.betweens:
            self.betweens[-1][node.name] = node

    def next(self, node: Node, around: Surroundings, readers: Mapping[str, tuple[Node, ...]]) -> Reader | None:
        """The contraction as the next of the chain; None where it is not, or not the only one that reads the last."""
        if not self.readers:
            return None
        handed = (self.readers[-1].node.name, *self.betweens[-1])
        others = (each.name for name in handed for each in readers[name])
        if any(name in around.einsums and name != node.name for name in others):
            return None
        reader = next_reader(self.readers[-1], node, around.einsums[node.name], self.betweens[-1], around.paths)
        if reader is None or chain_of([*self.readers, reader], [*self.betweens, {}], around.paths) is None:
            return None
        return reader

    def end(self, around: Surroundings) -> list[ProductChain]:
        """The chain if it has two or more contractions; nodes behind the last contraction are not part of it."""
        if len(self.readers) < 2:
            return []
        chain = chain_of(self.readers, [*self.betweens[:-1], {}], around.paths)
        return [chain] if chain is not None else []
