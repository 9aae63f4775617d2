"""`oro`: the curve of the Orojenesis paper, from all perfect tilings and loop orders (Snowcat; Orojenesis, figure
4)."""

from __future__ import annotations

from math import isqrt

from tilec.bounds.einsum.curve import Curve
from tilec.bounds.einsum.einsum import Einsum
from tilec.bounds.einsum.loops import Space
from tilec.bounds.einsum.mapspaces import MAPSPACES
from tilec.bounds.einsum.search import count_mappings, pareto


def divisors(extent: int) -> list[int]:
    """All divisors, rising."""
    low = [d for d in range(1, isqrt(extent) + 1) if extent % d == 0]
    return low + [extent // d for d in reversed(low) if d * d != extent]


def oro(einsum: Einsum) -> Curve:
    """The least traffic over all perfect tilings and loop orders, for every buffer capacity.

    Not a lower bound: ragged tiles, uneven retention and snake order can move less. Raises UnsupportedError where the
    counts exceed 64 bits.
    """
    candidates = {dim: divisors(extent) for dim, extent in einsum.extents.items()}
    mappings = count_mappings([len(sizes) for sizes in candidates.values()])
    return Curve(MAPSPACES["oro"], mappings, pareto(einsum, candidates, Space()))
