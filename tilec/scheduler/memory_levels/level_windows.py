"""Windows that candidate tiles need of every tensor, propagated backward part by part (W04, W05).

Tiles are looked at at the origin, in the middle, where no window is cut, and at the far end, where windows that
several readers ask for have moved apart if they ever do; everywhere, where a choice is made sure of.  Arrays have the
shape places x candidates.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tilec.ir.expr import TensorExpr
from tilec.ir.graph import Node
from tilec.ir.propagate import propagate
from tilec.scheduler.memory_levels.level_problem import LevelProblem
from tilec.scheduler.memory_levels.level_tiles import Flags, Floats, Ints, LevelTiles

Interval = tuple[Ints, Ints]

MOST_PLACES = 4096
"""Tiles along an iterator that are looked at where all are."""


@dataclass(frozen=True, slots=True)
class MovedWindow:
    """`[lo, hi)` per dimension of a tensor, and the tile loops (as bits) that move each dimension."""

    ends: tuple[Interval, ...]
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
            width = np.maximum(hi - lo, 0)
            width = width if limits is None else np.minimum(width, limits[at])
            if width.ndim:
                total = total * width.max(axis=0)
            else:
                fixed *= int(width)
        return total * fixed

    def joined(self, other: MovedWindow) -> MovedWindow:
        """The hull of both; an empty window widens nothing."""
        here, there = _empty(self), _empty(other)
        ends = tuple(
            (
                np.where(here, c, np.where(there, a, np.minimum(a, c))),
                np.where(here, d, np.where(there, b, np.maximum(b, d))),
            )
            for (a, b), (c, d) in zip(self.ends, other.ends, strict=True)
        )
        return MovedWindow(ends, tuple(a | b for a, b in zip(self.moved, other.moved, strict=True)))

    def contains(self, other: MovedWindow) -> Flags:
        """For every candidate whether the other window lies inside, at all places."""
        found = np.asarray(_empty(other))
        inside = np.asarray(True)
        for (a, b), (c, d) in zip(self.ends, other.ends, strict=True):
            inside = inside & (a <= c) & (d <= b)
        return np.asarray(np.atleast_2d(found | inside).all(axis=0))


def _empty(window: MovedWindow) -> Flags:
    found: Flags = np.asarray(False)
    for lo, hi in window.ends:
        found = np.asarray(found | (hi <= lo))
    return found


@dataclass(frozen=True, slots=True)
class PlacedBox:
    """A node under every candidate: how far each iterator runs, the loops that move it, points at most."""

    box: Mapping[str, Interval]
    moved: Mapping[str, int]

    @property
    def points(self) -> Floats:
        """Points of the domain that are computed."""
        return MovedWindow(tuple(self.box.values()), ()).volume()


@dataclass(frozen=True)
class WindowPropagation:
    """Boxes of nodes, found from their readers' windows; `inside` holds the parts that may read within the tile."""

    problem: LevelProblem
    tiles: LevelTiles
    final: TensorExpr
    inside: Container[int]
    asked: dict[str, MovedWindow] = field(default_factory=dict)
    invalid: list[Flags] = field(default_factory=list)

    def leaves(self, tensor: str) -> bool:
        """Whether a tensor is needed beyond the tile."""
        return self.problem.leaves(tensor, self.inside)

    def ask(self, tensor: str, window: MovedWindow) -> None:
        """Note that a reader needs a window."""
        known = self.asked.get(tensor)
        self.asked[tensor] = window if known is None else known.joined(window)

    def place(self, node: Node) -> PlacedBox:
        """The box of a node all of whose readers are known."""
        expr, extents = node.expr, self.problem.facts[node.name].extents
        window = self.asked.get(node.name)
        if expr is self.final:
            ends, moved = self._own(expr, extents)
        elif window is None:
            ends, moved = self._aligned(expr, extents)
        else:
            moved = dict(zip(expr.spatial, window.moved, strict=True))
            ends = {
                i: _moved_inside(interval, extents[i]) for i, interval in zip(expr.spatial, window.ends, strict=True)
            }
        if expr is not self.final and self.leaves(node.name):
            ends = self._covering(ends, moved, extents)
        zero = np.asarray(0, np.int64)
        steps = {i: (zero, np.asarray(extents[i], np.int64)) for i in expr.reduce}
        return PlacedBox({**ends, **steps}, moved)

    def buffer(self, node: Node, placed: PlacedBox) -> Floats:
        """Elements held of a node's tensor: its box, and what its readers ask for where that reaches over the edge.

        Where the box had to be moved inside, the buffer holds it with the overhang on both sides
        (`tilec.lower.windows.widened_window`).
        """
        window = self.asked.get(node.name)
        box = tuple(placed.box[i] for i in node.expr.spatial)
        if window is None or node.expr is self.final:
            return MovedWindow(box, ()).volume()
        ends: list[Interval] = []
        for i, (lo, hi), (first, last) in zip(node.expr.spatial, window.ends, box, strict=True):
            extent = self.problem.facts[node.name].extents[i]
            inside = ((lo <= first) & (last <= hi)).all(axis=0)
            over = np.maximum(-lo, 0).max(axis=0) + np.maximum(hi - extent, 0).max(axis=0)
            width = np.maximum(hi - lo, last - first) + np.where(inside, 0, over)
            ends.append((np.zeros_like(width), width))
        return MovedWindow(tuple(ends), ()).volume()

    def read(self, node: Node, placed: PlacedBox) -> tuple[dict[str, MovedWindow], dict[str, Floats]]:
        """The windows that a node reads, and of what data index instead the elements."""
        facts = self.problem.facts[node.name]
        if facts.plain is not None:
            return _boxes(facts.plain, placed), {}
        found = propagate(facts.bare, placed.box, facts.shapes, self.problem.numbers)
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

    def _own(self, expr: TensorExpr, extents: Mapping[str, int]) -> tuple[dict[str, Interval], dict[str, int]]:
        """The tiles themselves: the first one, and the last one, which ends with the tensor."""
        ends: dict[str, Interval] = {}
        for i in expr.spatial:
            size = self.tiles.sizes.get(i, np.asarray([extents[i]], np.int64))
            start = self._starts(extents[i], size)
            ends[i] = (start, start + size)
        return ends, {i: 1 << k for k, i in enumerate(self.tiles.loops)}

    def _starts(self, extent: int, size: Ints) -> Ints:
        """Where tiles begin: places x candidates; the last tile ends with the tensor."""
        count = -(-extent // np.maximum(size, 1))
        if self.tiles.everywhere:
            number = max((int(n.max()) for n in self.tiles.counts.values()), default=1)
            which = np.unique(np.linspace(0, number - 1, min(number, MOST_PLACES)).astype(np.int64))[:, None]
        else:
            which = np.stack([np.zeros_like(count), count // 2, count - 1])
        return np.asarray(np.minimum(which * size, extent - size))

    def _aligned(self, expr: TensorExpr, extents: Mapping[str, int]) -> tuple[dict[str, Interval], dict[str, int]]:
        """The box of another tensor that leaves: loops of the final node move its iterators of the same name, or else
        place; candidates with a loop that finds none are not valid (W06)."""
        whole = self.problem.facts[self.final.tensor].extents
        own, _ = self._own(self.final, whole)
        ends = {i: (np.asarray(0, np.int64), np.asarray(extents[i], np.int64)) for i in expr.spatial}
        moved: dict[str, int] = {}
        for k, loop in enumerate(self.tiles.loops):
            at = self.final.spatial.index(loop)
            twins = [loop] if loop in expr.spatial else list(expr.spatial[at : at + 1])
            if twins and extents[twins[0]] == whole[loop]:
                ends[twins[0]], moved[twins[0]] = own[loop], 1 << k
            else:
                self.invalid.append(self.tiles.counts[loop] > 1)
        return ends, moved

    def _covering(
        self, ends: Mapping[str, Interval], moved: Mapping[str, int], extents: Mapping[str, int]
    ) -> dict[str, Interval]:
        """Boxes made large enough that all tiles together hold the tensor once (`tilec.lower.store_regions`)."""
        used = [bits for i in ends if (bits := moved.get(i, 0))]
        single = all(bits.bit_count() == 1 for bits in used) and len(set(used)) == len(used)
        found: dict[str, Interval] = {}
        for i, (lo, hi) in ends.items():
            bits = moved.get(i, 0)
            least = np.asarray(extents[i], np.int64)
            if single and bits:
                least = -(-least // self.tiles.counts[self.tiles.loops[bits.bit_length() - 1]])
            end = np.maximum(hi, lo + least)
            found[i] = _moved_inside((lo, end), extents[i])
        return found


def _boxes(plain: Iterable[tuple[str, tuple[str | int, ...]]], placed: PlacedBox) -> dict[str, MovedWindow]:
    """Windows of accesses whose indices are iterators and numbers."""
    found: dict[str, MovedWindow] = {}
    for tensor, index in plain:
        ends = tuple(placed.box[i] if isinstance(i, str) else _point(i) for i in index)
        window = MovedWindow(ends, tuple(placed.moved.get(i, 0) if isinstance(i, str) else 0 for i in index))
        found[tensor] = found[tensor].joined(window) if tensor in found else window
    return found


def _point(index: int) -> Interval:
    return np.asarray(index, np.int64), np.asarray(index + 1, np.int64)


def _moved_inside(interval: Interval, extent: int) -> Interval:
    """An interval of the same width inside `[0, extent)`, or all of that."""
    lo, hi = interval
    width = np.minimum(np.maximum(hi - lo, 0), extent)
    start = np.minimum(np.maximum(lo, 0), extent - width)
    return start, start + width
