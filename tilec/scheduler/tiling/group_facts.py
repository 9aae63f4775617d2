"""What holds for a group whatever its tiles, its register tiles and the machine are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeVar

from tilec.ir.by_identity import ById
from tilec.ir.expr import Access, Expr, TensorExpr, accesses
from tilec.ir.graph import Graph, Node
from tilec.lower.shared_loops import earlier
from tilec.scheduler.analysis.window_propagation import ReadIndex, read_indices
from tilec.scheduler.online.shared_reductions import SharedReductions
from tilec.scheduler.tiling.access_order import is_strided
from tilec.scheduler.tiling.common_iterators import CommonIterators, common_iterators
from tilec.scheduler.tiling.further_sinks import FurtherSinks, further_sinks
from tilec.scheduler.tiling.rescale_work import operations_by_iterators
from tilec.scheduler.tiling.tile_footprints import Movers, movers, shapes_of

S = TypeVar("S")


@dataclass(frozen=True, eq=False)
class GroupFacts:
    """A group: its parts, each of which has a register tile, and the nodes in them.

    `outputs` are the tensors that leave the group, `halos` operands that reductions read outside of, so that guards
    keep them in, `constants` what can be laid out anew for it. The reductions of a `chain` run in one reduce loop, in
    parts of their own.
    """

    parts: Sequence[Sequence[Node]]
    graph: Graph
    outputs: tuple[str, ...] = ()
    chain: SharedReductions | None = None
    halos: frozenset[str] = frozenset()
    constants: frozenset[str] = frozenset()

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes in topological order."""
        return tuple(node for part in self.parts for node in part)

    @property
    def final(self) -> TensorExpr:
        """The expression of the final node."""
        return self.nodes[-1].expr

    @cached_property
    def shapes(self) -> dict[str, tuple[Expr, ...]]:
        """Shapes of the tensors that nodes make and read."""
        return shapes_of((node.expr for node in self.nodes), self.graph)

    @cached_property
    def made(self) -> dict[str, int]:
        """Tensor made here -> number of its part."""
        return {node.name: number for number, part in enumerate(self.parts) for node in part}

    @cached_property
    def readers(self) -> dict[str, list[tuple[int, ReadIndex, str]]]:
        """Tensor -> the part, seat and node of every read."""
        found: dict[str, list[tuple[int, ReadIndex, str]]] = {}
        for number, part in enumerate(self.parts):
            for node in part:
                for seat in read_indices(node.expr):
                    found.setdefault(seat.tensor, []).append((number, seat, node.name))
        return found

    @cached_property
    def indexed(self) -> frozenset[str]:
        """Tensors that data index: they stay where they are and are read element by element."""
        return frozenset(t for t, reads in self.readers.items() if any(seat.by_data for _, seat, _ in reads))

    @property
    def kept(self) -> tuple[str, ...]:
        """Tensors that leave the group, the final one left out."""
        return tuple(t for t in self.outputs if t != self.final.tensor)

    @property
    def accumulates_above(self) -> bool:
        """Whether the sums of a loop of several reductions stay above a core's level: one part has all of them."""
        return self.chain is not None and len({self.made[name] for name in self.chain.members}) == 1

    def sharing(self, stepped: str) -> Mapping[str, Mapping[str, str]]:
        """Reductions in the reduce loop of a node, itself or all of a chain -> their reduce iterators -> the node's."""
        if self.chain is not None and stepped == self.chain.leader:
            return {name: entry.iterators for name, entry in self.chain.shared.items()}
        reduce = next(node.expr.reduce for node in self.nodes if node.name == stepped)
        return {stepped: {i: i for i in reduce}}

    def spread(self, steps: Mapping[str, Mapping[str, S]]) -> dict[str, dict[str, S]]:
        """Reduce steps of every reduction that runs in the loops of some."""
        return {
            name: {own: of[other] for own, other in iterators.items() if other in of}
            for stepped, of in steps.items()
            for name, iterators in self.sharing(stepped).items()
        }

    def inside(self, stepped: str, iterators: Sequence[str]) -> dict[str, frozenset[str]]:
        """Nodes in the reduce loop of a node -> their iterators that it moves (`tilec.lower.compute_at`)."""
        sharing = self.sharing(stepped)
        moving = {name: frozenset(i for i in own if own[i] in iterators) for name, own in sharing.items()}
        between = self.chain.inside if self.chain is not None and stepped == self.chain.leader else frozenset()
        nodes = self.nodes
        at = next(i for i, node in enumerate(nodes) if node.name == stepped)
        for node in reversed(nodes[:at]):
            reads = self.readers.get(node.name, [])
            if (
                node.name in moving
                or node.name in self.outputs
                or not reads
                or any(reader not in moving for _, _, reader in reads)
            ):
                continue
            moved = [
                frozenset(
                    own for own, names in zip(node.expr.spatial, seat.variables, strict=True) if names & moving[reader]
                )
                for _, seat, reader in reads
            ]
            if all(moved) or node.name in between:
                moving[node.name] = frozenset().union(*moved)
        return moving

    def leaves_gaps(self, stepped: str) -> bool:
        """Whether the reduce loop of a node moves windows by several elements at a time, so that those of its steps may
        leave out what lies between."""
        exprs = {node.name: node.expr for node in self.nodes}
        moving = self.inside(stepped, exprs[stepped].reduce)
        return any(is_strided(access, names) for node, names in moving.items() for access in accesses(exprs[node]))

    @cached_property
    def rows(self) -> CommonIterators:
        """Iterators that all nodes share."""
        return _rows(tuple(map(ById, self.nodes)))

    @cached_property
    def sinks(self) -> FurtherSinks:
        """Results that the final node does not need."""
        return further_sinks(self.nodes)

    @cached_property
    def movers(self) -> Movers:
        """What moves the nodes."""
        return _movers(tuple(map(ById, self.nodes)))

    def moved_by(self, tensor: str) -> frozenset[str]:
        """Iterators of the final node that move the window of an operand."""
        return self._operand_movers.get(tensor, frozenset())

    @cached_property
    def _operand_movers(self) -> dict[str, frozenset[str]]:
        found: dict[str, frozenset[str]] = {}
        for tensor in self.operands:
            moving = (
                self.movers[node].get(name, frozenset())
                for _, seat, node in self.readers[tensor]
                for names in seat.variables
                for name in names
            )
            found[tensor] = frozenset().union(*moving)
        return found

    @cached_property
    def rescaling(self) -> dict[str, dict[frozenset[str], int]]:
        """Reductions of the chain that are rescaled -> iterators -> operations that depend on these alone."""
        entries = self.chain.shared.items() if self.chain is not None else ()
        return {
            name: operations_by_iterators(entry.rescale)
            for name, entry in entries
            if not isinstance(entry.rescale, Access)
        }

    @cached_property
    def formers(self) -> frozenset[str]:
        """Reductions of the chain of which the loop holds the former values."""
        entries = self.chain.shared.values() if self.chain is not None else ()
        return frozenset(tensor for entry in entries for tensor in earlier(entry.rescale))

    @cached_property
    def operands(self) -> tuple[str, ...]:
        """Tensors that come from outside."""
        return tuple(t for t in self.readers if t not in self.made)


@lru_cache(maxsize=4096)
def _rows(nodes: tuple[ById[Node], ...]) -> CommonIterators:
    return common_iterators([node.value for node in nodes])


@lru_cache(maxsize=4096)
def _movers(nodes: tuple[ById[Node], ...]) -> Movers:
    return movers([node.value for node in nodes])
