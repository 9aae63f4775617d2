"""A layered drawing of a graph: rows by longest path, few crossings, straight lines (Sugiyama's method).

A tensor that is read more than one row below its producer runs down one trunk, a place in every row between, from which
its readers branch off. No line is drawn to a reader more than FAR rows below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

PITCH = 204
"""Pixels from one item to the next in a row."""

LANE = 26
"""Width of a trunk in a row, in pixels."""

FAR = 150
"""Limit of rows that a trunk runs through."""

_SWEEPS = 8


@dataclass(frozen=True, slots=True)
class Drawing:
    """Positions of items: the middle in pixels, and the row from above. `trunks` maps an item that is read more than a
    row below to the middles of its trunk in the rows that follow."""

    x: tuple[int, ...]
    rows: tuple[int, ...]
    trunks: Mapping[int, tuple[int, ...]]
    width: int


def layered(count: int, links: Sequence[tuple[int, int]], sources: frozenset[int] = frozenset()) -> Drawing:
    """Draw `count` items with links (producer, reader); `sources` are placed right above their first reader."""
    rows = _rows(count, links, sources)
    forward = [(a, b) for a, b in links if rows[a] < rows[b]]
    grid = _Grid(rows, forward)
    order = grid.ordered()
    x = grid.placed(order)
    left = min((x[n] - PITCH / 2 for n in range(count)), default=0)
    middle = [round(place - left) for place in x]
    trunks = {item: tuple(middle[n] for n in chain) for item, chain in grid.trunks.items()}
    width = max((middle[n] + PITCH // 2 for n in range(count)), default=PITCH)
    return Drawing(tuple(middle[:count]), tuple(rows), trunks, max([width, *(x for t in trunks.values() for x in t)]))


def _rows(count: int, links: Sequence[tuple[int, int]], sources: frozenset[int]) -> list[int]:
    """The row of every item, below all items that it reads; links of a cycle are left out."""
    readers: list[list[int]] = [[] for _ in range(count)]
    waits = [0] * count
    for maker, reader in links:
        readers[maker].append(reader)
        waits[reader] += 1
    rows, ready, done = [0] * count, [n for n in range(count) if not waits[n]], [False] * count
    rest = iter(range(count))
    for _ in range(count):
        item = ready.pop() if ready else next(n for n in rest if not done[n])
        done[item] = True
        for reader in readers[item]:
            if done[reader]:
                continue
            rows[reader] = max(rows[reader], rows[item] + 1)
            waits[reader] -= 1
            if not waits[reader]:
                ready.append(reader)
    for item in sources:
        below = [rows[reader] for reader in readers[item]]
        rows[item] = max(min(below) - 1, 0) if below else rows[item]
    return rows


class _Grid:
    """Items and trunk places by row, with the links of neighbouring rows."""

    def __init__(self, rows: Sequence[int], links: Sequence[tuple[int, int]]) -> None:
        self.count = len(rows)
        self.row = list(rows)
        self.trunks: dict[int, list[int]] = {}
        last: dict[int, int] = {}
        for maker, reader in links:
            if rows[reader] - rows[maker] <= FAR:
                last[maker] = max(last.get(maker, 0), rows[reader])
        for maker, end in sorted(last.items()):
            for row in range(rows[maker] + 1, end):
                self.trunks.setdefault(maker, []).append(len(self.row))
                self.row.append(row)
        self.above: list[list[int]] = [[] for _ in self.row]
        self.below: list[list[int]] = [[] for _ in self.row]
        for maker, chain in self.trunks.items():
            for a, b in zip([maker, *chain], chain, strict=False):
                self._join(a, b)
        for maker, reader in links:
            distance = rows[reader] - rows[maker]
            if distance <= FAR:
                self._join(self.trunks[maker][distance - 2] if distance > 1 else maker, reader)

    def _join(self, a: int, b: int) -> None:
        self.below[a].append(b)
        self.above[b].append(a)

    def ordered(self) -> list[list[int]]:
        """The places of every row from left to right, sorted by the mean of their neighbours, in sweeps up and down."""
        layers: list[list[int]] = [[] for _ in range(max(self.row, default=-1) + 1)]
        for place, row in enumerate(self.row):
            layers[row].append(place)
        at = [0.0] * len(self.row)
        _number(layers, at)
        best, fewest = [list(layer) for layer in layers], self._crossings(layers, at)
        for sweep in range(_SWEEPS):
            down = sweep % 2 == 0
            for layer in layers if down else reversed(layers):
                near = self.above if down else self.below
                layer.sort(key=lambda place: _mean([at[n] for n in near[place]], at[place]))
                _number([layer], at)
            crossings = self._crossings(layers, at)
            if crossings < fewest:
                best, fewest = [list(layer) for layer in layers], crossings
        return best

    def _crossings(self, layers: Sequence[Sequence[int]], at: Sequence[float]) -> int:
        """Number of crossings between links of neighbouring rows."""
        crossings = 0
        for layer in layers:
            ends = [int(at[b]) for a in layer for b in sorted(self.below[a], key=lambda b: at[b])]
            tree = [0] * (max(ends, default=0) + 2)
            for seen, end in enumerate(ends):
                n, before = end + 1, 0
                while n > 0:
                    before, n = before + tree[n], n & (n - 1)
                crossings += seen - before
                n = end + 1
                while n < len(tree):
                    tree[n], n = tree[n] + 1, n + (n & -n)
        return crossings

    def placed(self, layers: Sequence[Sequence[int]]) -> list[float]:
        """The middle of every place in pixels: near its neighbours, in order, without overlap."""
        x = [0.0] * len(self.row)
        for layer in layers:
            self._spread(layer, [0.0] * len(layer), x)
        for sweep in range(_SWEEPS):
            down = sweep % 2 == 0
            for layer in layers if down else reversed(layers):
                near = self.above if down else self.below
                if sweep == _SWEEPS - 1:
                    wanted = [_mean([x[n] for n in (*self.above[p], *self.below[p])], x[p]) for p in layer]
                else:
                    wanted = [_mean([x[n] for n in near[p]], x[p]) for p in layer]
                self._spread(layer, wanted, x)
        return x

    def _spread(self, layer: Sequence[int], wanted: Sequence[float], x: list[float]) -> None:
        """Positions as near to the wanted ones as the widths allow: least squares by pooling neighbours."""
        offsets, total = [], 0.0
        for n, place in enumerate(layer):
            if n:
                total += (self._width(layer[n - 1]) + self._width(place)) / 2
            offsets.append(total)
        pools: list[tuple[float, float, int]] = []
        for place, want, offset in zip(layer, wanted, offsets, strict=True):
            weight = 1.0 if place < self.count else 2.0
            pool = (weight * (want - offset), weight, 1)
            while pools and pools[-1][0] / pools[-1][1] > pool[0] / pool[1]:
                last = pools.pop()
                pool = (last[0] + pool[0], last[1] + pool[1], last[2] + pool[2])
            pools.append(pool)
        position = 0
        for weighted, weight, size in pools:
            for _ in range(size):
                x[layer[position]] = weighted / weight + offsets[position]
                position += 1

    def _width(self, place: int) -> int:
        return PITCH if place < self.count else LANE


def _number(layers: Sequence[Sequence[int]], at: list[float]) -> None:
    for layer in layers:
        for n, place in enumerate(layer):
            at[place] = n


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
