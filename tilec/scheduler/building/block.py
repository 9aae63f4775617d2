"""block: a group as a tree: what one level holds, and the blocks one level up that it is made of (W10, W14, W18)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tilec.ir.expr import operands
from tilec.ir.graph import Node
from tilec.ir.plan import Shared, Sizes
from tilec.scheduler.refusals import edge_name


@dataclass(frozen=True, slots=True)
class Block:
    """Nodes that stay together from a level upward, and the tile of their final node that the level holds.

    `level` is an index into the target's levels, 1 for a whole group.  `sizes` and `order` are the tile loops of the
    final (last) node, `steps` the reduce steps of any node at this level, `shared` the reductions in one of its reduce
    loops.  `inner` are the blocks one level up in execution order, none at the highest level.  Where it is `clipped`
    last tiles are narrower, elsewhere they overlap those before them where they can.
    """

    level: int
    nodes: tuple[Node, ...]
    sizes: Sizes = field(default_factory=dict)
    order: tuple[str, ...] = ()
    steps: Mapping[str, Sizes] = field(default_factory=dict)
    inner: tuple[Block, ...] = ()
    shared: Mapping[str, Shared] = field(default_factory=dict)
    clipped: bool = False

    @property
    def final(self) -> Node:
        """The node whose tile the others follow."""
        return self.nodes[-1]

    def walk(self) -> Iterator[Block]:
        """This block and all inside it."""
        yield self
        for block in self.inner:
            yield from block.walk()

    def connections(self) -> dict[str, int]:
        """Edge -> the highest level of a block that holds both its ends (W15)."""
        found: dict[str, int] = {}
        for block in self.walk():
            made = {node.name for node in block.nodes}
            for node in block.nodes:
                found |= {edge_name(t, node.name): block.level for t in operands(node.expr) if t in made}
        return found
