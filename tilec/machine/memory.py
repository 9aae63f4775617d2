"""Memory of the device: buffers with capacities, poisoned until written, and the traffic between levels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tilec.ir.expr import Const
from tilec.ir.numpy_scalars import Array
from tilec.ir.plan import PlanLevel
from tilec.ir.program import Buffer
from tilec.ir.traffic import Traffic
from tilec.ir.types import numpy_dtype, tensor_bytes
from tilec.machine.errors import MachineError


@cache
def bytes_of(ttype: str, count: int) -> int:
    """Bytes of `count` elements of a tType."""
    size = tensor_bytes(ttype, (count,))
    assert isinstance(size, Const)
    return int(size.value)


@cache
def poison(ttype: str) -> Any:
    """Initial contents of a buffer: NaN, or the largest integer."""
    dtype = numpy_dtype(ttype)
    if dtype.kind in "iu":
        return np.iinfo(dtype.name).max
    return dtype.type(1) if dtype.kind == "b" else dtype.type(np.nan)


@dataclass(slots=True)
class BufferInstances:
    """A buffer in the memory of all units that have one; units are the first axis of every array.

    `lo` and `hi` ([units, rank]) are the windows, `array` their elements from `lo` on, `written` the mask of written
    elements; behind a window that is narrower than others everything counts as `written`. `names` are the spread
    variables that distinguish the units, `codes` (ascending) numbers of the units computed from these.
    """

    buffer: Buffer
    names: tuple[str, ...]
    codes: Array
    lo: Array
    hi: Array
    array: Array
    written: Array
    complete: bool = False

    def rows(self, names: tuple[str, ...], codes: Array) -> Array:
        """The units with these codes. Raises MachineError when one of them has no such buffer."""
        rows = np.searchsorted(self.codes, codes)
        if names != self.names or (self.codes[np.minimum(rows, len(self.codes) - 1)] != codes).any():
            raise MachineError(f"{self.buffer.name} at {self.buffer.level} does not exist here")
        return rows

    def is_complete(self) -> bool:
        """Whether everything was written; once true it remains true."""
        self.complete = self.complete or bool(self.written.all())
        return self.complete

    def lose(self) -> None:
        """Forget all contents, as if nothing was written yet."""
        self.array[...] = poison(self.buffer.ttype)
        self.written[...] = _outside(self.lo, self.hi, self.written.shape)
        self.complete = False

    def has(self, rows: Array, begin: Array, widths: Sequence[int]) -> bool:
        """Whether all elements of these tiles were written."""
        return self.is_complete() or bool(take(self.written, rows, begin, widths).all())


BufferView = tuple[BufferInstances, Array]
"""A buffer, and for every lane the unit whose instance it accesses."""


def tiles(array: Array, widths: Sequence[int], writeable: bool = False) -> Array:
    """All tiles of these widths of an array [units, ...] as a view: [units, positions..., widths...]."""
    places = [n - w + 1 for n, w in zip(array.shape[1:], widths, strict=True)]
    shape, strides = (array.shape[0], *places, *widths), (*array.strides, *array.strides[1:])
    return np.lib.stride_tricks.as_strided(array, shape, strides, writeable=writeable)


def take(array: Array, rows: Array, begin: Array, widths: Sequence[int]) -> Array:
    """The tiles that begin at `begin` ([n, rank]) in these units: [n, widths...]."""
    return np.asarray(tiles(array, widths)[(rows, *begin.T)])


def put(array: Array, rows: Array, begin: Array, value: Array) -> None:
    """Replace such tiles by `value` [n, widths...]; of overlapping tiles the last one wins."""
    tiles(array, value.shape[1:], writeable=True)[(rows, *begin.T)] = value


def reserve(
    buffer: Buffer, names: tuple[str, ...], codes: Array, lo: Array, hi: Array, shape: Sequence[int]
) -> BufferInstances:
    """A poisoned buffer. Raises MachineError when a window is wider than the buffer's declared shape."""
    widths = np.maximum(hi - lo, 0)
    for wide in widths[(widths > np.asarray(shape, np.int64)).any(axis=1)]:
        raise MachineError(f"the window of {buffer.name} is {wide.tolist()}, only {list(shape)} is reserved")
    most = tuple(widths.max(axis=0).tolist())
    array = np.full((len(codes), *most), poison(buffer.ttype), numpy_dtype(buffer.ttype))
    written = _outside(lo, hi, array.shape)
    order = np.argsort(codes, kind="stable")
    return BufferInstances(buffer, names, codes[order], lo[order], hi[order], array, written[order])


