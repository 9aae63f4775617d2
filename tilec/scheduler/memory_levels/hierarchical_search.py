"""Groups of devices with explicit levels below a core's: a group of each level around those above it (W10, W46).

The groups of a plan are what the first of these levels holds together; each level up they are cut further, in the tile
of the level below, and at a core's level into the groups that the rest of SEARCH finds there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import ClassVar

from tilec.errors import ConfigError, did_you_mean
from tilec.ir.bind_plan import bind_plan
from tilec.ir.expr import operands
from tilec.ir.graph import Graph, Node
from tilec.ir.plan import Refusal
from tilec.lower.checks.check_plan import overflows
from tilec.lower.lowering import lower
from tilec.scheduler.building.block import Block
from tilec.scheduler.building.group_builder import TiledGroup, levels_of, plan_group
from tilec.scheduler.building.subplan import subplan
from tilec.scheduler.memory_levels.level_groups import search_level
from tilec.scheduler.memory_levels.level_options import LevelOptions
from tilec.scheduler.memory_levels.level_problem import LevelProblem, OuterExtents
from tilec.scheduler.refusals import edge_name, refusal
from tilec.scheduler.search_cache import Part
from tilec.scheduler.state import LevelDecision, LevelGroup, SearchState, SearchStep, run_steps
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.trace import Trace


@dataclass(frozen=True)
class PartitionLevels(LevelOptions, SearchStep):
    """Parts held together by explicit levels below a core's; the core's own groups are searched inside of them."""

    name: ClassVar[str] = "partition_levels"
    template: ClassVar[str] = "sets of parts are joined at a level as long as that is predicted to cost less"
    required: ClassVar[str] = "levels below a core's hold what it decides, on devices that have such levels"

    retry_share: float = 0.8
    """What is left of the capacities when the program of a group exceeds a level below a core's and it is cut again.

    Windows are predicted by the rules of lowering, at every place where a tile is chosen; what a program holds differs
    by the order of the groups within it, by alignment and by the gaps that storage by best fit leaves.
    """

    min_share: float = 0.1
    """The share of a capacity where that ends."""

    core_retry_share: float = 0.95
    """What is left of a core's level when a program exceeds it, beside what it was exceeded by: the search at a core's
    level sees tiles that start at 0, in a tile of the level below that moves windows have ends that vary."""

    pool_share: float = 0.5
    """Part of a pool that a level takes where higher levels need some too, as long as anything fits."""

    def applies(self, state: SearchState) -> bool:
        """On devices with explicit levels below a core's."""
        return state.problem.target.core > 1

    def run(self, state: SearchState, trace: Trace) -> SearchState:
        """The groups, built."""
        search = HierarchicalSearch(state, self, trace, dict(state.refused))
        groups = tuple(search.groups(state.problem.parts))
        return replace(
            state, groups=groups, refused=search.refused, levels=tuple(search.levels), cores=tuple(search.cores)
        )


