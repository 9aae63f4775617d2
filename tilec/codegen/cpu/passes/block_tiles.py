"""Every tile with its blocking: as the plan says for the full tile of a node, by a rule for all other tiles.

The full tile of a node is the largest of those that a kernel computes it in, of several reductions the one with the
most code at a step: over a concatenation where it may read any operand.  Others are narrower: the last ones along an
iterator, pieces between the operands of a concatenation.  Such a tile takes the plan's vector iterator as long as it
holds two points along it, and is otherwise cut by `best_choice` for its own size; so are copies and fills.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from tilec.codegen.cpu.blocking import Choice, best_choice, blocked
from tilec.codegen.cpu.decisions import NodeDecision
from tilec.codegen.cpu.kernel_ir import Blocking, Dim, For, If, KernelIR, Step, Tile, tiles
from tilec.codegen.cpu.open_sizes import NO_OPEN_SIZES, OpenSizes
from tilec.codegen.cpu.target import CpuTarget
from tilec.codegen.cpu.vectorize import alternatives, lanes_of
from tilec.ir.expr import accesses


def block_tiles(
    tree: KernelIR, target: CpuTarget, nodes: Mapping[str, NodeDecision], sizes: OpenSizes = NO_OPEN_SIZES
) -> KernelIR:
    """The tree, its tiles with their blocking."""
    ttypes = {memory.name: memory.ttype for memory in tree.memories}
    local = {memory.name for memory in tree.memories if memory.kind == "local"}
    full = full_tiles((tile for nest in tree.nests for tile in tiles(nest.body)), sizes)
    blocker = Blocker(target, ttypes, nodes, full, sizes)

    def steps(body: Sequence[Step]) -> tuple[Step, ...]:
        made: list[Step] = []
        for step in body:
            match step:
                case For():
                    step = replace(step, body=steps(step.body))
                case If():
                    step = replace(step, yes=steps(step.yes), no=steps(step.no))
                case Tile():
                    near = not local.isdisjoint((step.target.tensor, *(a.tensor for a in accesses(step.value))))
                    step = replace(step, blocking=blocker(step, near))
            made.append(step)
        return tuple(made)

    return replace(tree, nests=tuple(replace(nest, body=steps(nest.body)) for nest in tree.nests))


def full_tiles(body: Iterable[Tile], sizes: OpenSizes = NO_OPEN_SIZES) -> dict[str, Tile]:
    """Node -> the first of its tiles with the most points at usual sizes; of reductions, of those with the most
    alternatives."""
    full: dict[str, Tile] = {}
    for tile in body:
        if tile.node and (tile.node not in full or _size(full[tile.node], sizes) < _size(tile, sizes)):
            full[tile.node] = tile
    return full


def _size(tile: Tile, sizes: OpenSizes) -> tuple[int, int]:
    return _points(tile, sizes), alternatives(tile) if tile.reduce else 0


def _points(tile: Tile, sizes: OpenSizes) -> int:
    return prod(sizes.usual(dim.extent) or 1 for dim in tile.dims)


def iterators_of(dim: Dim) -> tuple[str, ...]:
    """The iterators that a dimension runs over, outermost first: several that no access leaves a gap between."""
    return tuple(dim.name.split("%")[1:])


@dataclass(frozen=True, slots=True)
class Blocker:
    """Cuts tiles over memories of some types; `full` are the full tiles of the nodes."""

    target: CpuTarget
    ttypes: Mapping[str, str]
    nodes: Mapping[str, NodeDecision]
    full: Mapping[str, Tile]
    sizes: OpenSizes = NO_OPEN_SIZES

    def __call__(self, tile: Tile, local: bool) -> Blocking:
        """The blocking of a tile; `local` says that it touches buffers that should stay in registers."""
        return blocked(tile, self.choice(tile, local), self.target, self.ttypes, local, self.sizes)

    def choice(self, tile: Tile, local: bool) -> Choice:
        """What is chosen for a tile."""
        decision = self.nodes.get(tile.node)
        if decision is None:
            return best_choice(tile, self.target, self.ttypes, local, sizes=self.sizes)
        dims = {iterators_of(dim)[-1]: dim for dim in tile.dims}
        along = dims.get(decision.vector)
        if tile.dims == self.full[tile.node].dims:
            widths = {dim.name: decision.unroll.get(iterator, 1) for iterator, dim in dims.items()}
            if along is not None and decision.vector not in decision.unroll:
                widths[along.name] = lanes_of(tile, self.target, self.ttypes)
            return Choice(along.name if along else None, widths, decision.accumulators)
        vector = None if not decision.vector else along.name if along and along.size != 1 else ""
        return best_choice(tile, self.target, self.ttypes, local, vector, self.sizes)