def _outside(lo: Array, hi: Array, shape: tuple[int, ...]) -> Array:
    """Mask [units, widths...] of the elements behind windows that are narrower than others."""
    widths = np.maximum(hi - lo, 0)
    mask = np.zeros(shape, bool)
    for axis, width in enumerate(shape[1:]):
        behind = np.arange(width) >= widths[:, axis, None]
        if behind.any():
            ones = [1] * (len(shape) - 1)
            ones[axis] = width
            mask |= behind.reshape(shape[0], *ones)
    return mask


class Meter:
    """Byte counters: traffic per level, and bytes in use in one instance of each level and in pools, limited where
    explicit: up to the end of the highest place, or live at once where buffers have no places."""

    def __init__(self, levels: Sequence[PlanLevel]) -> None:
        self._levels = {level.name: level for level in levels}
        self._live = dict.fromkeys(self._levels, 0)
        self._pools = {name: level.pool for name, level in self._levels.items() if level.managed == "explicit"}
        self._taken = {pool.name: 0 for pool in self._pools.values() if pool is not None}
        self.peak = dict.fromkeys(self._levels, 0)
        self.moved = dict.fromkeys(self._levels, Traffic())
        self._often = 1

    @contextmanager
    def counting(self, often: int) -> Iterator[None]:
        """Context in which all traffic counts `often` times."""
        before, self._often = self._often, self._often * often
        try:
            yield
        finally:
            self._often = before

    def born(self, level: str, name: str, size: int, end: int | None = None, pooled: bool = False) -> None:
        """Begin the lifetime of a buffer, whose place, if it has one, ends at a byte of its level or `pooled`. Raises
        MachineError above the capacity of an explicit level or of its pool."""
        self._live[level] += size
        held = self._live[level] if end is None or pooled else end
        self.peak[level] = max(self.peak[level], held)
        capacity = self._levels[level].capacity
        if self._levels[level].managed == "explicit" and capacity is not None and held > capacity:
            raise MachineError(f"{name} brings {level} to {held} bytes, its capacity is {capacity}")
        pool = self._pools.get(level)
        if pool is not None:
            self._taken[pool.name] += pool.share(size)
            taken = end if end is not None and pooled else self._taken[pool.name]
            if taken > pool.capacity:
                raise MachineError(f"{name} brings pool {pool.name} to {taken} bytes, its capacity is {pool.capacity}")

    def dies(self, level: str, size: int) -> None:
        """End the lifetime of a buffer."""
        self._live[level] -= size
        pool = self._pools.get(level)
        if pool is not None:
            self._taken[pool.name] -= pool.share(size)

    def reads(self, level: str, size: int, below: str = "") -> None:
        """Count bytes that `level` reads from a lower one, at explicit levels on their way from `below` as well."""
        for name in self._passed(below, level):
            before = self.moved[name]
            self.moved[name] = Traffic(before.read + size * self._often, before.written)

    def writes(self, level: str, size: int, below: str) -> None:
        """Count bytes that `level` writes to `below`, at explicit levels on their way as well."""
        for name in self._passed(below, level):
            before = self.moved[name]
            self.moved[name] = Traffic(before.read, before.written + size * self._often)

    def _passed(self, below: str, level: str) -> list[str]:
        names = list(self._levels)
        first = names.index(below) + 1 if below else names.index(level)
        between = names[first : names.index(level)]
        return [*(name for name in between if self._levels[name].managed == "explicit"), level]
