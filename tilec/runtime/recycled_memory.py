"""Memory that outputs lie in, taken again once no array refers to it: its pages are there already."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tilec.runtime.memory import aligned_array, aligned_block

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAST = 1 << 20
"""Bytes from which on the memory of an array is kept; that of smaller ones a process keeps by itself."""

KEPT = 4
"""Blocks that wait for an array."""


class RecycledMemory:
    """Makes arrays in blocks that are used again; from any thread."""

    def __init__(self) -> None:
        self._waiting: dict[int, NDArray[np.uint8]] = {}

    def array(self, shape: tuple[int, ...], dtype: "np.dtype[Any]") -> "NDArray[Any]":
        """An uninitialised C-contiguous array that starts at a multiple of 64."""
        size = math.prod(shape) * dtype.itemsize
        if size < LEAST:
            return aligned_array(shape, dtype)
        return np.ndarray(shape, dtype, np.asarray(_Loan(self._take(size), self)))

    def give_back(self, block: "NDArray[np.uint8]") -> None:
        """Keep a block that no array refers to any more, instead of the smallest where there are enough."""
        self._waiting[id(block)] = block
        if len(self._waiting) > KEPT:
            self._claim(min(list(self._waiting.values()), key=len))

    def _take(self, size: int) -> "NDArray[np.uint8]":
        """The smallest block of at least `size` bytes that waits, else a new one instead of the largest: half as large
        again, for pages take no memory until they are written to."""
        waiting = sorted(self._waiting.values(), key=len)
        for block in waiting:
            if len(block) >= size and self._claim(block):
                return block
        if waiting:
            self._claim(waiting[-1])
        return aligned_block(size * 3 // 2)

    def _claim(self, block: "NDArray[np.uint8]") -> bool:
        """Take a block from those that wait; False where another thread has."""
        return self._waiting.pop(id(block), None) is not None


class _Loan:
    """A block for as long as an array that lies in it exists."""

    def __init__(self, block: "NDArray[np.uint8]", memory: RecycledMemory) -> None:
        self._block, self._memory = block, memory
        self.__array_interface__ = block.__array_interface__

    def __del__(self) -> None:
        self._memory.give_back(self._block)
