"""One part at one level: its tile loops, the parts one level up, and where everything in it is placed."""

from __future__ import annotations

from tilec.ir.expr import Const
from tilec.ir.program import Buffer
from tilec.lower.compute_at import compute_at, leaving
from tilec.lower.connected_parts import ConnectedPart, connected_parts
from tilec.lower.iteration_boxes import ProducerRegion, producer_region
from tilec.lower.lowering_context import Box, LoweringContext, Window
from tilec.lower.shared_loops import SharedLoop
from tilec.lower.split import Tiling, reduce_steps, tile
from tilec.lower.tile_request import ReduceNest, TileRequest

LiveRange = dict[str, list[Buffer]]
"""Tensor -> buffers at a level that hold part of it at this point of the program."""


class PartFrame:
    """What is known about a task before its statements are written, and the buffers given out while they are.

    tiling     the part's tile loops at this level
    parts      the parts one level up, in the order in which they run
    owner      node -> its part one level up
    nests      node -> its reduce loops: pending ones from below, then those of this level
    chains     reductions of the part that share a loop here, by leader, whose loop it is
    chunks     node -> box of one step of them
    homes      node -> nodes whose reduce loops it lives in
    buffers    tensor of the part -> its buffer at this level, or further down if it skips the level
    sources    (node, tensor from elsewhere) -> buffer that the level above reads it from
    """

    def __init__(self, s: LoweringContext, task: TileRequest) -> None:
        self.s, self.task = s, task
        self.final = task.part[-1]
        self.lowest = task.level == 0
        self.tiling = Tiling((), dict(task.box), {})
        if not self.lowest:
            # Tiles of what else leaves the part run in the final node's loops, even where nothing is asked of that.
            once = len(task.targets) > 1
            self.tiling = tile(s, self.final, task.level, task.box, task.accumulate, once)
        self.parts = connected_parts(s, task.part, task.level + 1)
        self.owner = {name: part for part in self.parts for name in part}
        self.nests: dict[str, tuple[ReduceNest, ...]] = {}
        self.chunks: dict[str, Box] = {}
        together = [chain for chain in s.chains.values() if chain.inside <= set(task.part)]
        following = {name for chain in together for name in chain.members[:-1]}
        for name in task.part:
            if name not in following:
                self._place_steps(name)
        self.chains = {chain.leader: chain for chain in together if chain.leader in self.nests}
        stepped = dict(self.chunks)
        for leader, chain in self.chains.items():
            self._place_members(leader, chain)
        above = self._parts_above() if self.nests else ()
        apart = s.spread_above(task.level)
        self.homes = compute_at(s, task.part, stepped, task.targets, above, together, apart)
        self.views: dict[tuple[str, ...], ProducerRegion] = {}
        self.buffers: dict[str, Buffer] = {}
        self.sources: dict[tuple[str, str], Buffer] = {}

    def _place_steps(self, name: str) -> None:
        expr, pending = self.s.nodes[name], self.task.pending.get(name, ())
        box: Box = {i: (Const(0), expr.domain[i]) for i in expr.reduce}
        if name == self.final:
            box = {i: self.task.box[i] for i in expr.reduce}
        for nest in pending:
            box |= nest.chunk
        heads, chunk = ((), {}) if self.lowest else reduce_steps(self.s, name, self.task.level, box)
        if heads or pending:
            self.nests[name] = (*pending, ReduceNest(heads, chunk))
            self.chunks[name] = {i: ends for nest in self.nests[name] for i, ends in nest.chunk.items()}

    def _place_members(self, leader: str, chain: SharedLoop) -> None:
        step = self.chunks[leader]
        for name in chain.members[:-1]:
            pairs = chain.iterators[name].items()
            self.chunks[name] = {own: step[other] for own, other in pairs if other in step}

    def _parts_above(self) -> list[ConnectedPart]:
        levels = range(self.task.level + 1, self.s.top + 1)
        return [part for level in levels for part in connected_parts(self.s, self.task.part, level) if len(part) > 1]

    def view(self, loops: tuple[str, ...]) -> ProducerRegion:
        """Boxes inside some reduce loops."""
        if loops not in self.views:
            growing: dict[str, Window] = {}
            for leader in loops:
                if leader in self.chains:
                    outside = self.view(loops[: loops.index(leader)]).boxes
                    members = self.chains[leader].members
                    growing |= {m: tuple(outside[m][i] for i in self.s.nodes[m].spatial) for m in members}
            self.views[loops] = producer_region(self.s, self.task, self.tiling, self.chunks, loops, growing)
        return self.views[loops]

    def leaving(self, part: ConnectedPart) -> list[str]:
        """Tensors of a part one level up that are needed here."""
        return leaving(self.s, self.task.part, part, self.task.targets)

    def home(self, part: ConnectedPart) -> tuple[str, ...]:
        """The reduce loops that a part one level up runs in: those of all its tensors that are needed here."""
        chains = [self.homes[name] for name in self.leaving(part)]
        shortest = min(chains, key=len)
        return () if set(shortest) & set(part) else shortest

    def split(self, part: ConnectedPart) -> SharedLoop | None:
        """The chain of a leader's part one level up that holds only some of those that share the loop."""
        found = (self.chains[name] for name in part if name in self.chains)
        return next((chain for chain in found if not set(chain.members) <= set(part)), None)

    def sequence(self, loops: tuple[str, ...]) -> list[ConnectedPart]:
        """The parts one level up that run inside the reduce loops `loops`; a leader's stands for all that share its
        loop, where the last one of them does."""
        here = [part for part in self.parts if self.home(part) == loops]
        place = {part: self.parts.index(part) for part in here}
        for part in here:
            chain = self.split(part)
            if chain is not None:
                place[part] = max(self.parts.index(self.owner[name]) for name in chain.members)
        return sorted(here, key=place.__getitem__)

    def relays(self, part: ConnectedPart) -> bool:
        """Whether partial results go through this level: the reduce loops stand outside the tile loops one level up.

        That is so for the final node of a part whose tiles run one after another; on several units, and before
        epilogues, the tile loops stand outside and the accumulators stay in place.
        """
        s, level, final = self.s, self.task.level, part[-1]
        if level == s.top or final not in self.nests or final in self.chains or s.spread(level + 1):
            return False
        if self.leaving(part) != [final] or any(name in self.nests for name in part[:-1]):
            return False
        box = self.view(self.homes[final]).boxes[final]
        sizes = s.variant.tiles.get(s.levels[level + 1].name, {}).get(final, {})
        return any(not s.sizes.at_most(box[i][1], s.sizes.add(box[i][0], Const(n))) for i, n in sizes.items())
