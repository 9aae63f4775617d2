"""The chains of a graph: contractions of which each hands its result to the next and to no other, equal ones once."""

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
    """A chain, and how often the graph has it; the operators are named as where it is first."""

    chain: ProductChain
    count: int

    @property
    def name(self) -> str:
        """The first operator and the last."""
        return f"{self.chain.operators[0].name} ... {self.chain.operators[-1].name}"


def chains(graph: Graph) -> tuple[FoundChain, ...]:
    """Every distinct chain of two or more contractions, as long as can be.  Raises UsageError while sizes are symbolic.

    What else reads tensors on the way does not end a chain unless it is a contraction; its traffic is not the chain's.
    """
    require_bound(graph)
    contracted = frozenset(Surroundings(graph, graph.nodes).einsums)
    around = Surroundings(graph, chained(graph, contracted))
    readers = graph.consumers()
    found: list[ProductChain] = []
    growing = _Growing()
    for node in around.order:
        if node.name not in around.einsums:
            growing.between(node)
            continue
        reader = growing.next(node, around, readers)
        if reader is None:
            found += growing.end(around)
            growing, reader = _Growing(), Reader(node, around.einsums[node.name])
        growing.readers.append(reader)
        growing.betweens.append({})
    found += growing.end(around)
    alike: dict[tuple[Product, ...], list[ProductChain]] = {}
    for chain in found:
        alike.setdefault(chain.unnamed, []).append(chain)
    return tuple(FoundChain(same[0], len(same)) for same in alike.values())


@dataclass
class _Growing:
    """A chain that takes one contraction after the other."""

    readers: list[Reader] = field(default_factory=list)
    betweens: list[dict[str, Node]] = field(default_factory=list)

    def between(self, node: Node) -> None:
        """A node behind the last contraction."""
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
        """The chain if it is one; what follows the last contraction is none of its business."""
        if len(self.readers) < 2:
            return []
        chain = chain_of(self.readers, [*self.betweens[:-1], {}], around.paths)
        return [chain] if chain is not None else []
