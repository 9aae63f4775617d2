"""Batches: one expression evaluated for many units at once, with the lane as an additional first axis.

All boxes of a batch have the same widths, so an iterator is a number from 0 plus an origin that depends on the lane. An
affine access that stays inside the window of every lane becomes an access to a copy of the elements that the lanes
read; any other indexes the windows lane by lane.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tilec.ir.evaluate import Points, TensorWindow, affine, scalar_value
from tilec.ir.expr import Access, Binary, Const, Expr, Reduce, TensorExpr, Var, rebuild
from tilec.ir.numpy_scalars import Array
from tilec.machine.memory import BufferInstances, BufferView, take

LANE = "@lane"
_ROW = "@row "


@dataclass(frozen=True, slots=True)
class Read:
    """Source of an access of a batch: the buffer, its unit for every lane, extents of every lane's window ([lanes,
    rank], None where all indices are known to be inside), and the mask of written elements (None: all). `hull` are the
    first and last index that the access has in every lane, the last exclusive, where it is known to be inside."""

    held: BufferInstances
    rows: Array
    inside: Array | None
    written: Array | None
    hull: tuple[Array, Array] | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """An expression with the lanes as its first iterator, the points at which it is evaluated, and its reads by the
    tensor name of their access."""

    expr: TensorExpr
    points: Points
    reads: Mapping[str, Read]


def batch(
    expr: TensorExpr,
    lanes: int,
    origin: Mapping[str, Array],
    widths: Mapping[str, int],
    variables: Mapping[str, Any],
    operands: Mapping[str, BufferView],
    by_place: Collection[str],
) -> Batch:
    """`expr` over boxes of these `widths` that begin at `origin` (iterator -> [lanes]).

    `variables` are numbers, or arrays with one for each lane; `operands` maps a tensor to its buffer and each lane's
    unit of it. Tensors in `by_place` are never copied: every access to one has indices into its window.
    """
    values = {**variables, **{_at(i): begin for i, begin in origin.items()}}
    rewriter = _Rewriter(origin.keys(), widths, operands, by_place, values)
    value = rewriter.rewritten(expr.value)
    body = replace(expr.body, body=value) if isinstance(expr.body, Reduce) else value
    points = Points(
        {LANE: (0, lanes), **{i: (0, widths[i]) for i in expr.iterators}}, rewriter.windows, rewriter.values
    )
    whole = TensorExpr(expr.tensor, (LANE, *expr.spatial), expr.reduce, (Const(1), *expr.extents), body)
    return Batch(whole, points, rewriter.reads)


def _at(iterator: str) -> str:
    """The variable with an iterator's origin."""
    return f"@{iterator}"


@dataclass(slots=True)
class _Rewriter:
    """Builds the expression of a batch; collects its variables, windows and reads."""

    origins: Collection[str]
    widths: Mapping[str, int]
    operands: Mapping[str, BufferView]
    by_place: Collection[str]
    values: dict[str, Any]
    windows: dict[str, TensorWindow] = field(default_factory=dict)
    reads: dict[str, Read] = field(default_factory=dict)

    def rewritten(self, expr: Expr) -> Expr:
        match expr:
            case Var(name) if name in self.origins:
                return Binary("+", expr, Var(_at(name)))
            case Access():
                copied = None if expr.tensor in self.by_place else self._copied(expr)
                return copied or self._looked_up(expr)
        return rebuild(expr, self.rewritten)

    def _copied(self, access: Access) -> Access | None:
        """The access to a copy of the tile that each lane reads; None where that may leave the window."""
        source, rows = self.operands[access.tensor]
        lo, hi = source.lo[rows], source.hi[rows]
        begin, widths, index = np.empty_like(lo), [], []
        for axis, place in enumerate(access.index):
            form = affine(place)
            if form is None:
                return None
            steps = {name: scale for name, scale in form[0].items() if name in self.widths and scale}
            if any(self.widths[name] == 0 for name in steps):
                return None
            back = sum((scale * (self.widths[name] - 1) for name, scale in steps.items() if scale < 0), 0)
            sums = [scale * self.values[_at(name) if name in self.widths else name] for name, scale in form[0].items()]
            begin[:, axis] = sum(sums, form[1] + back) - lo[:, axis]
            widths.append(1 + sum(abs(scale) * (self.widths[name] - 1) for name, scale in steps.items()))
            moved: Expr = Const(-back)
            for name, scale in steps.items():
                moved = Binary("+", moved, Binary("*", Var(name), Const(scale)))
            index.append(moved)
        if (begin < 0).any() or (begin + np.asarray(widths, np.int64) > hi - lo).any():
            return None
        name = f"{access.tensor} {len(self.reads)}"
        self.windows[name] = _window(take(source.array, rows, begin, widths))
        written = None if source.is_complete() else take(source.written, rows, begin, widths)
        hull = lo + begin, lo + begin + np.asarray(widths, np.int64)
        self.reads[name] = Read(source, rows, None, None if written is None or written.all() else written, hull)
        return Access(name, (Var(LANE), *index))

    def _looked_up(self, access: Access) -> Access:
        """The access to the windows of all units, at the lane's unit and the index in its window."""
        source, rows = self.operands[access.tensor]
        name = f"{access.tensor} {len(self.reads)}"
        self.reads[name] = Read(
            source, rows, source.hi[rows] - source.lo[rows], None if source.is_complete() else source.written
        )
        self.windows[name] = _window(source.array)
        self.values[f"{_ROW}{name}"] = rows
        index = []
        for axis, place in enumerate(access.index):
            begin = f"{_ROW}{name} {axis}"
            self.values[begin] = source.lo[rows, axis]
            index.append(Binary("-", self.rewritten(place), Var(begin)))
        return Access(name, (Var(f"{_ROW}{name}"), *index))


def _window(array: Array) -> TensorWindow:
    return TensorWindow(array, (0,) * array.ndim)


def places(access: Access, points: Points) -> list[Array]:
    """The index of an access at all points, one array a dimension."""
    return [np.asarray(scalar_value(part, points)).astype(np.int64) for part in access.index]