@dataclass(frozen=True)
class HierarchicalSearch:
    """The search below a core's level for one state.

    refused     edge -> why it is not connected, gathered
    core_share  fraction of a core's level that may be used
    levels      decisions at levels below a core's, gathered
    cores       searches at a core's level, gathered
    """

    state: SearchState
    options: PartitionLevels
    trace: Trace
    refused: dict[str, Refusal]
    core_share: float = 1.0
    levels: list[LevelDecision] = field(default_factory=list)
    cores: list[SearchState] = field(default_factory=list)

    @property
    def graph(self) -> Graph:
        """The graph of the parts."""
        return self.state.problem.graph

    @property
    def target(self) -> TargetModel:
        """The whole device."""
        return self.state.problem.target

    @cached_property
    def core_steps(self) -> tuple[SearchStep, ...]:
        """Steps that search a core's level in the tile of a level below: those behind this one, until tiles are
        legal."""
        steps = self.state.steps
        return tuple(step for step in steps[steps.index(self.options) + 1 :] if step.stage != "built")

    def groups(self, parts: Sequence[Part], share: float = 1.0) -> list[TiledGroup]:
        """The groups of some parts in execution order; `share` of the capacities may be used.

        A group whose tile program exceeds a level after all is cut again, with less room there.
        """
        options = self.options
        tiled: list[TiledGroup] = []
        for group, block, seconds in self._blocks(parts, 1, {}, 0, share):
            whole = self.state.builder.tiled_group(block, self._leaving(block), self.target, seconds)
            low, high = self._excess(whole)
            again = [parts[n] for n in group.members]
            if low > 1 and share * options.retry_share >= options.min_share:
                tiled += self.groups(again, share * options.retry_share)
            elif high > 1 >= low and self.core_share / high >= options.min_share:
                smaller = replace(self, core_share=options.core_retry_share * self.core_share / high)
                tiled += smaller.groups(again, share)
            else:
                tiled.append(whole)
        return tiled

    def _leaving(self, block: Block) -> tuple[str, ...]:
        names = {node.name for node in block.nodes}
        outputs = self.state.problem.outputs
        return tuple(n.name for n in block.nodes if n.name in outputs or self._read_beyond(n.name, names))

    def _read_beyond(self, tensor: str, names: Set[str]) -> bool:
        return any(reader.name not in names for reader in self.readers.get(tensor, ()))

    @cached_property
    def readers(self) -> Mapping[str, Sequence[Node]]:
        """Tensor -> nodes that read it."""
        return self.graph.consumers()

    def _excess(self, group: TiledGroup) -> tuple[float, float]:
        """How many times over the capacity a group is when it is lowered: of levels below a core's, and of that and
        those above it; 1 at most where it fits."""
        kernel, excess = group.variant.kernel, self.state.problem.cache.excess
        if kernel not in excess:
            excess[kernel] = self._counted(group)
        return excess[kernel]

    def _counted(self, group: TiledGroup) -> tuple[float, float]:
        levels, tensors = levels_of(self.target), self.state.builder.graph.tensors
        plan = subplan([plan_group(group)], group.outputs, tensors, levels, self.target.name)
        plan = replace(plan, symbols=self.graph.symbols)
        below = levels[: self.target.core]
        names = {level.name for level in below} | {f"pool {level.pool.name}" for level in below if level.pool}
        low = high = 1.0
        bound = [bind_plan(plan, sizes) for sizes in self.state.problem.scenarios]
        programs = (lower(each.groups[0], each.groups[0].variants[0], each) for each in bound)
        for over in (over for program in programs for over in overflows(program)):
            times = int(over.numbers["bytes"]) / max(1, int(over.numbers["capacity"]))
            if over.numbers["level"] in names:
                low = max(low, times)
            else:
                high = max(high, times)
        return low, high

    def _blocks(
        self, parts: Sequence[Part], level: int, around: OuterExtents, taken: int, share: float
    ) -> list[tuple[LevelGroup, Block, float]]:
        """Groups of a level, their blocks and the seconds each takes; lower levels hold `taken` bytes of a pool."""
        options = self.state.options
        problem = level_problem(self.state, parts, level, around, share)
        closed = options.fusion != "full" or self.target.levels[level].name in options.closed
        groups, refused = search_level(problem, self.options, closed)
        self.levels.append(LevelDecision(level, tuple(map(tuple, parts)), around, share, groups))
        self.refused.update(refused)
        if options.fusion == "full" and closed:
            self._close(problem)
        return [(group, *self._block(problem, group, taken)) for group in groups]

    def _block(self, problem: LevelProblem, group: LevelGroup, taken: int) -> tuple[Block, float]:
        """A group around the blocks of the next level."""
        level, members = self.target.levels[problem.level], [tuple(problem.parts[n]) for n in group.members]
        extents = group.extents if group.sizes or problem.around else {}
        held = taken + (group.held if level.pool else 0)
        if problem.level + 1 == self.target.core:
            inner = self._core_blocks(members, extents, held, level.name)
        else:
            above = self._blocks(members, problem.level + 1, extents, held, problem.share)
            inner = [(block, seconds) for _, block, seconds in above]
        whole = problem.facts[members[-1][-1].name].extents
        tiles = prod(-(-whole[iterator] // size) for iterator, size in group.sizes.items())
        blocks = tuple(block for block, _ in inner)
        nodes = tuple(node for block in blocks for node in block.nodes)
        seconds = tile_seconds(problem, group.moved, tiles, [seconds for _, seconds in inner])
        return Block(problem.level, nodes, group.sizes, group.order, inner=blocks), seconds

    def _core_blocks(
        self, parts: Sequence[Part], around: OuterExtents, taken: int, level: str
    ) -> list[tuple[Block, float]]:
        """The groups at a core's level, in what lower levels leave it of a pool."""
        whole, builder = self.state.problem, self.state.builder
        target = upper_levels(self.target, taken, self.core_share)
        names = {node.name for part in parts for node in part}
        outputs = whole.outputs | {name for name in names if self._read_beyond(name, names)}
        cache = whole.cache.of_target(target)
        problem = replace(whole, target=target, outputs=outputs, extents=around, cache=cache)
        start = replace(self.state, problem=problem, level=level, levels=(), cores=(), tuner=None)
        core = run_steps(self.core_steps, start.with_parts(parts, dict(self.refused)), self.trace)
        assert core.legal is not None
        self.cores.append(core)
        self.refused.update(core.refused)
        blocks: list[tuple[Block, float]] = []
        for group in core.legal:
            block = builder.core_block(group.problem, group.members, group.tiles[0])
            blocks.append((_raised(block, self.target.core - 1), group.tiles[0].seconds))
        return blocks

    def _close(self, problem: LevelProblem) -> None:
        """Note that the recipe closes a level."""
        name = self.target.levels[problem.level].name
        for number, part in enumerate(problem.parts):
            for node in part:
                for tensor in operands(node.expr):
                    if problem.home.get(tensor, number) != number:
                        self.refused[edge_name(tensor, node.name)] = refusal(tensor, node.name, "closed", level=name)


def tile_seconds(problem: LevelProblem, moved: int, tiles: int, inner: Sequence[float]) -> float:
    """Seconds of a group of a level: `moved` bytes over its link, beside the groups `inner` of the next level in each
    of its `tiles`."""
    target, level = problem.target, problem.target.levels[problem.level]
    busy, link = -(-tiles // level.units) * sum(inner), moved / problem.link
    return max(link, busy) + target.costs.exposed * min(link, busy)


def level_problem(
    state: SearchState, parts: Sequence[Part], level: int, around: OuterExtents, share: float
) -> LevelProblem:
    """The problem of one level below a core's; `around` says how far nodes run in the tile of the level below, `share`
    how much of the capacity may be used."""
    whole = state.problem
    pool_share = next(step.pool_share for step in state.steps if isinstance(step, PartitionLevels))
    return LevelProblem(
        parts, whole.graph, whole.target, level, whole.numbers, whole.objective, around, share, pool_share
    )


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
