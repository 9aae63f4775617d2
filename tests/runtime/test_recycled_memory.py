"""Outputs lie in memory that is used again as soon as nothing refers to it, and never before."""

import gc

import numpy as np

from tilec.runtime.memory import address
from tilec.runtime.recycled_memory import KEPT, LEAST, RecycledMemory

F32 = np.dtype(np.float32)
ROWS = LEAST // 1024


def test_memory_is_used_again_once_no_array_refers_to_it():
    memory = RecycledMemory()
    first = memory.array((ROWS, 256), F32)
    assert (first.shape, first.dtype, address(first) % 64) == ((ROWS, 256), F32, 0)
    assert first.flags.c_contiguous
    assert first.flags.writeable
    place, view = address(first), first.T[1:]
    del first
    gc.collect()
    other = memory.array((ROWS, 256), F32)
    assert address(other) != place  # the view is still there
    del view
    assert address(memory.array((ROWS, 256), np.dtype(np.int32))) == place


def test_larger_arrays_lie_where_smaller_ones_lay():
    memory = RecycledMemory()
    place = address(memory.array((ROWS, 256), F32))
    assert address(memory.array((ROWS + ROWS // 3, 256), F32)) == place
    assert address(memory.array((ROWS, 128), F32)) != place  # as small as it is, it is kept by the process


def test_few_blocks_wait():
    memory = RecycledMemory()
    arrays = [memory.array((ROWS + n, 256), F32) for n in range(KEPT + 3)]
    places = [address(array) for array in arrays]
    del arrays
    again = [memory.array((ROWS, 256), F32) for _ in range(KEPT)]
    assert {address(array) for array in again} == set(places[-KEPT:])
