"""Windows of tensors that leave a group, large enough that all tiles together store every element once.

The numbers of `tilec.lower.store_regions`: lowering extends a window to where that of the tile before ends, which is
known of expressions only. Of candidate tiles the share of the tensor that each must store is: where strides of readers
leave gaps, windows grow to that share, and to the end of the tensor in the last tile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

import numpy as np

from tilec.ir.group_windows import Flags, is_partition, move_inside
from tilec.scheduler.analysis.window_propagation import CandidateEnds, Ends, Ints, Window, most


def stored_window(
    window: Sequence[Ends],
    shape: Sequence[int],
    moving: Sequence[Set[str]],
    loops: Mapping[str, tuple[Ints, int]],
    numbers: CandidateEnds,
) -> Window:
    """A window enlarged to what a tile stores.

    args:
      shape   extents of the tensor
      moving  for every dimension the tile loops that move the window along it
      loops   size of a tile along every tile loop, and the extent that the loop cuts

    Where tiles are a partition of each dimension by one loop, a tile stores its part of the dimensions that loops move
    and all of the others; elsewhere the first tile stores the whole tensor.
    """
    running: dict[str, Flags] = {
        name: np.asarray(loops[name][0] < loops[name][1]) for name in frozenset().union(*moving)
    }
    within = [numbers.covers(lo, hi, 0, extent) for (lo, hi), extent in zip(window, shape, strict=True)]
    partition = is_partition(moving, running, [np.logical_not(flag) for flag in within])
    stored: list[Ends] = []
    for (lo, hi), extent, names in zip(window, shape, moving, strict=True):
        least = numbers.select(partition, _part(extent, numbers.origin(hi), [loops[name] for name in names]), extent)
        stored.append(move_inside((lo, most(hi, lo + least)), extent, numbers))
    return tuple(stored)


def _part(extent: int, end: Ints | int, loops: Sequence[tuple[Ints, int]]) -> Ints | int:
    """The widest part of a dimension that a tile stores, of which one of the loops runs at most: the part of a tile in
    the middle, or that of the last one, from where the window before it ends to the end of the tensor.

    `end` is where the window of the first tile ends.
    """
    part: Ints | int = extent
    last: Ints | int = 0
    for size, whole in loops:
        count = -(-whole // np.maximum(size, 1))
        last = most(last, np.where(count > 1, extent - end - extent * size * (count - 2) // whole, 0))
        part = -(-part * size // whole)
    return most(part, last)
