"""fits: whether every level has room for the tile of one element; one that has not is named before any search."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod

import numpy as np

from tilec.errors import ConfigError
from tilec.ir.address_spaces import address_spaces
from tilec.ir.expr import Const, TensorExpr
from tilec.ir.graph import Node, Tensor
from tilec.ir.intervals import Candidates
from tilec.ir.plan import PlanLevel
from tilec.ir.propagate import propagate
from tilec.ir.reads import reads
from tilec.ir.types import tensor_bytes

Tensors = Mapping[str, Tensor]


class LevelTooSmallError(ConfigError):
    """A level, or a pool of levels, that cannot hold the tile of one element: `level`, the bytes `needed` for it and
    its `capacity` in bytes."""

    def __init__(self, level: str, needed: int, capacity: int, node: str, device: str) -> None:
        self.level, self.needed, self.capacity = level, needed, capacity
        super().__init__(
            f"{level} of {device} holds {capacity} bytes, the tile of one element of {node} needs {needed}",
            device,
            "Give it more capacity in the device file, or leave it out there.",
        )


def require_capacity(
    nodes: Iterable[Node], tensors: Tensors, levels: Sequence[PlanLevel], core: int, numbers: Candidates, device: str
) -> None:
    """Refuse a device on which some node cannot run alone, element by element, whatever the tiles (W17).

    A level up to the core's holds what one element of a node reads, at one point of its reduction, and the element
    itself; a level above the core's the element; each tensor takes whole units of the level's alignment.  Caches hold
    anything.  Raises LevelTooSmallError, with the node that needs most.
    """
    needs = {node.name: element_bytes(node.expr, tensors, numbers) for node in nodes}
    spaces = address_spaces(levels)
    bounded = [(i, level) for i, level in enumerate(levels) if i and level.managed == "explicit"]
    for name, (read, made) in sorted(needs.items(), key=lambda need: (-sum(need[1][0]) - need[1][1], need[0])):
        taken: dict[str, int] = {}
        for place, level in bounded:
            sizes = (made, *(read if place <= core else ()))
            space = spaces.get(level.name)
            unit = space.alignment if space is not None else 1
            needed = _whole_units(sizes, 1 if space is not None and space.pooled else unit)
            if level.capacity is not None and needed > level.capacity:
                raise LevelTooSmallError(f"level {level.name}", needed, level.capacity, name, device)
            if level.pool is not None:
                pool = level.pool
                taken[pool.name] = taken.get(pool.name, 0) + _whole_units(map(pool.share, sizes), unit)
                if taken[pool.name] > pool.capacity:
                    raise LevelTooSmallError(f"pool {pool.name}", taken[pool.name], pool.capacity, name, device)


def _whole_units(sizes: Iterable[int], unit: int) -> int:
    return sum(-(-size // unit) * unit for size in sizes)


def element_bytes(expr: TensorExpr, tensors: Tensors, numbers: Candidates) -> tuple[tuple[int, ...], int]:
    """Bytes of each tensor that one element reads at one point of its reduction, the most of first, middle and last
    ones, and its own.  What data index is read where it lies and needs none."""
    followed = {read.tensor for read in reads(expr) if None in read.index}
    box = {}
    for iterator, extent in expr.domain.items():
        size = np.maximum(numbers.size(extent), 1)
        at = np.asarray([np.zeros_like(size), size // 2, size - 1])
        box[iterator] = (at, at + 1)
    shapes = {tensor: tensors[tensor].shape for tensor in (read.tensor for read in reads(expr))}
    read: list[int] = []
    for tensor, window in propagate(expr, box, shapes, numbers, clip=True).items():
        if tensor not in followed:
            elements = prod((np.maximum(hi - lo, 0) for lo, hi in window), start=np.asarray(1))
            read.append(_bytes(tensors[tensor].ttype, int(np.max(elements))))
    return tuple(read), _bytes(tensors[expr.tensor].ttype, 1)


def _bytes(ttype: str, elements: int) -> int:
    size = tensor_bytes(ttype, (elements,))
    assert isinstance(size, Const)
    return int(size.value)
