"""Unrolling of loops: a budget of nodes, slices of scanned inputs, stacks of the iterations' results."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilec.importer.control.region import Region
from tilec.importer.formula import formula
from tilec.importer.named_values import NamedValue
from tilec.importer.names import identifier
from tilec.importer.operator import Op
from tilec.importer.ops.movement import concatenated
from tilec.importer.value import Value
from tilec.importer.weights import Stored
from tilec.ir.expr import Const, Expr
from tilec.ir.types import TTYPES, numpy_dtype

MAX_NODES = 2000
"""Maximal number of the model's nodes that a loop is unrolled to."""

MAX_STACKED = 8
"""Maximal number of results stacked by one expression; its scheduling time grows with the square."""


class Budget:
    """Counter of the nodes that one loop is unrolled to."""

    def __init__(self, region: Region) -> None:
        self._region = region
        self._start = region.translator.inner

    def spend(self, done: int, trips: int | None) -> None:
        """Raise UnsupportedError when the nodes so far, or those of all `trips` iterations (None: unknown), exceed the
        budget."""
        used = self._region.translator.inner - self._start
        total = used if trips is None else max(used, used * trips // done)
        if total <= MAX_NODES:
            return
        count = f"more than {done}" if trips is None else str(trips)
        raise self._region.unsupported(
            f"unrolling {count} iterations takes {total} nodes or more, the limit is {MAX_NODES}",
            "The loop runs in the fallback; fewer iterations or a smaller body compile.",
        )


def known(region: Region, part: str, value: int | bool, rank: int = 0) -> Value:
    """One integer (i64) or bool as a tensor."""
    ttype = "bool" if isinstance(value, bool) else "i64"
    stored = Stored(np.full((1,) * rank, value, numpy_dtype(ttype)), ttype)
    return region.translator.builder.constant(identifier(f"{region.path}/{part}", "t"), stored)


def slice_of(region: Region, x: Value, place: dict[int, int], part: str) -> Value:
    """`x` at fixed indices (dimension -> index) of some dimensions, without these."""
    op = region.op
    axes = op.axes_of([extent for d, extent in enumerate(x.shape) if d not in place])
    rest = iter(axes)
    index: list[Expr] = [Const(place[d]) if d in place else next(rest).var for d in range(x.rank)]
    name = identifier(f"{region.path}/{part}", "t")
    return op.builder.emit(name, axes, x.at(index), x.ttype, region.origin)


def stacked(op: Op, parts: Sequence[Value], axis: int = 0, part: str = "", output: int = 0) -> Value:
    """Tensors of one type and shape (at least one) along a new dimension. Raises ShapeError and UndecidedError."""
    first = parts[0]
    axis = op.axis(axis, first.rank + 1)
    for other in parts[1:]:
        if other.rank != first.rank or other.ttype != first.ttype:
            raise op.invalid("the iterations give results of different types or ranks, which cannot be stacked")
        for d in range(first.rank):
            op.require_same(first.shape[d], other.shape[d], f"dimension {d} of what the iterations give")
    if len(parts) > MAX_STACKED:
        groups = [stacked(op, group, axis, f"{part}part{n}", output) for n, group in enumerate(_groups(parts))]
        while len(groups) > MAX_STACKED:
            groups = [
                concatenated(op, group, axis, f"{part}group{n}", output) for n, group in enumerate(_groups(groups))
            ]
        return concatenated(op, groups, axis, part, output)
    axes = op.axes_of([*first.shape[:axis], Const(len(parts)), *first.shape[axis:]])
    index = [a.var for d, a in enumerate(axes) if d != axis]
    body = _selected([each.access(index) for each in parts], axes[axis].var, 0)
    return op.emit(axes, body, first.ttype, part=part, output=output)


def _groups(parts: Sequence[Value]) -> list[Sequence[Value]]:
    return [parts[start : start + MAX_STACKED] for start in range(0, len(parts), MAX_STACKED)]


def _selected(elements: Sequence[Expr], index: Expr, start: int) -> Expr:
    """`elements[index - start]` by bisection, so that few guards surround each element."""
    if len(elements) == 1:
        return elements[0]
    half = len(elements) // 2
    below, above = _selected(elements[:half], index, start), _selected(elements[half:], index, start + half)
    return formula("where(i < end, below, above)", i=index, end=start + half, below=below, above=above)


def zeros(op: Op, shape: Sequence[Expr], ttype: str, part: str = "", output: int = 0) -> Value:
    """A tensor of zeros."""
    zero: bool | float | int = {"bool": False, "float": 0.0}.get(TTYPES[ttype].kind, 0)
    return op.full(shape, zero, ttype, part, output)


def require_same_kind(region: Region, what: str, before: NamedValue, after: NamedValue) -> None:
    """Raise ConfigError when an iteration changes the type of a value that it carries."""
    if isinstance(before, Value) != isinstance(after, Value):
        raise region.invalid(f"{what} is a tensor only before or only after an iteration")
    if isinstance(before, Value) and isinstance(after, Value) and before.ttype != after.ttype:
        raise region.invalid(f"{what} is {before.ttype} before an iteration, {after.ttype} after it")
