"""Curves of intervals of a graph whose work is cut into tasks for several units, each with a buffer of its own.

A contraction alone has the mappings of `parallel`, in as many tasks as there are units or, where it has fewer, as it
can have. A chain has those of its fusion templates in which the units share its rows. Nothing stays resident: results
that one unit keeps are not in the buffers of others.
"""

from __future__ import annotations

from typing import Protocol

from tilec.bounds.chain.segments import parallel_pairs
from tilec.bounds.einsum.curve import Curve
from tilec.bounds.einsum.einsum import Einsum
from tilec.bounds.einsum.task_limit import most_tasks
from tilec.bounds.graph.interval_curves import CurveCache, IntervalCurves, columns
from tilec.bounds.graph.intervals import NodeInterval, Surroundings


class FindParallel(Protocol):
    """The curve of one contraction in at least `units` tasks within `capacity` bytes; `whole` iterators stay uncut."""

    def __call__(self, einsum: Einsum, units: int, capacity: int, whole: frozenset[str]) -> Curve:
        """Find it."""
        ...


class ParallelCurves(IntervalCurves):
    """Traffic of intervals of a graph in tasks for `units`, within `capacity` bytes of each."""

    def __init__(
        self, around: Surroundings, find: FindParallel, units: int, capacity: int, known: CurveCache | None = None
    ) -> None:
        super().__init__(around, lambda einsum: find(einsum, units, capacity, frozenset()), True, known)
        self._find_parallel = find
        self._units = units
        self._capacity = capacity

    def _key(self, interval: NodeInterval) -> object:
        return super()._key(interval), self._units, self._capacity

    def _single(self, interval: NodeInterval) -> list[tuple[int, int]]:
        (reader,) = interval.readers
        whole = columns(reader, interval.chain) if interval.rows and interval.chain else frozenset[str]()
        units = min(self._units, most_tasks(reader.einsum, whole))
        points = self._find_parallel(reader.einsum, units, self._capacity, whole).points
        return [(point.buffer_bytes, point.traffic_bytes) for point in points]

    def _fused(self, interval: NodeInterval) -> list[tuple[int, int]]:
        assert interval.chain is not None
        return parallel_pairs(interval.chain, self._units, interval.rows)
