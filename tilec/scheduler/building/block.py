"""A group as a tree of blocks: the tile that one level holds, made of blocks one level up (Welder, 3.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tilec.ir.expr import operands
from tilec.ir.graph import Node
from tilec.ir.plan import Shared, Sizes
from tilec.scheduler.refusals import edge_name


@dataclass(frozen=True, slots=True)
class CoreBuffers:
    """How a core's level holds the tensors of a block.

    layouts    tensor -> order of its dimensions
    rows       tensor -> elements behind its rows, and their swizzle
    copies     tensor -> copies of its window, where reduce loops begin to load them ahead
    direct     operands that are read where they lie, below the core's level
    unstaged   tensors that units load and store themselves, past the core's level
    converted  tensors that are held in the type that is computed in
    """

    layouts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    rows: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    copies: Mapping[str, int] = field(default_factory=dict)
    direct: frozenset[str] = frozenset()
    unstaged: frozenset[str] = frozenset()
    converted: frozenset[str] = frozenset()

    def joined(self, other: CoreBuffers) -> CoreBuffers:
        """These, and those of another block."""
        return CoreBuffers(
            {**self.layouts, **other.layouts},
            {**self.rows, **other.rows},
            {**self.copies, **other.copies},
            self.direct | other.direct,
            self.unstaged | other.unstaged,
            self.converted | other.converted,
        )


@dataclass(frozen=True, slots=True)
class Block:
    """Nodes that are connected at a level, and the tile of their final node that the level holds.

    `level` is an index into the target's levels, 1 for a whole group. `sizes` and `order` are the tile loops of the
    final (last) node, `steps` the reduce steps of any node at this level, `shared` the reductions in one of its reduce
    loops. `inner` are the blocks one level up in execution order, empty at the highest level. The last tiles of a
    `clipped` block are narrower; otherwise they overlap the tiles before them where possible. Of the outermost tile
    loop, `stripe` tiles come before the next one along the others. `units` of matrices compute some of the nodes.
    A block of a core's level has `buffers`.
    """

    level: int
    nodes: tuple[Node, ...]
    sizes: Sizes = field(default_factory=dict)
    order: tuple[str, ...] = ()
    steps: Mapping[str, Sizes] = field(default_factory=dict)
    inner: tuple[Block, ...] = ()
    shared: Mapping[str, Shared] = field(default_factory=dict)
    clipped: bool = False
    stripe: int = 1
    units: Mapping[str, str] = field(default_factory=dict)
    buffers: CoreBuffers = CoreBuffers()

    @property
    def final(self) -> Node:
        """The last node, whose tile determines the tiles of the others."""
        return self.nodes[-1]

    def walk(self) -> Iterator[Block]:
        """This block and all blocks inside it."""
        yield self
        for block in self.inner:
            yield from block.walk()

    def connections(self) -> dict[str, int]:
        """Map from edge to the highest level of a block that holds both its ends (Welder, 3.2: SetConnect)."""
        found: dict[str, int] = {}
        for block in self.walk():
            produced = {node.name for node in block.nodes}
            for node in block.nodes:
                found |= {edge_name(t, node.name): block.level for t in operands(node.expr) if t in produced}
        return found
