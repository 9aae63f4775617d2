"""The least traffic known of a whole graph: dynamic programming over all cuts into runs, at equal capacity.

The paper says nothing of whole graphs.  Here every node belongs to one run, runs go one after the other with the whole
buffer each, and what is cut goes through the backing store.  That is the best known, not a bound: other orders,
contractions side by side that share tiles of an operand, and what the curves of the runs leave out can move less.
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
from tilec.bounds.graph.resident import resident_from
from tilec.ir.graph import Graph

MAPSPACE = (
    "no bound: all cuts of the graph into runs of one contraction, a chain (fusion templates) or none, each with the"
    " whole buffer, or with all results kept whole, and what several nodes read kept or read again; other nodes move"
    " what enters and leaves their run"
)
_PER_DOUBLING = 8
"""Capacities that are looked at, per doubling."""


@dataclass(frozen=True)
class Cut:
    """The runs that a graph falls into."""

    runs: tuple[NodeInterval, ...]

    def __str__(self) -> str:
        resident = [run for run in self.runs if run.resident]
        chains = [len(run.readers) for run in self.runs if len(run.readers) > 1 and not run.resident]
        told = [_several(len(self.runs), "run")]
        told += [f"{_several(len(chains), 'chain')} of up to {max(chains)} contractions"] if chains else []
        told += [f"{len(resident)} with whole tensors kept"] if resident else []
        return ", ".join(told)


def _several(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


@dataclass(frozen=True)
class GraphPoint:
    """A buffer in bytes, and the least traffic known within it with the cut that it takes."""

    buffer_bytes: int
    traffic_bytes: int
    mapping: Cut


@dataclass(frozen=True)
class GraphCurve:
    """Points by rising buffer and falling traffic at the capacities that were looked at.

    `compulsory` bytes enter and leave the graph for sure; `operations` of its contractions count a multiply-add as
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
        """Bytes from which more buffer saves nothing."""
        return self.points[-1].buffer_bytes

    def lower(self, _capacity: int) -> LowerBound:
        """Compulsory traffic: no theorem covers a graph."""
        return LowerBound(self.compulsory, "compulsory")


def graph_curve(graph: Graph, find: Find, ragged: bool = True, capacities: Iterable[int] = ()) -> GraphCurve:
    """The least traffic known of a graph.

    `find` gives the curve of one contraction, `ragged` those of chains; besides eight capacities per doubling,
    `capacities` in bytes are looked at.  Raises UsageError while sizes are symbolic.
    """
    points = graph_points(graph, find, ragged, capacities)
    einsums = Surroundings(graph, graph.nodes).einsums.values()
    operations = 2 * sum(prod(einsum.extents.values()) for einsum in einsums)
    return GraphCurve(MAPSPACE, points, compulsory(graph), operations)


def graph_points(
    graph: Graph, find: Find, ragged: bool = True, capacities: Iterable[int] = ()
) -> tuple[GraphPoint, ...]:
    """The points of `graph_curve`, without what compulsory traffic takes to find."""
    around = _in_order(graph)
    curves = IntervalCurves(around, find, ragged)
    runs = [
        run
        for first in range(len(around.order))
        for find in (intervals_from, resident_from)
        for run in find(first, around)
    ]
    grid = _grid(map(curves.largest, runs), capacities)
    traffic, cuts = _least(runs, curves, grid)
    points: list[GraphPoint] = []
    for column, (size, moved) in enumerate(zip(grid.tolist(), traffic.tolist(), strict=True)):
        if isfinite(moved) and (not points or moved < points[-1].traffic_bytes):
            points.append(GraphPoint(size, int(moved), _cut(runs, cuts[:, column])))
    return tuple(points)


def best_known(graph: Graph, find: Find, capacity: int, known: CurveCache | None = None) -> GraphPoint | None:
    """The least traffic known of a graph within `capacity` bytes: that point of `graph_curve`, found sooner.

    `known` keeps curves for further graphs.  None when nothing fits.  Raises UsageError while sizes are symbolic.
    """
    around = _in_order(graph)
    curves = IntervalCurves(around, find, True, known)
    grid = np.array([capacity], np.int64)
    positions = range(len(around.order))
    runs = [
        run for first in positions for run in (*intervals_from(first, around), *resident_from(first, around, capacity))
    ]
    traffic, cuts = _least(runs, curves, grid)
    if not isfinite(traffic[0]):
        return None
    return GraphPoint(capacity, int(traffic[0]), _cut(runs, cuts[:, 0]))


def _in_order(graph: Graph) -> Surroundings:
    """The nodes of a graph in the order of the runs, with what these share."""
    require_bound(graph)
    contracted = Surroundings(graph, graph.nodes).einsums
    return Surroundings(graph, chained(graph, frozenset(contracted)))


def _grid(largest: Iterable[int], capacities: Iterable[int]) -> Ints:
    """Capacities to look at, rising; beyond the largest useful one nothing changes."""
    end = max(largest, default=1)
    steps = range(_PER_DOUBLING * end.bit_length())
    sizes = {ceil(2.0 ** (step / _PER_DOUBLING)) for step in steps} | {size for size in capacities if size > 0}
    return np.array(sorted({size for size in sizes if size < end} | {end}), np.int64)


def _least(runs: Sequence[NodeInterval], curves: IntervalCurves, grid: Ints) -> tuple[Floats, Ints]:
    """The least sum of costs of runs that cover all positions, and by position the number of the run that ends there.

    All arrays go along the capacities.
    """
    ending: dict[int, list[int]] = {}
    for number, run in enumerate(runs):
        ending.setdefault(run.end, []).append(number)
    best = np.full((max(ending, default=0) + 1, len(grid)), np.inf)
    best[0] = 0
    chosen = np.full(best.shape, -1)
    for end, numbers in sorted(ending.items()):
        last = [runs[number] for number in numbers]
        total = best[[run.first for run in last]] + curves.costs(last, grid)
        chosen[end] = np.array(numbers)[np.argmin(total, axis=0)]
        best[end] = total.min(axis=0)
    return best[-1], chosen


def _cut(runs: Sequence[NodeInterval], chosen: Ints) -> Cut:
    """The runs from the end to the beginning, turned around."""
    found: list[NodeInterval] = []
    end = len(chosen) - 1
    while end:
        found.append(runs[chosen[end]])
        end = found[-1].first
    return Cut(tuple(reversed(found)))
