"""Compulsory traffic of a graph with any buffer: inputs and constants that its outputs certainly need, and the outputs.

From the outputs backwards, every node gives the box of each operand that it certainly reads for the needed box of its
result. Sets that are no boxes, or that depend on data, are not certain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilec.bounds.einsum.front import Ints
from tilec.bounds.einsum.guards import guarded
from tilec.bounds.graph.contractions import bits_of, bytes_of
from tilec.ir.evaluate import Points, integer, scalar_value
from tilec.ir.expr import Access, Expr, TensorExpr, Var, accesses, constant_value, variables
from tilec.ir.graph import Graph, Tensor

_MAX_POINTS = 1 << 22
"""Maximal number of points at which the indices of an access are evaluated together."""

Box = tuple[tuple[int, int], ...]
"""[low, high) of every dimension."""


def compulsory(graph: Graph) -> int:
    """Bytes that enter and leave a graph with any buffer."""
    _, entering = _certain(graph)
    moved = (-(-count * bits_of(graph.tensors[name]) // 8) for name, count in entering.items())
    return sum(bytes_of(graph.tensors[name]) for name in _results(graph)) + sum(moved)


def wholly_needed(graph: Graph) -> frozenset[str]:
    """The nodes of which the outputs of a graph certainly need every element."""
    sure, _ = _certain(graph)
    return frozenset(name for name, box in sure.items() if _volume(box) == _volume(_whole(graph.tensors[name])))


def _results(graph: Graph) -> set[str]:
    computed = {node.name for node in graph.nodes}
    return {port.tensor for port in graph.outputs if port.tensor in computed}


def _certain(graph: Graph) -> tuple[dict[str, Box], dict[str, int]]:
    """The boxes of nodes' results that the outputs certainly need, and how many elements of tensors from outside."""
    computed = {node.name for node in graph.nodes}
    sure = {name: _whole(graph.tensors[name]) for name in _results(graph)}
    entering: dict[str, int] = {}
    for node in reversed(graph.nodes):
        for name, count, box in _reads(node.expr, sure.get(node.name)):
            if name not in computed:
                entering[name] = max(entering.get(name, 0), count)
            elif box is not None and _volume(box) > _volume(sure.get(name)):
                sure[name] = box
    return sure, entering


def _whole(tensor: Tensor) -> Box:
    return tuple((0, constant_value(extent) or 0) for extent in tensor.shape)


def _volume(box: Box | None) -> int:
    return prod(high - low for low, high in box) if box is not None else -1


def _reads(expr: TensorExpr, box: Box | None) -> Iterator[tuple[str, int, Box | None]]:
    """Elements that an expression certainly reads for a box of its results: tensor, their number, their box if they
    form one."""
    if box is None or _volume(box) == 0 or 0 in map(constant_value, expr.extents):
        return
    summed = ((0, constant_value(extent) or 0) for extent in expr.extents[len(expr.spatial) :])
    ranges = dict(zip(expr.iterators, (*box, *summed), strict=True))
    for access, guards in guarded(expr.value):
        yield access.tensor, *_elements(access, guards, ranges)


def _elements(access: Access, guards: Sequence[Expr], ranges: Mapping[str, tuple[int, int]]) -> tuple[int, Box | None]:
    """Number of elements that an access reads, and their box; 0 where they depend on data or on too many points."""
    box: dict[int, tuple[int, int]] = {}
    count, used = 1, 0
    if any(accesses(part) for part in (*access.index, *guards)):
        return 0, None
    for positions, names in _groups(access.index):
        restricting = [guard for guard in guards if variables(guard) and variables(guard) <= names]
        used += len(restricting)
        if not names <= ranges.keys() or prod(high - low for low, high in (ranges[n] for n in names)) > _MAX_POINTS:
            return 0, None
        index = tuple(access.index[position] for position in positions)
        values, sides = _values(index, tuple(restricting), tuple((name, *ranges[name]) for name in sorted(names)))
        if not values:
            return 0, None
        count *= values
        box |= dict(zip(positions, sides, strict=True))
    if used < len(guards):
        return 0, None
    full = tuple(box[position] for position in range(len(access.index)))
    return count, full if _volume(full) == count else None


def _groups(index: Sequence[Expr]) -> list[tuple[list[int], frozenset[str]]]:
    """Positions of indices that share iterators, with these."""
    groups: list[tuple[list[int], frozenset[str]]] = []
    for position, each in enumerate(index):
        positions, names = [position], variables(each)
        for group in [group for group in groups if group[1] & names]:
            groups.remove(group)
            positions, names = group[0] + positions, names | group[1]
        groups.append((positions, names))
    return groups


@lru_cache(maxsize=1024)
def _values(
    index: tuple[Expr, ...], guards: tuple[Expr, ...], ranges: tuple[tuple[str, int, int], ...]
) -> tuple[int, Box]:
    """Number of distinct values that some indices take together where the guards hold, and the box around them.

    `ranges` are iterators with their [lo, hi).
    """
    if len(index) == 1 and isinstance(index[0], Var) and not guards:
        ((_, low, high),) = ranges
        return high - low, ((low, high),)
    sides = {name: (low, high) for name, low, high in ranges}
    points = Points(sides, {})
    iterators = {name: points.iterator(name) for name in sides}
    holds: NDArray[np.bool_] = np.ones(points.shape, bool)
    for guard in guards:
        holds &= np.asarray(scalar_value(guard, points), bool)
    rows = [np.broadcast_to(integer(each, iterators), points.shape)[holds] for each in index]
    if not rows[0].size:
        return 0, ()
    box = tuple((int(row.min()), int(row.max()) + 1) for row in rows)
    return _different(rows, box), box


def _different(rows: Sequence[Ints], box: Box) -> int:
    """Number of distinct columns of some rows, by marking them in the box around them, or by sorting."""
    if _volume(box) > _MAX_POINTS:
        return int(np.unique(np.stack(rows), axis=1).shape[1])
    marked = np.zeros(_volume(box), bool)
    marked[np.ravel_multi_index([row - low for row, (low, _) in zip(rows, box, strict=True)],
                                [high - low for low, high in box])] = True  # fmt: skip
    return int(np.count_nonzero(marked))
