"""Enumeration of the values of an index, where no formula gives their number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tilec.bounds.einsum.einsum import Rank
from tilec.ir.evaluate import Points, scalar_value
from tilec.ir.expr import Expr


def values(rank: Rank, extents: Mapping[str, int]) -> int:
    """Number of distinct values of an index over all iterations."""
    distinct = np.zeros(1, np.int64)
    for dim, coefficient in rank:
        distinct = np.unique(np.add.outer(distinct, coefficient * np.arange(extents[dim])))
    return len(distinct)


def values_where(rank: Rank, extents: Mapping[str, int], guards: Sequence[Expr]) -> int:
    """Number of distinct values of an index in the iterations in which the guards hold."""
    points = Points({dim: (0, extents[dim]) for dim, _ in rank}, {})
    index = sum((c * points.iterator(dim) for dim, c in rank), np.zeros(points.shape, np.int64))
    holds = np.ones(points.shape, bool)
    for guard in guards:
        holds &= np.asarray(scalar_value(guard, points), bool)
    return len(np.unique(index[holds]))
