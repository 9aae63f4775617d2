"""How many tasks the work of an Einsum can be cut into."""

from __future__ import annotations

from math import prod

from tilec.bounds.einsum.einsum import Einsum


def most_tasks(einsum: Einsum, whole: frozenset[str] = frozenset()) -> int:
    """The largest number of tasks: an element of the output each, and a part of one reduction where it is cut.

    Iterators in `whole` are not cut.
    """
    cuttable = {dim: extent for dim, extent in einsum.extents.items() if dim not in whole}
    reductions = [cuttable[dim] for dim in einsum.plain & cuttable.keys() - einsum.output.dims]
    return prod(cuttable[dim] for dim in cuttable if dim in einsum.output.dims) * max(reductions, default=1)
