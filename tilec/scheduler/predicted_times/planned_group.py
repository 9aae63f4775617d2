"""A group of a plan as the search sees groups: its nodes before weights were packed, its decisions as blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tilec.ir.expr import operands
from tilec.ir.graph import Graph, Node, Port
from tilec.ir.intervals import Candidates
from tilec.ir.plan import Group, Plan, Variant
from tilec.lower.shared_loops import shared_loops
from tilec.scheduler.building.block import Block
from tilec.scheduler.building.pack_weights import PACK, unpacked
from tilec.scheduler.online.shared_reductions import SharedReductions
from tilec.scheduler.target_model import TargetModel


@dataclass(frozen=True)
class PlannedGroup:
    """The first variant of a group on a target.

    nodes      its nodes, of which none reads packed weights
    constants  tensors of the plan that do not depend on the model's inputs
    numbers    sizes that symbols are taken for
    """

    group: Group
    nodes: tuple[Node, ...]
    graph: Graph
    constants: frozenset[str]
    target: TargetModel
    numbers: Candidates

    @property
    def variant(self) -> Variant:
        """The decisions."""
        return self.group.variants[0]

    @cached_property
    def chain(self) -> SharedReductions | None:
        """The reductions that share a reduce loop."""
        loops = shared_loops(self.variant.shared, {node.name: node.expr for node in self.nodes})
        loop = next(iter(loops.values()), None)
        return None if loop is None else SharedReductions(loop.members, self.variant.shared, loop.inside)

    @cached_property
    def block(self) -> Block:
        """The tree of the blocks of the levels: what is connected at a level is a block of it."""
        return self._block(min(1, self.target.core), self.nodes)

    def _block(self, level: int, nodes: Sequence[Node]) -> Block:
        name, final, variant = self.target.levels[level].name, nodes[-1].name, self.variant
        steps = {node.name: of for node in nodes if (of := variant.steps.get(name, {}).get(node.name))}
        above = range(level + 1, len(self.target.levels))
        return Block(
            level,
            tuple(nodes),
            variant.tiles.get(name, {}).get(final, {}),
            variant.order.get(name, {}).get(final, ()),
            steps,
            tuple(self._block(level + 1, members) for members in self._connected(nodes, level + 1)) if above else (),
            variant.shared if level == self.target.core else {},
            variant.tails.get(name, {}).get(final) == "clip",
            variant.raster.get(name, {}).get(final, 1),
        )

    def _connected(self, nodes: Sequence[Node], level: int) -> list[tuple[Node, ...]]:
        """The nodes that edges connect at a level or above it, those with the first last node first."""
        ranks = {each.name: rank for rank, each in enumerate(self.target.levels)}
        home = {node.name: {node.name} for node in nodes}
        for node in nodes:
            for tensor in operands(node.expr):
                edge = self.group.connect.get(f"{tensor}->{node.name}")
                if edge is not None and ranks.get(edge, 0) >= level and tensor in home:
                    joined = home[tensor] | home[node.name]
                    home |= dict.fromkeys(joined, joined)
        places = {node.name: place for place, node in enumerate(nodes)}
        parts = {id(names): sorted(names, key=places.__getitem__) for names in home.values()}
        ordered = sorted(parts.values(), key=lambda names: places[names[-1]])
        return [tuple(nodes[places[name]] for name in names) for names in ordered]

    def leaving(self, nodes: Sequence[Node]) -> tuple[str, ...]:
        """Tensors of some nodes that leave the group, or that its other nodes read."""
        names = {node.name for node in nodes}
        read = {t for node in self.nodes if node.name not in names for t in operands(node.expr)}
        return tuple(node.name for node in nodes if node.name in read or node.name in self.group.outputs)


def constants_of(plan: Plan) -> frozenset[str]:
    """Tensors of a plan that do not depend on the model's inputs: no group makes them, nor a call or the caller."""
    given = {port.tensor for port in plan.inputs} | {port.tensor for call in plan.calls for port in call.outputs}
    return frozenset(plan.tensors.keys() - given - {node.name for group in plan.groups for node in group.nodes})


def planned_groups(plan: Plan, target: TargetModel, numbers: Candidates) -> Mapping[str, PlannedGroup]:
    """Every group of a plan, by name."""
    constants, packs = constants_of(plan), {node.name: node.expr for node in plan.prepared if node.op == PACK}
    planned: dict[str, PlannedGroup] = {}
    for group in plan.groups:
        nodes = tuple(replace(node, expr=unpacked(node.expr, packs)) for node in group.nodes)
        outputs = tuple(Port(name, name) for name in group.outputs)
        graph = Graph(group.name, plan.symbols, (), outputs, plan.tensors, {}, nodes)
        planned[group.name] = PlannedGroup(group, nodes, graph, constants, target, numbers)
    return planned
