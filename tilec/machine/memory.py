"""The levels of the device: bounded buffers, poisoned until written, and what moves between levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import numpy as np

from tilec.ir.expr import Const
from tilec.ir.moved import Moved
from tilec.ir.numpy_scalars import Array
from tilec.ir.plan import PlanLevel
from tilec.ir.program import Buffer
from tilec.ir.types import numpy_dtype, tensor_bytes
from tilec.machine.errors import MachineError

Region = tuple[tuple[int, int], ...]
"""[lo, hi) of every dimension, in tensor coordinates."""


def overlap(*regions: Region) -> Region:
    """What all regions have in common."""
    return tuple((max(lo for lo, _ in ends), min(hi for _, hi in ends)) for ends in zip(*regions, strict=True))


def volume(region: Region) -> int:
    """Elements of a region; an interval that ends before it begins is empty."""
    return prod(max(0, hi - lo) for lo, hi in region)


@cache
def bytes_of(ttype: str, count: int) -> int:
    """Bytes of `count` elements."""
    size = tensor_bytes(ttype, (count,))
    assert isinstance(size, Const)
    return int(size.value)


@cache
def poison(ttype: str) -> Any:
    """What a buffer holds before it is written: NaN, or the largest integer."""
    dtype = numpy_dtype(ttype)
    if dtype.kind in "iu":
        return np.iinfo(dtype.name).max
    return dtype.type(1) if dtype.kind == "b" else dtype.type(np.nan)


@dataclass(frozen=True, slots=True)
class Held:
    """A buffer in the memory of one unit: its window, elements, and which of them were written."""

    buffer: Buffer
    window: Region
    array: Array
    written: Array

    def part(self, region: Region) -> tuple[slice, ...]:
        """Slices of `array` for a region inside the window."""
        return tuple(slice(lo - a, hi - a) for (lo, hi), (a, _) in zip(region, self.window, strict=True))


def reserve(buffer: Buffer, window: Region, shape: Sequence[int]) -> Held:
    """A poisoned buffer. Raises MachineError when the window is wider than what the program reserved."""
    widths = tuple(max(0, hi - lo) for lo, hi in window)
    if any(w > n for w, n in zip(widths, shape, strict=True)):
        raise MachineError(f"the window of {buffer.name} is {list(widths)}, only {list(shape)} is reserved")
    array = np.full(widths, poison(buffer.ttype), numpy_dtype(buffer.ttype))
    return Held(buffer, window, array, np.zeros(widths, bool))


class Meter:
    """Counts bytes: moved per level, and alive in one instance of each and in pools, bounded where explicit."""

    def __init__(self, levels: Sequence[PlanLevel]) -> None:
        self._levels = {level.name: level for level in levels}
        self._live = dict.fromkeys(self._levels, 0)
        self._pools = {name: level.pool for name, level in self._levels.items() if level.managed == "explicit"}
        self._taken = {pool.name: 0 for pool in self._pools.values() if pool is not None}
        self.peak = dict.fromkeys(self._levels, 0)
        self.moved = dict.fromkeys(self._levels, Moved())

    def born(self, level: str, name: str, size: int) -> None:
        """A buffer comes alive. Raises MachineError above the capacity of an explicit level or of its pool."""
        self._live[level] += size
        self.peak[level] = max(self.peak[level], self._live[level])
        capacity = self._levels[level].capacity
        if self._levels[level].managed == "explicit" and capacity is not None and self._live[level] > capacity:
            raise MachineError(f"{name} brings {level} to {self._live[level]} bytes, its capacity is {capacity}")
        pool = self._pools.get(level)
        if pool is not None:
            self._taken[pool.name] += pool.share(size)
            if self._taken[pool.name] > pool.capacity:
                taken = self._taken[pool.name]
                raise MachineError(f"{name} brings pool {pool.name} to {taken} bytes, its capacity is {pool.capacity}")

    def dies(self, level: str, size: int) -> None:
        """A buffer is used for the last time."""
        self._live[level] -= size
        pool = self._pools.get(level)
        if pool is not None:
            self._taken[pool.name] -= pool.share(size)

    def reads(self, level: str, size: int) -> None:
        """`level` reads from a lower one."""
        before = self.moved[level]
        self.moved[level] = Moved(before.read + size, before.written)

    def writes(self, level: str, size: int) -> None:
        """`level` writes to a lower one."""
        before = self.moved[level]
        self.moved[level] = Moved(before.read, before.written + size)
