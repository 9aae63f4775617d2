"""Windows of a group for many candidate tiles at once: Propagate from the final node back, over arrays (W04, W08)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tilec.ir.expr import Access, Const, Expr, TensorExpr, accesses, operands
from tilec.ir.graph import Graph, Node
from tilec.ir.intervals import Candidates
from tilec.ir.propagate import propagate
from tilec.ir.types import TTYPES
from tilec.scheduler.access import is_data_dependent

Ints = NDArray[np.int64]
Box = Mapping[str, tuple[Ints, Ints]]
Windows = Mapping[str, tuple[tuple[Ints, Ints], ...]]
Shapes = Mapping[str, tuple[Expr, ...]]


def element_bytes(ttype: str) -> int:
    """Bytes of one element, at least 1."""
    return max(1, TTYPES[ttype].bits // 8)


def shapes_of(exprs: Iterable[TensorExpr], graph: Graph) -> dict[str, tuple[Expr, ...]]:
    """Shapes of the tensors that expressions make and read."""
    return {tensor: graph.tensors[tensor].shape for expr in exprs for tensor in (expr.tensor, *operands(expr))}


def tile_box(expr: TensorExpr, sizes: Mapping[str, Ints], steps: Mapping[str, Ints], numbers: Candidates) -> Box:
    """The iterators of a node for one tile at the origin: `sizes` and `steps` where given, else the whole extent."""
    box: dict[str, tuple[Ints, Ints]] = {}
    for iterator, extent in expr.domain.items():
        whole = numbers.size(extent)
        size = sizes.get(iterator, steps.get(iterator, whole))
        box[iterator] = (np.zeros_like(size), np.minimum(size, whole))
    return box


def windows(
    nodes: Sequence[Node],
    sizes: Mapping[str, Ints],
    steps: Mapping[str, Ints],
    shapes: Mapping[str, tuple[Expr, ...]],
    numbers: Candidates,
    follow: Callable[[TensorExpr, Box, Shapes, Candidates], Windows] = propagate,
) -> dict[str, Ints]:
    """Elements of the window of every tensor that a group touches, for candidate tiles of its final node.

    `steps` are reduce steps by iterator, of whichever node has it.  Data-dependent reads count one element for
    each point that reads.  `follow` may remember what Propagate says of a node.
    """
    made = {node.name: node.expr for node in nodes}
    boxes: dict[str, Box] = {nodes[-1].name: tile_box(nodes[-1].expr, sizes, steps, numbers)}
    found: dict[str, Ints] = {}
    gathered: dict[str, Ints] = {}
    for node in reversed(nodes):
        if node.name not in boxes:
            continue
        box = boxes[node.name]
        found[node.name] = volume([box[i] for i in node.expr.spatial])
        by_data = {a.tensor for a in accesses(node.expr) if is_data_dependent(a)}
        for tensor, window in follow(node.expr, box, shapes, numbers).items():
            if tensor in by_data:
                points = volume(list(box.values()))
                gathered[tensor] = np.minimum(points, volume(list(window)))
            producer = made.get(tensor)
            if producer is None:
                found[tensor] = np.maximum(found.get(tensor, np.int64(0)), volume(list(window)))
                continue
            hull = dict(zip(producer.spatial, window, strict=True))
            if tensor in boxes:
                old = boxes[tensor]
                hull = {i: (np.minimum(old[i][0], lo), np.maximum(old[i][1], hi)) for i, (lo, hi) in hull.items()}
            boxes[tensor] = {**tile_box(producer, {}, steps, numbers), **hull}
    return found | gathered


def volume(intervals: Sequence[tuple[Ints, Ints]]) -> Ints:
    """Elements of a box of intervals."""
    total: Ints = np.asarray(1, np.int64)
    for lo, hi in intervals:
        total = total * np.maximum(hi - lo, 0)
    return total


def leaves(access: Access, expr: TensorExpr, shape: Sequence[Expr], numbers: Candidates) -> bool:
    """Whether an access reaches outside its tensor somewhere, so that only a guard keeps it inside.

    A data-dependent index never does; what it is read from does not matter.
    """
    box = tile_box(expr, {}, {}, numbers)
    plain = TensorExpr(expr.tensor, expr.spatial, expr.reduce, expr.extents, access)
    inner = {a.tensor: (Const(1),) * len(a.index) for a in accesses(access)}
    window = propagate(plain, box, {**inner, access.tensor: tuple(shape)}, numbers)[access.tensor]
    return any(bool(lo < 0) or bool(hi > numbers.size(n)) for (lo, hi), n in zip(window, shape, strict=True))
