"""Cost of an interval of parts at a level below a core's, while it grows backward (W07, W08, W46).

The tile loops of the interval's final node are serial: an operand comes over the link once for every tile of the loops
from the outermost down to the innermost one that moves its window, as long as the level has room to keep it; results
that leave go back once.  Every part's result and what it reads is held from where it is made or first needed to its
last use, so that what higher levels connect only leaves room.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

import numpy as np

from tilec.scheduler.analysis.window_propagation import Ends
from tilec.scheduler.memory_levels.level_problem import LevelProblem, OuterExtents
from tilec.scheduler.memory_levels.level_tiles import Flags, Floats, LevelTiles
from tilec.scheduler.memory_levels.level_windows import MovedWindow, WindowPropagation

TIE = 1e-9
"""Relative difference below which costs are equal."""


@dataclass(frozen=True, slots=True)
class LevelCost:
    """The best candidate: what the objective minimises (infinite where none fits), seconds, bytes over the link, bytes
    held, which candidate, its loops outermost first."""

    value: float
    seconds: float
    moved: float
    held: float
    candidate: int
    order: tuple[str, ...]


@dataclass(slots=True)
class _Load:
    """An operand: bytes of all its windows in one tile, bytes they occupy, and the steps of the walk that need it."""

    window: MovedWindow
    moved: Floats
    held: Floats
    loops: int
    first: int
    last: int


class IncrementalCost:
    """Parts added one by one, consumers before producers; after each the cost of all of them together."""

    def __init__(self, problem: LevelProblem, tiles: LevelTiles, final: int, inside: Container[int]) -> None:
        self.problem, self.tiles = problem, tiles
        self.follower = WindowPropagation(problem, tiles, problem.parts[final][-1].expr, inside)
        self.count = tiles.number.size
        self.loops = len(tiles.loops)
        self.held = np.zeros((self.loops + 1, 8, self.count))
        self.kept = np.zeros((self.loops + 1, self.count))
        self.loads: dict[str, _Load] = {}
        self.gathered: dict[str, Floats] = {}
        self.members: list[int] = []
        self.pieces: list[set[int]] = []
        self.last: dict[str, int] = {}
        self.boxes: dict[str, Mapping[str, Ends]] = {}
        self.leaving = 0.0
        self.work: Floats = np.zeros(self.count)

    def add(self, number: int) -> None:
        """One part more, all of whose readers inside are there already."""
        problem, follower, step = self.problem, self.follower, len(self.members)
        if step == self.held.shape[1]:
            self.held = np.concatenate([self.held, np.zeros_like(self.held)], axis=1)
        names = {node.name for node in problem.parts[number]}
        flops: Floats = np.zeros(self.count)
        windows: dict[str, MovedWindow] = {}
        moved: Floats = np.zeros(self.count)
        for node in reversed(problem.parts[number]):
            placed = follower.place(node)
            self.boxes[node.name] = placed.box
            flops = flops + placed.points * problem.facts[node.name].work
            read, gathered = follower.read(node, placed)
            for tensor, elements in gathered.items():
                size = elements * problem.bytes_of(tensor)
                moved = moved + size
                self.gathered[tensor] = self.gathered.get(tensor, 0.0) + size
                follower.ask(tensor, _all_of(problem.shapes[tensor]))
                self.last.setdefault(tensor, step)
            for tensor, window in read.items():
                if tensor in names:
                    follower.ask(tensor, window)
                else:
                    windows[tensor] = windows[tensor].joined(window) if tensor in windows else window
            if node.expr is follower.final or node.name in self.last or follower.leaves(node.name):
                size = follower.buffer(node, placed) * problem.bytes_of(node.name)
                moved = moved + size
                self._make(node.name, size, step)
        for tensor, window in windows.items():
            moved = moved + self._load(tensor, window, step)
            follower.ask(tensor, window)
        self._join(number)
        self.members.append(number)
        self.work = self.work + np.maximum(flops / problem.target.peak, moved / problem.feed) + problem.target.launch

    def _join(self, number: int) -> None:
        """Which members are connected by what they make."""
        names = {node.name for node in self.problem.parts[number]}
        readers = {n for name in names for n in self.problem.readers.get(name, ())}
        touched = [piece for piece in self.pieces if piece & readers]
        self.pieces = [piece for piece in self.pieces if not piece & readers]
        self.pieces.append({number}.union(*touched))

    def _make(self, tensor: str, size: Floats, step: int) -> None:
        """A tensor made here is held from its part to its last reader, to the end of the tile if it leaves."""
        load = self.loads.pop(tensor, None)
        if load is not None:
            self._hold(load, -1.0)
        self.gathered.pop(tensor, None)
        leaves = self.follower.leaves(tensor)
        last = 0 if leaves else self.last.get(tensor, step)
        self.held[:, last : step + 1] += size
        self.leaving += self.problem.whole(tensor) if leaves else 0

    def _load(self, tensor: str, window: MovedWindow, step: int) -> Floats:
        """A window read from outside the part; an earlier one that holds the later ones spares their transfers."""
        problem = self.problem
        size = window.volume(problem.shapes[tensor]) * problem.bytes_of(tensor)
        moved, held, loops, last = size, window.volume() * problem.bytes_of(tensor), window.loops, step
        known = self.loads.get(tensor)
        if known is not None:
            spared = window.contains(known.window)
            moved = moved + np.where(spared, 0, known.moved)
            held = held + np.where(spared, 0, known.held)
            loops, last = loops | known.loops, known.last
            window = window.joined(known.window)
            self._hold(known, -1.0)
        self.loads[tensor] = _Load(window, moved, held, loops, step, last)
        self._hold(self.loads[tensor], 1.0)
        self.last.setdefault(tensor, step)
        return size

    def _hold(self, load: _Load, sign: float) -> None:
        """Count an operand; under an innermost loop that does not move it, it stays through all tiles."""
        for k in range(self.loops + 1):
            if k == self.loops or load.loops >> k & 1:
                self.held[k, load.last : load.first + 1] += sign * load.held
            else:
                self.kept[k] += sign * load.held

    def extents(self, candidate: int) -> OuterExtents:
        """How far the iterators of every node run in one tile."""
        extents: dict[str, dict[str, int]] = {}
        for name, box in self.boxes.items():
            widths = {i: np.atleast_2d(hi - lo).max(axis=0) for i, (lo, hi) in box.items()}
            extents[name] = {i: int(width[candidate % width.size]) for i, width in widths.items()}
        return extents

    def best(self, limit: float | None = None) -> LevelCost:
        """The best candidate for the parts so far, holding the level's capacity or less; among equals the largest."""
        problem, tiles, number = self.problem, self.tiles, self.tiles.number
        held = self.kept + self.held[:, : len(self.members)].max(axis=1)
        once: dict[int, Floats] = {}
        for load in self.loads.values():
            once[load.loops] = once.get(load.loops, 0.0) + load.moved
        every = sum(self.gathered.values(), np.zeros(self.count))
        each = sum(once.values(), every) * number
        kept = sum((size * tiles.times(loops) for loops, size in once.items()), every * number)
        room = np.take_along_axis(held, tiles.inner, axis=0)
        limit = problem.capacity if limit is None else limit
        if len(self.members) == 1 and limit < float(held[self.loops].min()) <= problem.most:
            limit = float(held[self.loops].min())
        keeps = (room <= limit) & (problem.units == 1)
        moved = np.where(keeps, kept, each) + self.leaving
        room = np.where(keeps, room, held[self.loops])
        link, inner = moved / problem.link, self.work * -(-number // problem.units)
        seconds = np.maximum(link, inner) + problem.target.costs.exposed * np.minimum(link, inner)
        value = self._objective(seconds, moved, room) * tiles.handicap
        value = np.where(self._valid() & (room <= limit), value, np.inf)
        least = float(value.min())
        ties = value <= least * (1 + TIE) if least < np.inf else room <= room.min()
        at = int(np.argmax(ties.any(axis=0)))
        way = int(np.argmax(ties[:, at]))
        order = tuple(tiles.loops[k] for k in tiles.orders[way] if tiles.counts[tiles.loops[k]][at] > 1)
        return LevelCost(
            float(value[way, at]), float(seconds[way, at]), float(moved[way, at]), float(room[way, at]), at, order
        )

    def _valid(self) -> Flags:
        """Candidates under which every result is aligned, none if the parts are not connected."""
        valid: Flags = np.full(self.count, len(self.pieces) == 1)
        for invalid in self.follower.invalid:
            valid = valid & np.logical_not(invalid)
        return valid

    def _objective(self, seconds: Floats, moved: Floats, room: Floats) -> Floats:
        match self.problem.objective:
            case "time":
                return seconds
            case "traffic":
                return moved + seconds * 1e-3
            case "footprint":
                return room + seconds * 1e-3


def _all_of(shape: tuple[int, ...]) -> MovedWindow:
    return MovedWindow(tuple((0, n) for n in shape), (0,) * len(shape))
