"""Execution of fills, loads and stores for many units at once."""

from __future__ import annotations

from math import prod

import numpy as np

from tilec.ir.evaluate import COMBINE
from tilec.ir.expr import Scalar
from tilec.ir.numpy_scalars import Array, cast
from tilec.ir.types import numpy_dtype
from tilec.machine.errors import MachineError
from tilec.machine.memory import BufferInstances, BufferView, Meter, bytes_of, put, take, tiles
from tilec.machine.units import alike, pieces, region_text, volumes

Ends = tuple[Array, Array]
"""[lo, hi) of regions, [lanes, rank] each."""


def fill(target: BufferView, value: Scalar) -> None:
    """Set every element of a buffer."""
    instances, rows = target
    instances.array[rows] = cast(np.asarray(value), instances.array.dtype)
    instances.written[rows] = True


def load(above: BufferView, below: BufferView, whole: Array, outside: Scalar | None, meter: Meter) -> None:
    """Copy the intersection of two windows and the tensor (extents `whole`), converted to the target's type; `outside`
    fills elements where the window leaves the tensor.  Bytes count in the type of the level below."""
    (target, rows), (source, there) = above, below
    begin, end = target.lo[rows], target.hi[rows]
    if outside is not None:
        _fill_outside(target, rows, whole, outside)
    lo = np.maximum(np.maximum(begin, source.lo[there]), 0)
    hi = np.minimum(np.minimum(end, source.hi[there]), whole)
    for some in pieces(hi - lo):
        widths = (hi - lo)[some[0]].tolist()
        from_, to = (lo - source.lo[there])[some], (lo - begin)[some]
        value = take(source.array, there[some], from_, widths)
        put(target.array, rows[some], to, cast(value, numpy_dtype(target.buffer.ttype)))
        known = np.True_ if source.is_complete() else take(source.written, there[some], from_, widths)
        put(target.written, rows[some], to, np.broadcast_to(known, value.shape))
        size = len(some) * bytes_of(source.buffer.ttype, prod(widths))
        meter.reads(target.buffer.level, size, source.buffer.level)


def _fill_outside(target: BufferInstances, rows: Array, whole: Array, value: Scalar) -> None:
    """Set the elements of a window outside its tensor to a value."""
    lo, hi = np.maximum(target.lo[rows], 0), np.minimum(target.hi[rows], whole)
    geometry = np.hstack([lo - target.lo[rows], np.maximum(hi, lo) - target.lo[rows], (target.hi - target.lo)[rows]])
    for some in alike(geometry):
        begin, end, widths = geometry[some[0]].reshape(3, -1).tolist()
        outside = np.ones([max(0, width) for width in widths], bool)
        outside[tuple(slice(b, e) for b, e in zip(begin, end, strict=True))] = False
        if outside.any():
            index = (rows[some][:, None], *(axis[None] for axis in np.nonzero(outside)))
            target.array[index] = cast(np.asarray(value), target.array.dtype)
            target.written[index] = True


def store(below: BufferView, above: BufferView, owned: Ends | None, whole: Array, combine: str, meter: Meter) -> None:
    """Copy a window, or its part `owned`, to a lower level. Raises MachineError for elements that are not in the window
    or were never written."""
    (target, there), (source, rows) = below, above
    lo, hi = (source.lo[rows], source.hi[rows]) if owned is None else owned
    lo = np.maximum(np.maximum(lo, target.lo[there]), 0)
    hi = np.minimum(np.minimum(hi, target.hi[there]), whole)
    wrong = (volumes(hi - lo) > 0) & ((lo < source.lo[rows]) | (hi > source.hi[rows])).any(axis=1)
    for one in np.flatnonzero(wrong):
        region, window = region_text(lo[one], hi[one]), region_text(source.lo[rows[one]], source.hi[rows[one]])
        raise MachineError(f"stores {region}, the window of {source.buffer.name} is {window}")
    for some in pieces(hi - lo):
        widths = (hi - lo)[some[0]].tolist()
        from_, to = (lo - source.lo[rows])[some], (lo - target.lo[there])[some]
        if not source.has(rows[some], from_, widths):
            raise MachineError(f"stores elements of {source.buffer.name} that were never written")
        value = cast(take(source.array, rows[some], from_, widths), numpy_dtype(target.buffer.ttype))
        if combine == "none":
            put(target.array, there[some], to, value)
        elif target.has(there[some], to, widths):
            _combine(target, there[some], to, value, combine)
        else:
            raise MachineError(f"combines with elements of {target.buffer.name} that were never written")
        put(target.written, there[some], to, np.broadcast_to(np.True_, value.shape))
        size = len(some) * bytes_of(target.buffer.ttype, prod(widths))
        meter.writes(source.buffer.level, size, target.buffer.level)


def _combine(target: BufferInstances, rows: Array, begin: Array, value: Array, combine: str) -> None:
    """Combine tiles with the contents of the target, one after another, since they may overlap."""
    there = tiles(target.array, value.shape[1:], writeable=True)
    for place, each in zip(zip(rows.tolist(), *begin.T.tolist(), strict=True), value, strict=True):
        there[place] = COMBINE[combine](there[place], each)
