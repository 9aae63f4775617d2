"""Windows that candidate tiles need of every tensor, propagated backward part by part (W04, W05).

Tiles are looked at at the origin, in the middle, where no window is cut, and at the far end, where windows that
several readers ask for have moved apart if they ever do; everywhere, where a choice is made sure of.  Arrays have the
shape places x candidates.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tilec.ir.expr import TensorExpr
from tilec.ir.graph import Node
from tilec.ir.group_windows import Flags, GroupWindows, align, hull, widen
from tilec.ir.propagate import propagate
from tilec.scheduler.analysis.window_propagation import CandidateEnds, Ends, width
from tilec.scheduler.memory_levels.level_problem import LevelProblem
from tilec.scheduler.memory_levels.level_tiles import Floats, Ints, LevelTiles
from tilec.scheduler.memory_levels.stored_windows import stored_window

MOST_PLACES = 4096
"""Tiles along an iterator that are looked at where all are."""


class PlacedEnds(CandidateEnds):
    """Ends of windows as arrays of places x candidates: a fact holds for a candidate if it does at all places."""

    def covers(self, lo: Ints | int, hi: Ints | int, first: Ints | int, end: Ints | int) -> Flags:
        """Where `[lo, hi)` contains `[first, end)` at all places."""
        return np.asarray(np.atleast_2d((lo <= first) & (end <= hi)).all(axis=0))

    def origin(self, number: Ints | int) -> Ints | int:
        """The number in the first tile."""
        return number if np.ndim(number) < 2 else np.asarray(number)[0]

    def shortfall(self, amount: Ints | int) -> Ints:
        """How far a number falls below 0 at most."""
        return np.asarray(np.atleast_2d(np.maximum(np.negative(amount), 0)).max(axis=0))


PLACED = PlacedEnds()


@dataclass(frozen=True, slots=True)
class MovedWindow:
    """`[lo, hi)` per dimension of a tensor, and the tile loops (as bits) that move each dimension."""

    ends: tuple[Ends, ...]
    moved: tuple[int, ...]

    @property
    def loops(self) -> int:
        """The loops that move the window, as bits."""
        found = 0
        for bits in self.moved:
            found |= bits
        return found

    def volume(self, limits: Sequence[int] | None = None) -> Floats:
        """Elements at most, each dimension at the place where it is widest and at most its limit."""
        total: Floats = np.ones(1)
        fixed = 1
        for at, (lo, hi) in enumerate(self.ends):
            size = np.maximum(width(lo, hi), 0)
            size = size if limits is None else np.minimum(size, limits[at])
            if size.ndim:
                total = total * size.max(axis=0)
            else:
                fixed *= int(size)
        return total * fixed

    def joined(self, other: MovedWindow) -> MovedWindow:
        """The hull of both; an empty window widens nothing."""
        ends = hull((self.ends, other.ends), PLACED)
        assert ends is not None
        return MovedWindow(ends, tuple(a | b for a, b in zip(self.moved, other.moved, strict=True)))

    def contains(self, other: MovedWindow) -> Flags:
        """For every candidate whether the other window lies inside, at all places."""
        empty = np.asarray(False)
        inside = np.asarray(True)
        for (a, b), (c, d) in zip(self.ends, other.ends, strict=True):
            empty = empty | (d <= c)
            inside = inside & (a <= c) & (d <= b)
        return np.asarray(np.atleast_2d(empty | inside).all(axis=0))


@dataclass(frozen=True, slots=True)
class PlacedBox:
    """A node under every candidate: how far each iterator runs, the loops that move it, points at most."""

    box: Mapping[str, Ends]
    moved: Mapping[str, int]

    @property
    def points(self) -> Floats:
        """Points of the domain that are computed."""
        return MovedWindow(tuple(self.box.values()), ()).volume()


class WindowPropagation:
    """Boxes of nodes, found from their readers' windows; `inside` holds the parts that may read within the tile.

    walk     the walk over the group's nodes
    moved    tensor -> the tile loops (as bits) that move each dimension of what its readers want
    invalid  candidates of which a loop moves no iterator of some further sink
    """

    def __init__(self, problem: LevelProblem, tiles: LevelTiles, final: TensorExpr, inside: Container[int]) -> None:
        self.problem, self.tiles, self.final, self.inside = problem, tiles, final, inside
        self.walk: GroupWindows[Ints | int] = GroupWindows(final, self._tile(), PLACED)
        self.moved: dict[str, tuple[int, ...]] = {}
        self.invalid: list[Flags] = []

    def leaves(self, tensor: str) -> bool:
        """Whether a tensor is needed beyond the tile."""
        return self.problem.leaves(tensor, self.inside)

    def ask(self, tensor: str, window: MovedWindow) -> None:
        """Note that a reader needs a window."""
        known = self.moved.get(tensor, window.moved)
        self.moved[tensor] = tuple(a | b for a, b in zip(known, window.moved, strict=True))
        self.walk.request({tensor: window.ends})

    def place(self, node: Node) -> PlacedBox:
        """The box of a node all of whose readers are known."""
        expr, extents = node.expr, self.problem.facts[node.name].extents
        window = self.walk.place(expr, [extents[i] for i in expr.spatial])
        if expr is self.final:
            moved = {i: 1 << k for k, i in enumerate(self.tiles.loops)}
        else:
            moved = dict(zip(expr.spatial, self.moved.get(node.name, ()), strict=False))
        if window is None:
            ends, moved = self._aligned(expr, extents)
        else:
            ends = dict(zip(expr.spatial, window, strict=True))
        if expr is not self.final and self.leaves(node.name):
            loops, whole = self.tiles.loops, self.tiles.extents
            moving = [{loop for k, loop in enumerate(loops) if moved.get(i, 0) >> k & 1} for i in ends]
            shape = [extents[i] for i in ends]
            grown = stored_window(
                tuple(ends.values()), shape, moving, {i: (n, whole[i]) for i, n in self.tiles.sizes.items()}, PLACED
            )
            ends = dict(zip(ends, grown, strict=True))
        return PlacedBox({**ends, **{i: (0, extents[i]) for i in expr.reduce}}, moved)

    def buffer(self, node: Node, placed: PlacedBox) -> Floats:
        """Elements held of a node's tensor: its box, and what its readers ask for where that reaches over the edge."""
        box = tuple(placed.box[i] for i in node.expr.spatial)
        window = self.walk.wanted(node.name)
        if window is None or node.expr is self.final:
            return MovedWindow(box, ()).volume()
        extents = self.problem.facts[node.name].extents
        triples = zip(node.expr.spatial, window, box, strict=True)
        return MovedWindow(tuple(widen(wanted, ends, extents[i], PLACED) for i, wanted, ends in triples), ()).volume()

    def read(self, node: Node, placed: PlacedBox) -> tuple[dict[str, MovedWindow], dict[str, Floats]]:
        """The windows that a node reads, and of what data index instead the elements."""
        facts = self.problem.facts[node.name]
        if facts.plain is not None:
            return _boxes(facts.plain, placed), {}
        box = {i: (np.asarray(lo, np.int64), np.asarray(hi, np.int64)) for i, (lo, hi) in placed.box.items()}
        found = propagate(facts.bare, box, facts.shapes, self.problem.numbers)
        moved = {tensor: [0] * len(shape) for tensor, shape in facts.shapes.items()}
        for tensor, index in facts.indices:
            for at, names in enumerate(index):
                for name in names:
                    moved[tensor][at] |= placed.moved.get(name, 0)
        windows = {t: MovedWindow(tuple(ends), tuple(moved[t])) for t, ends in found.items()}
        points = placed.points if facts.indexed else np.ones(1)
        return (
            {t: w for t, w in windows.items() if t not in facts.indexed},
            {t: np.minimum(points, windows[t].volume()) for t in facts.indexed},
        )

    def _tile(self) -> dict[str, Ends]:
        """The tiles themselves: the first one, and the last one, which ends with the tensor."""
        extents = self.problem.facts[self.final.tensor].extents
        tile: dict[str, Ends] = {i: (0, extents[i]) for i in self.final.spatial}
        for i, size in self.tiles.sizes.items():
            start = self._starts(extents[i], size)
            tile[i] = start, start + size
        return tile

    def _starts(self, extent: int, size: Ints) -> Ints:
        """Where tiles begin: places x candidates; the last tile ends with the tensor."""
        count = -(-extent // np.maximum(size, 1))
        if self.tiles.everywhere:
            number = max((int(n.max()) for n in self.tiles.counts.values()), default=1)
            which = np.unique(np.linspace(0, number - 1, min(number, MOST_PLACES)).astype(np.int64))[:, None]
        else:
            which = np.stack([np.zeros_like(count), count // 2, count - 1])
        return np.asarray(np.minimum(which * size, extent - size))

    def _aligned(self, expr: TensorExpr, extents: Mapping[str, int]) -> tuple[dict[str, Ends], dict[str, int]]:
        """The box of another tensor that leaves; candidates with a loop that does not move it are not valid (W06)."""
        loops = self.tiles.loops
        whole = self.problem.facts[self.final.tensor].extents
        region: dict[str, Ends] = {i: (0, extents[i]) for i in expr.spatial}
        limits: dict[str, Ends] = {i: (0, whole[i]) for i in loops}
        ends, twins = align(expr, region, self.final, limits, {i: self.walk.tile[i] for i in loops}, PLACED)
        self.invalid += [self.tiles.counts[loop] > 1 for loop in loops if loop not in twins]
        return ends, {twins[loop]: 1 << k for k, loop in enumerate(loops) if loop in twins}


def _boxes(plain: Iterable[tuple[str, tuple[str | int, ...]]], placed: PlacedBox) -> dict[str, MovedWindow]:
    """Windows of accesses whose indices are iterators and numbers."""
    found: dict[str, MovedWindow] = {}
    for tensor, index in plain:
        ends = tuple(placed.box[i] if isinstance(i, str) else (i, i + 1) for i in index)
        window = MovedWindow(ends, tuple(placed.moved.get(i, 0) if isinstance(i, str) else 0 for i in index))
        found[tensor] = found[tensor].joined(window) if tensor in found else window
    return found
