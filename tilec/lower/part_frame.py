"""Frame of one part at one level: its tile loops, the parts one level up, and the placement of their nodes."""

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
"""Tensor -> buffers at a level that contain part of it at this point of the program."""


class PartFrame:
    """Analysis of a task before its statements are emitted, and the buffers allocated meanwhile.

    tiling     the part's tile loops at this level
    parts      the parts one level up, in the order in which they run
    owner      node -> its part one level up
    nests      node -> its reduce loops: pending ones from below, then those of this level
    shared     shared loops of the part at this level, by leader, whose steps form the loop
    chunks     node -> box of one step of them
    homes      node -> nodes whose reduce loops it is computed in
    buffers    tensor of the part -> its buffer at this level, or at a lower one if it skips the level
    sources    (node, tensor from elsewhere) -> buffer that the level above reads it from
    """

    def __init__(self, s: LoweringContext, task: TileRequest) -> None:
        self.s, self.task = s, task
        self.final = task.part[-1]
        self.lowest = task.level == 0
        self.tiling = Tiling((), dict(task.box), {})
        if not self.lowest:
            # Tiles of further outputs run in the final node's loops, even where the final node has an empty box.
            once = len(task.targets) > 1
            self.tiling = tile(s, self.final, task.level, task.box, task.accumulate, once)
        self.parts = connected_parts(s, task.part, task.level + 1)
        self.owner = {name: part for part in self.parts for name in part}
        self.nests: dict[str, tuple[ReduceNest, ...]] = {}
        self.chunks: dict[str, Box] = {}
        together = [loop for loop in s.shared.values() if loop.inside <= set(task.part)]
        following = {name for loop in together for name in loop.members[:-1]}
        for name in task.part:
            if name not in following:
                self._place_steps(name)
        self.shared = {loop.leader: loop for loop in together if loop.leader in self.nests}
        stepped = dict(self.chunks)
        for leader, loop in self.shared.items():
            self._place_members(leader, loop)
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

    def _place_members(self, leader: str, loop: SharedLoop) -> None:
        step = self.chunks[leader]
        for name in loop.members[:-1]:
            pairs = loop.iterators[name].items()
            self.chunks[name] = {iterator: step[other] for iterator, other in pairs if other in step}

    def _parts_above(self) -> list[ConnectedPart]:
        levels = range(self.task.level + 1, self.s.top + 1)
        return [part for level in levels for part in connected_parts(self.s, self.task.part, level) if len(part) > 1]

    def view(self, loops: tuple[str, ...]) -> ProducerRegion:
        """Boxes inside the reduce loops of the nodes `loops`."""
        if loops not in self.views:
            growing: dict[str, Window] = {}
            for leader in loops:
                if leader in self.shared:
                    outside = self.view(loops[: loops.index(leader)]).boxes
                    members = self.shared[leader].members
                    growing |= {m: tuple(outside[m][i] for i in self.s.nodes[m].spatial) for m in members}
            self.views[loops] = producer_region(self.s, self.task, self.tiling, self.chunks, loops, growing)
        return self.views[loops]

    def leaving(self, part: ConnectedPart) -> list[str]:
        """Tensors of a part one level up that are read at this level."""
        return leaving(self.s, self.task.part, part, self.task.targets)

    def home(self, part: ConnectedPart) -> tuple[str, ...]:
        """The reduce loops that a part one level up runs in: those common to all its tensors read at this level."""
        nests = [self.homes[name] for name in self.leaving(part)]
        shortest = min(nests, key=len)
        return () if set(shortest) & set(part) else shortest

    def split(self, part: ConnectedPart) -> SharedLoop | None:
        """The shared loop of a leader's part one level up that contains only some of the members."""
        loops = (self.shared[name] for name in part if name in self.shared)
        return next((loop for loop in loops if not set(loop.members) <= set(part)), None)

    def sequence(self, loops: tuple[str, ...]) -> list[ConnectedPart]:
        """The parts one level up that run inside the reduce loops `loops`; a leader's part stands for all members of
        its loop, at the position of the last one of them."""
        here = [part for part in self.parts if self.home(part) == loops]
        place = {part: self.parts.index(part) for part in here}
        for part in here:
            loop = self.split(part)
            if loop is not None:
                place[part] = max(self.parts.index(self.owner[name]) for name in loop.members)
        return sorted(here, key=place.__getitem__)

    def relays(self, part: ConnectedPart) -> bool:
        """Whether partial results move through this level: the reduce loops stand outside the tile loops one level up.

        True for the final node of a part whose tiles run one after another; on several units, and before epilogues, the
        tile loops stand outside and the accumulators stay in place.
        """
        s, level, final = self.s, self.task.level, part[-1]
        if level == s.top or final not in self.nests or final in self.shared or s.spread(level + 1):
            return False
        if self.leaving(part) != [final] or any(name in self.nests for name in part[:-1]):
            return False
        box = self.view(self.homes[final]).boxes[final]
        sizes = s.variant.tiles.get(s.levels[level + 1].name, {}).get(final, {})
        return any(not s.sizes.at_most(box[i][1], s.sizes.add(box[i][0], Const(n))) for i, n in sizes.items())
