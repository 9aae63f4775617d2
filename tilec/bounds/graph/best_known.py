"""Best known traffic of a whole graph: dynamic programming over all cuts into intervals of nodes, at equal capacity.

The paper does not cover whole graphs. Here every node belongs to one interval, intervals run one after the other with
the whole buffer each, and tensors between them go through the backing store. The result is the best known traffic, not
a bound: other orders, adjacent contractions that share tiles of an operand, and mappings outside the curves of the
intervals can move less.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, isfinite, prod

import numpy as np

from tilec.bounds.einsum.front import Ints
from tilec.bounds.einsum.lower import LowerBound
from tilec.bounds.graph.compulsory import compulsory
from tilec.bounds.graph.contractions import require_bound
from tilec.bounds.graph.interval_curves import CurveCache, Find, Floats, IntervalCurves
from tilec.bounds.graph.intervals import NodeInterval, Surroundings, intervals_from
from tilec.bounds.graph.order import chained
from tilec.bounds.graph.parallel_curves import FindParallel, ParallelCurves
from tilec.bounds.graph.resident import resident_from
from tilec.ir.graph import Graph

MAPSPACE = (
    "no bound: all cuts of the graph into runs of one contraction, a chain (fusion templates) or none, each with the"
    " whole buffer, or with all results kept whole, and what several nodes read kept or read again; other nodes move"
    " what enters and leaves their run"
)
_PER_DOUBLING = 8
"""Number of capacities evaluated per doubling."""


@dataclass(frozen=True)
class Cut:
    """A partition of a graph into intervals."""

    runs: tuple[NodeInterval, ...]

    def __str__(self) -> str:
        resident = [interval for interval in self.runs if interval.resident]
        chains = [
            len(interval.readers) for interval in self.runs if len(interval.readers) > 1 and not interval.resident
        ]
        parts = [_several(len(self.runs), "run")]
        parts += [f"{_several(len(chains), 'chain')} of up to {max(chains)} contractions"] if chains else []
        parts += [f"{len(resident)} with whole tensors kept"] if resident else []
        return ", ".join(parts)


def _several(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


@dataclass(frozen=True)
class GraphPoint:
    """A buffer in bytes, and the best known traffic within it with its cut."""

    buffer_bytes: int
    traffic_bytes: int
    mapping: Cut


@dataclass(frozen=True)
class GraphCurve:
    """Points by rising buffer and falling traffic at the capacities that were evaluated.

    `compulsory` bytes certainly enter and leave the graph; `operations` of its contractions count a multiply-add as
    two.
    """

    mapspace: str
    points: tuple[GraphPoint, ...]
    compulsory: int
    operations: int

    def at(self, capacity: int) -> GraphPoint | None:
        """The best point within `capacity` bytes; None when nothing fits."""
        fitting = bisect_right(self.points, capacity, key=lambda point: point.buffer_bytes)
        return self.points[fitting - 1] if fitting else None

    @property
    def largest_useful_buffer(self) -> int:
        """Bytes of buffer beyond which traffic does not fall."""
        return self.points[-1].buffer_bytes

    def lower(self, _capacity: int) -> LowerBound:
        """Compulsory traffic: no theorem covers a graph."""
        return LowerBound(self.compulsory, "compulsory")


def graph_curve(graph: Graph, find: Find, ragged: bool = True, capacities: Iterable[int] = ()) -> GraphCurve:
    """The best known traffic of a graph.

    `find` gives the curve of one contraction, `ragged` those of chains; `capacities` in bytes are evaluated besides
    eight per doubling. Raises UsageError while sizes are symbolic.
    """
    points = graph_points(graph, find, ragged, capacities)
    einsums = Surroundings(graph, graph.nodes).einsums.values()
    operations = 2 * sum(prod(einsum.extents.values()) for einsum in einsums)
    return GraphCurve(MAPSPACE, points, compulsory(graph), operations)


def graph_points(
    graph: Graph, find: Find, ragged: bool = True, capacities: Iterable[int] = ()
) -> tuple[GraphPoint, ...]:
    """The points of `graph_curve`, without the time that compulsory traffic takes."""
    around = _in_order(graph)
    curves = IntervalCurves(around, find, ragged)
    intervals = [
        interval
        for first in range(len(around.order))
        for find in (intervals_from, resident_from)
        for interval in find(first, around)
    ]
    grid = _grid(map(curves.largest, intervals), capacities)
    traffic, cuts = _least(intervals, curves, grid)
    points: list[GraphPoint] = []
    for column, (size, moved) in enumerate(zip(grid.tolist(), traffic.tolist(), strict=True)):
        if isfinite(moved) and (not points or moved < points[-1].traffic_bytes):
            points.append(GraphPoint(size, int(moved), _cut(intervals, cuts[:, column])))
    return tuple(points)


def best_known(graph: Graph, find: Find, capacity: int, known: CurveCache | None = None) -> GraphPoint | None:
    """The best known traffic of a graph within `capacity` bytes: a point of `graph_curve`, computed faster.

    `known` caches curves across graphs. None when nothing fits. Raises UsageError while sizes are symbolic.
    """
    around = _in_order(graph)
    curves = IntervalCurves(around, find, True, known)
    positions = range(len(around.order))
    intervals = [
        interval
        for first in positions
        for interval in (*intervals_from(first, around), *resident_from(first, around, capacity))
    ]
    return _best_cut(intervals, curves, capacity)


def parallel_known(
    graph: Graph, find: FindParallel, capacity: int, units: int, known: CurveCache | None = None
) -> GraphPoint | None:
    """The best known traffic of all `units` together, each with `capacity` bytes, where the work of every interval is
    cut into tasks for them (`parallel_curves`). None when nothing fits. Raises UsageError while sizes are symbolic."""
    around = _in_order(graph)
    curves = ParallelCurves(around, find, units, capacity, known)
    intervals = [each for first in range(len(around.order)) for each in intervals_from(first, around)]
    return _best_cut(intervals, curves, capacity)


def _best_cut(intervals: Sequence[NodeInterval], curves: IntervalCurves, capacity: int) -> GraphPoint | None:
    traffic, cuts = _least(intervals, curves, np.array([capacity], np.int64))
    if not isfinite(traffic[0]):
        return None
    return GraphPoint(capacity, int(traffic[0]), _cut(intervals, cuts[:, 0]))


def _in_order(graph: Graph) -> Surroundings:
    """The nodes of a graph in the order of the intervals, with the data that intervals share."""
    require_bound(graph)
    contracted = Surroundings(graph, graph.nodes).einsums
    return Surroundings(graph, chained(graph, frozenset(contracted)))


def _grid(largest: Iterable[int], capacities: Iterable[int]) -> Ints:
    """Capacities to evaluate, rising; nothing changes beyond the largest useful one."""
    end = max(largest, default=1)
    steps = range(_PER_DOUBLING * end.bit_length())
    sizes = {ceil(2.0 ** (step / _PER_DOUBLING)) for step in steps} | {size for size in capacities if size > 0}
    return np.array(sorted({size for size in sizes if size < end} | {end}), np.int64)


def _least(intervals: Sequence[NodeInterval], curves: IntervalCurves, grid: Ints) -> tuple[Floats, Ints]:
    """The least sum of costs of intervals that cover all positions, and by position the number of the interval that
    ends there. All arrays have one column per capacity."""
    ending: dict[int, list[int]] = {}
    for number, interval in enumerate(intervals):
        ending.setdefault(interval.end, []).append(number)
    best = np.full((max(ending, default=0) + 1, len(grid)), np.inf)
    best[0] = 0
    chosen = np.full(best.shape, -1)
    for end, numbers in sorted(ending.items()):
        last = [intervals[number] for number in numbers]
        total = best[[interval.first for interval in last]] + curves.costs(last, grid)
        chosen[end] = np.array(numbers)[np.argmin(total, axis=0)]
        best[end] = total.min(axis=0)
    return best[-1], chosen


def _cut(intervals: Sequence[NodeInterval], chosen: Ints) -> Cut:
    """The cut, collected from the end to the beginning."""
    parts: list[NodeInterval] = []
    end = len(chosen) - 1
    while end:
        parts.append(intervals[chosen[end]])
        end = parts[-1].first
    return Cut(tuple(reversed(parts)))
