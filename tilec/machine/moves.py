"""Statements that fill buffers and move tiles between them, for many units at once."""

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
"""First and behind the last element of regions, [lanes, rank] each."""


def fill(target: BufferView, value: Scalar) -> None:
    """Set every element of a buffer."""
    held, own = target
    held.array[own] = cast(np.asarray(value), held.array.dtype)
    held.written[own] = True


def load(seen: BufferView, below: BufferView, whole: Array, outside: Scalar | None, meter: Meter) -> None:
    """Copy what two windows and the tensor (extents `whole`) have in common; `outside` goes where the window leaves the
    tensor."""
    (target, own), (source, there) = seen, below
    begin, end = target.lo[own], target.hi[own]
    if outside is not None:
        _fill_outside(target, own, whole, outside)
    lo = np.maximum(np.maximum(begin, source.lo[there]), 0)
    hi = np.minimum(np.minimum(end, source.hi[there]), whole)
    for some in pieces(hi - lo):
        widths = (hi - lo)[some[0]].tolist()
        from_, to = (lo - source.lo[there])[some], (lo - begin)[some]
        value = take(source.array, there[some], from_, widths)
        put(target.array, own[some], to, cast(value, numpy_dtype(target.buffer.ttype)))
        known = np.True_ if source.is_complete() else take(source.written, there[some], from_, widths)
        put(target.written, own[some], to, np.broadcast_to(known, value.shape))
        meter.reads(target.buffer.level, len(some) * bytes_of(target.buffer.ttype, prod(widths)))


def _fill_outside(target: BufferInstances, own: Array, whole: Array, value: Scalar) -> None:
    """Put a value where a window leaves its tensor."""
    lo, hi = np.maximum(target.lo[own], 0), np.minimum(target.hi[own], whole)
    geometry = np.hstack([lo - target.lo[own], np.maximum(hi, lo) - target.lo[own], (target.hi - target.lo)[own]])
    for some in alike(geometry):
        begin, end, widths = geometry[some[0]].reshape(3, -1).tolist()
        outside = np.ones([max(0, width) for width in widths], bool)
        outside[tuple(slice(b, e) for b, e in zip(begin, end, strict=True))] = False
        if outside.any():
            index = (own[some][:, None], *(axis[None] for axis in np.nonzero(outside)))
            target.array[index] = cast(np.asarray(value), target.array.dtype)
            target.written[index] = True


def store(below: BufferView, seen: BufferView, owned: Ends | None, whole: Array, combine: str, meter: Meter) -> None:
    """Copy a window, or what is `owned` of it, to a lower level. Raises MachineError for elements that are not in the
    window or were never written."""
    (target, there), (source, own) = below, seen
    lo, hi = (source.lo[own], source.hi[own]) if owned is None else owned
    lo = np.maximum(np.maximum(lo, target.lo[there]), 0)
    hi = np.minimum(np.minimum(hi, target.hi[there]), whole)
    wrong = (volumes(hi - lo) > 0) & ((lo < source.lo[own]) | (hi > source.hi[own])).any(axis=1)
    for one in np.flatnonzero(wrong):
        region, window = region_text(lo[one], hi[one]), region_text(source.lo[own[one]], source.hi[own[one]])
        raise MachineError(f"stores {region}, the window of {source.buffer.name} is {window}")
    for some in pieces(hi - lo):
        widths = (hi - lo)[some[0]].tolist()
        from_, to = (lo - source.lo[own])[some], (lo - target.lo[there])[some]
        if not source.has(own[some], from_, widths):
            raise MachineError(f"stores elements of {source.buffer.name} that were never written")
        value = cast(take(source.array, own[some], from_, widths), numpy_dtype(target.buffer.ttype))
        if combine == "none":
            put(target.array, there[some], to, value)
        elif target.has(there[some], to, widths):
            _combine(target, there[some], to, value, combine)
        else:
            raise MachineError(f"combines with elements of {target.buffer.name} that were never written")
        put(target.written, there[some], to, np.broadcast_to(np.True_, value.shape))
        meter.writes(source.buffer.level, len(some) * bytes_of(source.buffer.ttype, prod(widths)))


def _combine(target: BufferInstances, rows: Array, begin: Array, value: Array, combine: str) -> None:
    """Combine tiles with what is there, one after another: they may be the same."""
    there = tiles(target.array, value.shape[1:], writeable=True)
    for place, each in zip(zip(rows.tolist(), *begin.T.tolist(), strict=True), value, strict=True):
        there[place] = COMBINE[combine](there[place], each)
