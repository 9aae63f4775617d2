"""Ways to split a reduction into about so many partial results: which elements each of them takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilec.ir.expr import TensorExpr, accesses, constant_value
from tilec.ir.graph import Graph
from tilec.scheduler.analysis.access import stride
from tilec.scheduler.analysis.contraction import is_contraction
from tilec.scheduler.graph_passes.partial_reductions import AxisSplit, ReductionSplit


def splits_into(expr: TensorExpr, extents: Sequence[int], parts: int, graph: Graph) -> Iterator[ReductionSplit]:
    """Splits of a reduction, whose reduce iterators have some extents, into about so many partial results.

    They take runs and, unless it is a contraction, whose operands are loaded in blocks, every so many elements; these
    come first where neighbours along the last reduce iterator are neighbours in memory.
    """
    runs = _axes(expr, extents, range(len(extents)), parts, interleaved=False)
    turns = _axes(expr, extents, range(len(extents) - 1, -1, -1), parts, interleaved=True)
    both = (runs,) if is_contraction(expr) else (turns, runs) if _in_line(expr, graph) else (runs, turns)
    yield from (split for split in both if split)


def _in_line(expr: TensorExpr, graph: Graph) -> bool:
    """Whether neighbours along the last reduce iterator are neighbours in an operand."""
    last = expr.reduce[-1]
    known = [access for access in accesses(expr) if access.tensor in graph.tensors]
    steps = (stride(a, graph.tensors[a.tensor].shape, last, expr.domain[last]) for a in known)
    return any(step is not None and constant_value(step) == 1 for step in steps)


def _axes(
    expr: TensorExpr, extents: Sequence[int], order: Sequence[int], parts: int, *, interleaved: bool
) -> ReductionSplit:
    """Reduce iterators in an order, whole ones as long as there are parts enough, then some of the next one's."""
    axes: list[AxisSplit] = []
    for position in order:
        extent = extents[position]
        if parts < 2 or extent == 1:
            continue
        if extent <= parts * 3 // 2:
            axes.append(AxisSplit(position))
            parts = -(-parts // extent)
            continue
        if constant_value(expr.domain[expr.reduce[position]]) is not None:
            axes.append(AxisSplit(position, number_of_parts(extent, parts), interleaved))
        break
    return tuple(sorted(axes, key=lambda axis: axis.position))


def number_of_parts(extent: int, parts: int) -> int:
    """The divisor of an extent next to a number of parts, within a factor of two; else as many of equal length, a
    shorter last one, that none is empty."""
    near = [d for d in range(max(2, -(-parts // 2)), min(2 * parts, extent // 2) + 1) if extent % d == 0]
    if near:
        return min(near, key=lambda d: max(d / parts, parts / d))
    return -(-extent // -(-extent // parts))
