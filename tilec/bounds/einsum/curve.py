"""Ski-slope curves: the least traffic at every buffer capacity, as a Pareto front (Orojenesis, figure 1)."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple

from tilec.bounds.einsum.mapping import Mapping


class Point(NamedTuple):
    """A Pareto-optimal mapping: `buffer_bytes`, and the `accesses` (words) and `traffic_bytes` it moves."""

    buffer_bytes: int
    accesses: int
    traffic_bytes: int
    mapping: Mapping


@dataclass(frozen=True)
class Curve:
    """Points by rising buffer and falling traffic, the best of `mappings` mappings of the space `mapspace`."""

    mapspace: str
    mappings: int
    points: tuple[Point, ...]

    def at(self, capacity: int) -> Point | None:
        """The best point within `capacity` bytes; None when no mapping fits."""
        fitting = bisect_right(self.points, capacity, key=lambda point: point.buffer_bytes)
        return self.points[fitting - 1] if fitting else None

    @property
    def largest_useful_buffer(self) -> int:
        """Bytes of buffer beyond which traffic does not fall (maximal effectual buffer; Orojenesis, gap 1)."""
        return self.points[-1].buffer_bytes
