"""The best loop order of many tilings at once, by dynamic programming over sets of inner loops.

What loop j adds to the traffic depends on which loops run inside it, not on their order.  So the best order of a
set of inner loops is the best choice of its outermost loop around the best order of the rest: n loops take
n * 2^(n-1) vector operations where trying the orders takes n!.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tilec.bounds.einsum import Einsum
from tilec.bounds.steps import ZERO, Dim, Ints, Steps, total


class Orders:
    """Tilings of one Einsum: `tiles` holds one array per iterator, all broadcastable to one shape.

    `ragged` allows tiles that do not divide their extent.
    """

    def __init__(self, einsum: Einsum, tiles: Mapping[str, Ints], ragged: bool) -> None:
        self._dims: dict[str, Dim] = {}
        for name, tile in tiles.items():
            trips = -(-einsum.extents[name] // tile)
            last = einsum.extents[name] - (trips - 1) * tile if ragged else tile
            self._dims[name] = Dim(tile, last, trips, ragged)
        # An evicted partial sum is written and read again, but for its first read.
        self._steps = [(Steps(operand, self._dims), operand.bits) for operand in einsum.inputs]
        self._steps.append((Steps(einsum.output, self._dims), 2 * einsum.output.bits))
        self._written = einsum.output.bits
        for dim in einsum.output.dims:
            self._written *= einsum.extents[dim]
        self._inner: dict[frozenset[str], Ints] = {frozenset(): ZERO}

    def buffer(self) -> Ints:
        """Bits of buffer of every tiling."""
        *inputs, (output, bits) = self._steps
        return total([*(steps.volume * weight for steps, weight in inputs), output.volume * (bits // 2)])

    def traffic(self) -> Ints:
        """Bits moved by every tiling under its best loop order."""
        first = total([steps.volume * bits for steps, bits in self._steps])
        return self._best(frozenset(self._dims)) + first - self._written

    def fetched(self, order: Sequence[str]) -> list[Ints]:
        """Words that enter the buffer under one loop order, outermost first, per operand, the output last."""
        inside = [frozenset(order[position + 1 :]) for position in range(len(order))]
        around = list(zip(order, inside, strict=True))
        return [
            total([steps.volume, *(step for at in around if (step := steps.of(*at)) is not None)])
            for steps, _ in self._steps
        ]

    def best_orders(self, tilings: int) -> list[tuple[str, ...]]:
        """The loop orders, outermost first, that `traffic` stands for, of `tilings` in one-dimensional arrays.

        Loops of one trip are left out.
        """
        choices: dict[frozenset[str], tuple[list[str], list[int]]] = {}
        trips = {name: np.broadcast_to(dim.trips, tilings).tolist() for name, dim in self._dims.items()}
        orders = []
        for tiling in range(tilings):
            inside = frozenset(self._dims)
            order: list[str] = []
            while inside:
                if inside not in choices:
                    loops = [name for name in self._dims if name in inside]
                    costs = np.broadcast_arrays(*self._options(loops, inside), np.empty(tilings, np.int64))[:-1]
                    choices[inside] = loops, np.argmin(np.stack(costs), axis=0).tolist()
                loops, outermost = choices[inside]
                loop = loops[outermost[tiling]]
                if trips[loop][tiling] > 1:
                    order.append(loop)
                inside -= {loop}
            orders.append(tuple(order))
        return orders

    def _best(self, inside: frozenset[str]) -> Ints:
        if inside not in self._inner:
            options = self._options(sorted(inside), inside)
            result = options[0]
            for option in options[1:]:
                result = np.minimum(result, option)
            self._inner[inside] = result
        return self._inner[inside]

    def _options(self, loops: Sequence[str], inside: frozenset[str]) -> list[Ints]:
        """Bits that all advances of the loops `inside` move when each of `loops` is the outermost."""
        return [self._best(inside - {loop}) + self._add(loop, inside - {loop}) for loop in loops]

    def _add(self, loop: str, inside: frozenset[str]) -> Ints:
        """Bits that the advances of `loop` around `inside` move."""
        moved = [(steps.of(loop, inside), bits) for steps, bits in self._steps]
        return total([words * bits for words, bits in moved if words is not None])
