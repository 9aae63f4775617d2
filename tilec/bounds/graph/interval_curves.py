"""Curves of intervals: of a contraction, or a chain of them, and the nodes around it; equal ones are computed once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tilec.bounds.chain.chain import ProductChain
from tilec.bounds.chain.segments import chain_curve
from tilec.bounds.einsum.curve import Curve
from tilec.bounds.einsum.einsum import Einsum
from tilec.bounds.einsum.front import Ints
from tilec.bounds.graph.contractions import signature
from tilec.bounds.graph.intervals import NodeInterval, Surroundings
from tilec.bounds.graph.links import Reader
from tilec.ir.graph import Node

Floats = NDArray[np.float64]
Find = Callable[[Einsum], Curve]


@dataclass(frozen=True)
class CurveCache:
    """Curves of contractions and of intervals by content, for any number of graphs."""

    singles: dict[tuple[str, ...], Curve] = field(default_factory=dict)
    runs: dict[object, tuple[Ints, Ints]] = field(default_factory=dict)


class IntervalCurves:
    """Traffic of intervals of a graph at capacities; `find` gives curves of contractions, `ragged` those of chains.
    `known` has curves of the same kinds."""

    def __init__(self, around: Surroundings, find: Find, ragged: bool, known: CurveCache | None = None) -> None:
        self._around = around
        self._find = find
        self._ragged = ragged
        self._known = known or CurveCache()
        self._costs: dict[object, Floats] = {}
        self._signatures: dict[str, tuple[str, ...]] = {}

    def largest(self, interval: NodeInterval) -> int:
        """Bytes of buffer beyond which the interval's traffic does not fall."""
        if interval.resident or not interval.readers:
            return interval.least
        buffer, _ = self._curve(interval)
        return int(buffer[-1]) if len(buffer) else 0

    def costs(self, intervals: Sequence[NodeInterval], grid: Ints) -> Floats:
        """Bytes that intervals move, a row per interval, at capacities, a column each; infinite where they do not
        fit."""
        side = np.array([float(interval.side) for interval in intervals])
        moved = np.zeros((len(intervals), len(grid)))
        for row, interval in zip(moved, intervals, strict=True):
            if interval.readers and not interval.resident:
                row[:] = self._at(interval, grid)
        fits = grid >= np.array([interval.least for interval in intervals])[:, None]
        return np.where(fits, moved + side[:, None], np.inf)

    def _at(self, interval: NodeInterval, grid: Ints) -> Floats:
        """Bytes of the curve of an interval at capacities."""
        key = self._key(interval)
        if key not in self._costs:
            buffer, traffic = self._curve(interval)
            self._costs[key] = np.append(np.inf, traffic)[np.searchsorted(buffer, grid, side="right")]
        return self._costs[key]

    def _key(self, interval: NodeInterval) -> object:
        if interval.chain is None or len(interval.readers) == 1:
            return self._signature(interval.readers[0].node), interval.rows
        return interval.chain.unnamed, interval.rows

    def _signature(self, node: Node) -> tuple[str, ...]:
        if node.name not in self._signatures:
            self._signatures[node.name] = signature(node, self._around.tensors)
        return self._signatures[node.name]

    def _curve(self, interval: NodeInterval) -> tuple[Ints, Ints]:
        key = self._key(interval)
        if key not in self._known.runs:
            points = self._single(interval) if len(interval.readers) == 1 else self._fused(interval)
            pairs = np.array(points, np.int64).reshape(-1, 2)
            self._known.runs[key] = pairs[:, 0], pairs[:, 1]
        return self._known.runs[key]

    def _single(self, interval: NodeInterval) -> list[tuple[int, int]]:
        (reader,) = interval.readers
        key = self._signature(reader.node)
        if key not in self._known.singles:
            self._known.singles[key] = self._find(reader.einsum)
        whole = columns(reader, interval.chain) if interval.rows and interval.chain else frozenset()
        extents = reader.einsum.extents
        return [
            (point.buffer_bytes, point.traffic_bytes)
            for point in self._known.singles[key].points
            if all(point.mapping.tiles[dim] == extents[dim] for dim in whole)
        ]

    def _fused(self, interval: NodeInterval) -> list[tuple[int, int]]:
        assert interval.chain is not None
        last = interval.chain.operators[-1]
        return [
            (point.buffer_bytes, point.traffic_bytes)
            for point in chain_curve(interval.chain, ragged=self._ragged).points
            if not interval.rows or point.segments[0].steps[-1].tiles["n"] == last.n
        ]


def columns(reader: Reader, chain: ProductChain) -> frozenset[str]:
    """Iterators of a contraction that form rows of its output."""
    return reader.columns | (reader.shared if chain.operators[0].heads > 1 else frozenset())
