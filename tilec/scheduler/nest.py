"""nest: groups of devices with explicit levels below a core's: a span of each level around those above it (W10, W46).

The groups of a plan are what the first of these levels holds together; each level up they are cut further, in the tile
of the level below, and at a core's level into the groups that `partition` finds there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tilec.errors import ConfigError, did_you_mean
from tilec.ir.expr import operands
from tilec.ir.graph import Graph
from tilec.ir.intervals import Candidates
from tilec.ir.plan import Refusal
from tilec.scheduler.atoms import Atoms, Part
from tilec.scheduler.block import Block
from tilec.scheduler.build import Builder, Draught
from tilec.scheduler.exact import settled
from tilec.scheduler.partition import partition, separate
from tilec.scheduler.reasons import edge, refusal
from tilec.scheduler.spans import Span, search
from tilec.scheduler.target import Target
from tilec.scheduler.tier import Around, Tier
from tilec.scheduler.tier_walk import OVERLAP
from tilec.spec.recipe import ScheduleOptions


@dataclass(frozen=True)
class Nest:
    """What all groups of a graph share while they are built; `refused` gathers why edges are not connected."""

    graph: Graph
    builder: Builder
    target: Target
    numbers: Candidates
    options: ScheduleOptions
    outputs: frozenset[str]
    refused: dict[str, Refusal] = field(default_factory=dict)

    def draughts(self, parts: Sequence[Part]) -> list[Draught]:
        """The groups of some parts in execution order."""
        readers = self.graph.consumers()
        found: list[Draught] = []
        for block, seconds in self._blocks(parts, 1, {}, 0):
            names = {node.name for node in block.nodes}
            leaving = tuple(
                node.name
                for node in block.nodes
                if node.name in self.outputs or any(reader.name not in names for reader in readers[node.name])
            )
            found.append(self.builder.draught(block, leaving, self.target, seconds))
        return found

    def _blocks(self, parts: Sequence[Part], level: int, around: Around, taken: int) -> list[tuple[Block, float]]:
        """Blocks of a level and the seconds each takes; `taken` bytes of a pool are held by lower levels."""
        if level == self.target.core:
            return self._cores(parts, around, taken)
        tier = Tier(parts, self.graph, self.target, level, self.numbers, self.options.objective, around)
        closed = self.options.fusion != "full" or self.target.levels[level].name in self.options.closed
        found, refused = search(tier, closed)
        self.refused.update(refused)
        if self.options.fusion == "full" and closed:
            self._close(tier)
        return [self._block(tier, span, taken) for span in found]

    def _block(self, tier: Tier, span: Span, taken: int) -> tuple[Block, float]:
        """A span around the blocks of the next level."""
        level, members = self.target.levels[tier.level], [tuple(tier.parts[n]) for n in span.members]
        extents = span.extents if span.sizes or tier.around else {}
        inner = self._blocks(members, tier.level + 1, extents, taken + (span.held if level.pool else 0))
        whole = tier.facts[members[-1][-1].name].extents
        tiles = 1
        for iterator, size in span.sizes.items():
            tiles *= -(-whole[iterator] // size)
        busy = -(-tiles // level.units) * sum(seconds for _, seconds in inner)
        link = span.moved / tier.link
        blocks = tuple(block for block, _ in inner)
        nodes = tuple(node for block in blocks for node in block.nodes)
        seconds = max(link, busy) + OVERLAP * min(link, busy)
        return Block(tier.level, nodes, span.sizes, span.order, inner=blocks), seconds

    def _cores(self, parts: Sequence[Part], around: Around, taken: int) -> list[tuple[Block, float]]:
        """The groups at a core's level, in what lower levels leave it of a pool."""
        target = _left(self.target, taken)
        names = {node.name for part in parts for node in part}
        readers = self.graph.consumers()
        outputs = {name for name in names if any(reader.name not in names for reader in readers[name])}
        atoms = Atoms(
            self.graph, tuple(parts), target, self.numbers, self.options.objective, self.outputs | outputs, around
        )
        found = partition(atoms, self.refused) if self.options.fusion == "full" else separate(atoms, self.refused)
        self.refused.update(found.refused)
        blocks: list[tuple[Block, float]] = []
        for members, (tile, *_) in settled(found.groups, atoms, self.builder):
            blocks.append((self.builder.core_block(atoms, members, tile), tile.seconds))
        return blocks

    def _close(self, tier: Tier) -> None:
        """Note that the recipe closes a level."""
        name = self.target.levels[tier.level].name
        for number, part in enumerate(tier.parts):
            for node in part:
                for tensor in operands(node.expr):
                    if tier.made.get(tensor, number) != number:
                        self.refused[edge(tensor, node.name)] = refusal(tensor, node.name, "closed", level=name)


def require_levels(closed: Sequence[str], target: Target) -> None:
    """Refuse levels to be closed that are none, or cannot be. Raises ConfigError."""
    names = [level.name for level in target.levels[1 : target.core]]
    for name in closed:
        if name not in names:
            near = did_you_mean(name, names)
            one = f"It has {', '.join(names)}." if names else "It has none, leave it out."
            raise ConfigError(
                f"{target.name} has no level {name!r} below a core's that could be closed",
                "schedule.closed",
                f"Did you mean {near!r}?" if near else one,
            )


def _left(target: Target, taken: int) -> Target:
    """The device with what `taken` bytes of lower levels leave of the pool that a core's level shares with them."""
    level = target.levels[target.core]
    if level.pool is None or not taken:
        return target
    below = [other.pool for other in target.levels[: target.core] if other.pool and other.pool.name == level.pool.name]
    share = max((pool.share(taken) for pool in below), default=0)
    room = max(1, level.pool.capacity - share)
    own = replace(level, capacity=min(room, level.capacity or room))
    return replace(target, levels=(*target.levels[: target.core], own, *target.levels[target.core + 1 :]))
