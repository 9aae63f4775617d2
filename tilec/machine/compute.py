"""Execution of ComputeTile for many units at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tilec.ir.evaluate import COMBINE, evaluate_box
from tilec.ir.numpy_scalars import Array, cast, widen
from tilec.ir.program import Buffer, ComputeTile
from tilec.ir.reads import is_gathered
from tilec.ir.types import numpy_dtype
from tilec.machine.batch import Batch, batch
from tilec.machine.errors import MachineError
from tilec.machine.memory import BufferInstances, BufferView, put, take
from tilec.machine.reads import defined, followed, windows
from tilec.machine.units import integers, pieces, region_text, volumes

_WIDE = {"f16": "f32", "bf16": "f32"}

Counted = Callable[[Buffer, Buffer, Array, bool], None]
"""Callback for operands that are read in place: source, target, number of elements of each lane, whether
indices are data."""


def compute(
    statement: ComputeTile,
    lanes: int,
    values: Mapping[str, Any],
    view: BufferView,
    operands: Mapping[str, BufferView],
    whole: Mapping[str, Array],
    counted: Counted,
) -> None:
    """Evaluate the expression over the box of every lane into its window.

    `values` binds symbols, loop variables and spread variables, the last ones with an element for each lane, `whole`
    are the extents of tensors. Raises MachineError when a box leaves the extents or its window, or when elements are
    read that were never written.
    """
    expr, (target, target_rows) = statement.expr, view
    ends, rank = {i: (lo, hi) for i, lo, hi in statement.box}, len(expr.spatial)
    lo, hi = (integers([ends[i][side] for i in expr.iterators], values, lanes) for side in (0, 1))
    _require_inside(statement, lo, hi, integers(expr.extents, values, lanes), view)
    by_place = [tensor for tensor in operands if is_gathered(expr, tensor)]
    for some in pieces(hi - lo, rank):
        widths = dict(zip(expr.iterators, np.maximum(hi - lo, 0)[some[0]].tolist(), strict=True))
        origin = {i: lo[some, axis] for axis, i in enumerate(expr.iterators)}
        variables = {name: value[some] if np.ndim(value) else value for name, value in values.items()}
        views = {tensor: (buffer, rows[some]) for tensor, (buffer, rows) in operands.items()}
        done = batch(expr, len(some), origin, widths, variables, views, by_place)
        if all(widths.values()) and not defined(done):
            raise MachineError("reads elements that were never written")
        for tensor, (source, _) in operands.items():
            if source.buffer.level != target.buffer.level:
                gathered = tensor in by_place
                elements = followed(done, tensor) if gathered else windows(done, tensor, whole[tensor])
                counted(source.buffer, target.buffer, elements, gathered)
        _put(statement, done, target, target_rows[some], (lo[:, :rank] - target.lo[target_rows])[some])


def _require_inside(statement: ComputeTile, lo: Array, hi: Array, extents: Array, view: BufferView) -> None:
    """Raise MachineError for the first box that leaves the extents or the window of the target."""
    iterators, rank, (target, rows) = statement.expr.iterators, len(statement.expr.spatial), view
    used = volumes((hi - lo)[:, :rank]) > 0
    for one in np.flatnonzero(used & ((lo < hi) & ((lo < 0) | (hi > extents))).any(axis=1)):
        box = dict(zip(iterators, zip(lo[one].tolist(), hi[one].tolist(), strict=True), strict=True))
        whole = dict(zip(iterators, extents[one].tolist(), strict=True))
        raise MachineError(f"the box {box} leaves the extents {whole}")
    outside = (lo[:, :rank] < target.lo[rows]) | (hi[:, :rank] > target.hi[rows])
    for one in np.flatnonzero(used & outside.any(axis=1)):
        region = region_text(lo[one, :rank], hi[one, :rank])
        window = region_text(target.lo[rows[one]], target.hi[rows[one]])
        raise MachineError(f"computes {region}, the window of {statement.target} is {window}")


def _put(statement: ComputeTile, done: Batch, target: BufferInstances, rows: Array, begin: Array) -> None:
    """Evaluate a batch into its tiles of the target."""
    ttype = target.buffer.ttype
    value = evaluate_box(done.expr, done.points, _WIDE.get(ttype, ttype) if statement.accumulate else ttype)
    widths = value.shape[1:]
    if statement.accumulate:
        if not target.has(rows, begin, widths):
            raise MachineError(f"accumulates into elements of {statement.target} that were never written")
        before = widen(take(target.array, rows, begin, widths))
        value = COMBINE[str(statement.expr.reducer)](before, value)
    put(target.array, rows, begin, cast(value, numpy_dtype(ttype)))
    put(target.written, rows, begin, np.broadcast_to(np.True_, value.shape))
