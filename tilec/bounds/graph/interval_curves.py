"""Curves of runs: of a contraction, or a chain of them, and what surrounds it; equal ones are found once."""

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
    """Curves that were found before, of contractions and of runs, by what they depend on; of any number of graphs."""

    singles: dict[tuple[str, ...], Curve] = field(default_factory=dict)
    runs: dict[object, tuple[Ints, Ints]] = field(default_factory=dict)


class IntervalCurves:
    """What runs of a graph move at capacities; `find` gives curves of contractions, `ragged` those of chains.

    `known` holds curves of the same kinds.
    """

    def __init__(self, around: Surroundings, find: Find, ragged: bool, known: CurveCache | None = None) -> None:
        self._around = around
        self._find = find
        self._ragged = ragged
        self._known = known or CurveCache()
        self._costs: dict[object, Floats] = {}
        self._signatures: dict[str, tuple[str, ...]] = {}

    def largest(self, run: NodeInterval) -> int:
        """Bytes from which more buffer saves the run nothing."""
        if run.resident or not run.readers:
            return run.least
        buffer, _ = self._curve(run)
        return int(buffer[-1]) if len(buffer) else 0

    def costs(self, runs: Sequence[NodeInterval], grid: Ints) -> Floats:
        """Bytes that runs move, a row per run, at capacities, a column each; infinite where they do not fit."""
        side = np.array([float(run.side) for run in runs])
        moved = np.zeros((len(runs), len(grid)))
        for row, run in zip(moved, runs, strict=True):
            if run.readers and not run.resident:
                row[:] = self._at(run, grid)
        fits = grid >= np.array([run.least for run in runs])[:, None]
        return np.where(fits, moved + side[:, None], np.inf)

    def _at(self, run: NodeInterval, grid: Ints) -> Floats:
        """Bytes that the curve of a run says at capacities."""
        key = self._key(run)
        if key not in self._costs:
            buffer, traffic = self._curve(run)
            self._costs[key] = np.append(np.inf, traffic)[np.searchsorted(buffer, grid, side="right")]
        return self._costs[key]

    def _key(self, run: NodeInterval) -> object:
        if run.chain is None or len(run.readers) == 1:
            return self._signature(run.readers[0].node), run.rows
        return run.chain.unnamed, run.rows

    def _signature(self, node: Node) -> tuple[str, ...]:
        if node.name not in self._signatures:
            self._signatures[node.name] = signature(node, self._around.tensors)
        return self._signatures[node.name]

    def _curve(self, run: NodeInterval) -> tuple[Ints, Ints]:
        key = self._key(run)
        if key not in self._known.runs:
            points = self._single(run) if len(run.readers) == 1 else self._fused(run)
            pairs = np.array(points, np.int64).reshape(-1, 2)
            self._known.runs[key] = pairs[:, 0], pairs[:, 1]
        return self._known.runs[key]

    def _single(self, run: NodeInterval) -> list[tuple[int, int]]:
        (reader,) = run.readers
        key = self._signature(reader.node)
        if key not in self._known.singles:
            self._known.singles[key] = self._find(reader.einsum)
        whole = _columns(reader, run.chain) if run.rows and run.chain else frozenset()
        extents = reader.einsum.extents
        return [
            (point.buffer_bytes, point.traffic_bytes)
            for point in self._known.singles[key].points
            if all(point.mapping.tiles[dim] == extents[dim] for dim in whole)
        ]

    def _fused(self, run: NodeInterval) -> list[tuple[int, int]]:
        assert run.chain is not None
        last = run.chain.operators[-1]
        return [
            (point.buffer_bytes, point.traffic_bytes)
            for point in chain_curve(run.chain, ragged=self._ragged).points
            if not run.rows or point.segments[0].steps[-1].tiles["n"] == last.n
        ]


def _columns(reader: Reader, chain: ProductChain) -> frozenset[str]:
    """Iterators of a contraction that make up rows of its output."""
    return reader.columns | (reader.shared if chain.operators[0].heads > 1 else frozenset())
