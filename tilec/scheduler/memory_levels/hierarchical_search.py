"""nest: groups of devices with explicit levels below a core's: a span of each level around those above it (W10, W46).

The groups of a plan are what the first of these levels holds together; each level up they are cut further, in the tile
of the level below, and at a core's level into the groups that `partition` finds there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

from tilec.errors import ConfigError, did_you_mean
from tilec.ir.expr import operands
from tilec.ir.graph import Graph, Node
from tilec.ir.intervals import Candidates
from tilec.ir.plan import Refusal
from tilec.lower.checks.check_plan import overflows
from tilec.lower.lowering import lower
from tilec.scheduler.building.block import Block
from tilec.scheduler.building.group_builder import GroupBuilder, TiledGroup, levels_of, plan_group
from tilec.scheduler.building.subplan import subplan
from tilec.scheduler.fusion.select_groups import SelectedGroups, partition_groups, select_groups
from tilec.scheduler.fusion_problem import FusionProblem, Part
from tilec.scheduler.memory_levels.incremental_cost import OVERLAP
from tilec.scheduler.memory_levels.level_groups import LevelGroup, search_level
from tilec.scheduler.memory_levels.level_problem import LevelProblem, OuterExtents
from tilec.scheduler.refusals import edge_name, refusal
from tilec.scheduler.target_model import TargetModel
from tilec.spec.recipe import ScheduleOptions

RETRY_SHARE, MIN_SHARE = 0.8, 0.1
"""What is left of the capacities when a group did not fit and is cut again, and where that ends."""

CORE_RETRY_SHARE = 0.95
"""The same of a core's level, beside what it was exceeded by: windows inside of tiles that move are held with some
room."""


@dataclass(frozen=True)
class HierarchyCache:
    """What nests for a device remember by content (W41): decisions at a core's level, by what is left of it, and how
    many times over the capacities groups are, by their kernels."""

    atoms: dict[TargetModel, FusionProblem] = field(default_factory=dict)
    excess: dict[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class HierarchicalSearch:
    """What all groups of a graph share while they are built; `refused` gathers why edges are not connected, `tiers`
    and `cores` what was chosen where, and `core_share` of a core's level may be used."""

    graph: Graph
    builder: GroupBuilder
    target: TargetModel
    numbers: Candidates
    options: ScheduleOptions
    outputs: frozenset[str]
    known: HierarchyCache
    refused: dict[str, Refusal] = field(default_factory=dict)
    core_share: float = 1.0
    tiers: list[tuple[LevelProblem, tuple[LevelGroup, ...]]] = field(default_factory=list)
    cores: list[tuple[FusionProblem, SelectedGroups]] = field(default_factory=list)

    def draughts(self, parts: Sequence[Part], share: float = 1.0) -> list[TiledGroup]:
        """The groups of some parts in execution order; `share` of the capacities may be used.

        A group whose tile program exceeds a level after all is cut again, with less room there.
        """
        found: list[TiledGroup] = []
        for span, block, seconds in self._blocks(parts, 1, {}, 0, share):
            draught = self.builder.draught(block, self._leaving(block), self.target, seconds)
            low, high = self._excess(draught)
            own = [parts[n] for n in span.members]
            if low > 1 and share * RETRY_SHARE >= MIN_SHARE:
                found += self.draughts(own, share * RETRY_SHARE)
            elif high > 1 >= low and self.core_share / high >= MIN_SHARE:
                found += replace(self, core_share=CORE_RETRY_SHARE * self.core_share / high).draughts(own, share)
            else:
                found.append(draught)
        return found

    def _leaving(self, block: Block) -> tuple[str, ...]:
        names = {node.name for node in block.nodes}
        own = [node.name for node in block.nodes]
        return tuple(name for name in own if name in self.outputs or self._read_beyond(name, names))

    def _read_beyond(self, tensor: str, names: Set[str]) -> bool:
        return any(reader.name not in names for reader in self.readers.get(tensor, ()))

    @cached_property
    def readers(self) -> Mapping[str, Sequence[Node]]:
        """Tensor -> nodes that read it."""
        return self.graph.consumers()

    def _excess(self, draught: TiledGroup) -> tuple[float, float]:
        """How many times over the capacity a group is when it is lowered: of levels below a core's, and of that and
        those above it; 1 at most where it fits, and while sizes are symbols."""
        if self.graph.symbols:
            return 1.0, 1.0
        kernel, known = draught.variant.kernel, self.known.excess
        if kernel not in known:
            known[kernel] = self._counted(draught)
        return known[kernel]

    def _counted(self, draught: TiledGroup) -> tuple[float, float]:
        levels, tensors = levels_of(self.target), self.builder.graph.tensors
        plan = subplan([plan_group(draught)], draught.outputs, tensors, levels, self.target.name)
        below = levels[: self.target.core]
        names = {level.name for level in below} | {f"pool {level.pool.name}" for level in below if level.pool}
        low = high = 1.0
        for over in overflows(lower(plan.groups[0], draught.variant, plan)):
            times = int(over.numbers["bytes"]) / max(1, int(over.numbers["capacity"]))
            if over.numbers["level"] in names:
                low = max(low, times)
            else:
                high = max(high, times)
        return low, high

    def _blocks(
        self, parts: Sequence[Part], level: int, around: OuterExtents, taken: int, share: float
    ) -> list[tuple[LevelGroup, Block, float]]:
        """Spans of a level, their blocks and the seconds each takes; lower levels hold `taken` bytes of a pool."""
        tier = LevelProblem(parts, self.graph, self.target, level, self.numbers, self.options.objective, around, share)
        closed = self.options.fusion != "full" or self.target.levels[level].name in self.options.closed
        found, refused = search_level(tier, closed)
        self.tiers.append((tier, found))
        self.refused.update(refused)
        if self.options.fusion == "full" and closed:
            self._close(tier)
        return [(span, *self._block(tier, span, taken)) for span in found]

    def _block(self, tier: LevelProblem, span: LevelGroup, taken: int) -> tuple[Block, float]:
        """A span around the blocks of the next level."""
        level, members = self.target.levels[tier.level], [tuple(tier.parts[n]) for n in span.members]
        extents = span.extents if span.sizes or tier.around else {}
        held = taken + (span.held if level.pool else 0)
        if tier.level + 1 == self.target.core:
            inner = self._cores(members, extents, held)
        else:
            spans = self._blocks(members, tier.level + 1, extents, held, tier.share)
            inner = [(block, seconds) for _, block, seconds in spans]
        whole = tier.facts[members[-1][-1].name].extents
        tiles = prod(-(-whole[iterator] // size) for iterator, size in span.sizes.items())
        busy = -(-tiles // level.units) * sum(seconds for _, seconds in inner)
        link = span.moved / tier.link
        blocks = tuple(block for block, _ in inner)
        nodes = tuple(node for block in blocks for node in block.nodes)
        seconds = max(link, busy) + OVERLAP * min(link, busy)
        return Block(tier.level, nodes, span.sizes, span.order, inner=blocks), seconds

    def _cores(self, parts: Sequence[Part], around: OuterExtents, taken: int) -> list[tuple[Block, float]]:
        """The groups at a core's level, in what lower levels leave it of a pool."""
        target = upper_levels(self.target, taken, self.core_share)
        names = {node.name for part in parts for node in part}
        outputs = self.outputs | {name for name in names if self._read_beyond(name, names)}
        if target not in self.known.atoms:
            self.known.atoms[target] = FusionProblem(
                self.graph,
                (),
                target,
                self.numbers,
                self.options.objective,
                frozenset(),
                numbering=self.builder.numbering,
            )
        alike = self.known.atoms[target]
        atoms = replace(alike, graph=self.graph, parts=tuple(parts), outputs=outputs, extents=around)
        groups, refused = select_groups(partition_groups(atoms, self.refused, self.builder, self.options), self.builder)
        self.cores.append((atoms, groups))
        self.refused.update(refused)
        blocks: list[tuple[Block, float]] = []
        for own, members, tile in groups:
            block = self.builder.core_block(own, members, tile)
            blocks.append((_raised(block, self.target.core - 1), tile.seconds))
        return blocks

    def _close(self, tier: LevelProblem) -> None:
        """Note that the recipe closes a level."""
        name = self.target.levels[tier.level].name
        for number, part in enumerate(tier.parts):
            for node in part:
                for tensor in operands(node.expr):
                    if tier.made.get(tensor, number) != number:
                        self.refused[edge_name(tensor, node.name)] = refusal(tensor, node.name, "closed", level=name)


def require_levels(closed: Sequence[str], target: TargetModel) -> None:
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


def upper_levels(target: TargetModel, taken: int = 0, share: float = 1.0) -> TargetModel:
    """The device from the level below a core's upward, as if that were its lowest; of the pool of a core's level
    without the `taken` bytes that lower levels hold, and of what is left a `share`."""
    below, level = target.levels[target.core - 1], target.levels[target.core]
    if level.pool is not None:
        shared = [other.pool for other in target.levels[: target.core] if other.pool is not None]
        used = max((pool.share(taken) for pool in shared if pool.name == level.pool.name), default=0)
        room = max(1, level.pool.capacity - used)
        level = replace(level, capacity=min(room, level.capacity or room))
    if share < 1 and level.capacity is not None:
        level = replace(level, capacity=max(1, int(level.capacity * share)))
    return replace(
        target,
        levels=(replace(below, capacity=None, pool=None), level, *target.levels[target.core + 1 :]),
        core=1,
        links=target.links[target.core - 1 :],
    )


def _raised(block: Block, by: int) -> Block:
    """A block whose levels count from a lower one."""
    return replace(block, level=block.level + by, inner=tuple(_raised(inner, by) for inner in block.inner))
