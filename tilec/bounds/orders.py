"""The best loop order of many tilings at once, by dynamic programming over sets of inner loops.

What loop j adds to the traffic depends on which loops run inside it, not on their order: with E(S) the traffic of
running the loops of S once, E(S) = min over j in S of trips_j * E(S - j) + (trips_j - 1) * step(j, S - j).  n loops
take n * 2^(n-1) vector operations where trying the orders takes n!.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tilec.bounds.einsum import Einsum, Operand

Ints = NDArray[np.int64]


class _Steps:
    """Words times weight that an operand moves when one loop advances, for every tiling."""

    def __init__(
        self, operand: Operand, weight: int, dims: Sequence[str], tiles: Sequence[Ints], trips: Sequence[Ints]
    ):
        at = {dim: position for position, dim in enumerate(dims)}
        self._ranks = [[(at[dim], c) for dim, c in rank] for rank in operand.ranks if rank]
        self._moves = [[c * tiles[i] for i, c in rank] for rank in self._ranks]
        self._mask = sum(1 << at[dim] for dim in operand.dims)
        self._trips = trips
        self._weight = weight
        self._known: dict[tuple[int, int], Ints | None] = {}
        one = np.ones((), np.int64)
        self._boxes = [sum((abs(c) * (tiles[i] - 1) for i, c in rank), one) for rank in self._ranks]
        self.volume: Ints = _product(self._boxes) * weight

    def of(self, loop: int, inside: int) -> Ints | None:
        """The step of `loop` with the loops of the set `inside` starting again; None where nothing moves."""
        key = (loop if self._mask >> loop & 1 else -1, inside & self._mask)
        if key == (-1, 0):
            return None
        if key not in self._known:
            self._known[key] = self.volume - _product([self._overlap(r, *key) for r in range(len(self._ranks))]) * (
                self._weight
            )
        return self._known[key]

    def _overlap(self, rank: int, loop: int, inside: int) -> Ints:
        delta: Ints | None = None
        for (dim, _), move in zip(self._ranks[rank], self._moves[rank], strict=True):
            if dim == loop:
                delta = move if delta is None else delta + move
            elif inside >> dim & 1:
                back = move * (1 - self._trips[dim])
                delta = back if delta is None else delta + back
        extent = self._boxes[rank]
        return extent if delta is None else np.maximum(extent - np.abs(delta), 0)


def _product(factors: Sequence[Ints]) -> Ints:
    result = np.ones((), np.int64)
    for factor in factors:
        result = result * factor
    return result


class Orders:
    """Tilings of one Einsum: `tiles` and `trips` hold one array per iterator, all broadcastable to one shape."""

    def __init__(self, einsum: Einsum, tiles: Sequence[Ints], trips: Sequence[Ints]) -> None:
        self._trips = trips
        dims = einsum.dims
        inputs = [_Steps(operand, operand.bits, dims, tiles, trips) for operand in einsum.inputs]
        # An evicted partial sum is written and read again.
        self._steps = [*inputs, _Steps(einsum.output, 2 * einsum.output.bits, dims, tiles, trips)]
        written = einsum.output.bits
        for dim in einsum.output.dims:
            written *= einsum.extents[dim]
        self._once: Ints = sum((s.volume for s in self._steps), np.zeros((), np.int64)) - written
        self._output = self._steps[-1]
        self._inner: dict[int, Ints] = {0: np.zeros((), np.int64)}

    def buffer(self) -> Ints:
        """Bits of buffer of every tiling."""
        return sum((s.volume for s in self._steps[:-1]), self._output.volume // 2)

    def traffic(self) -> Ints:
        """Bits moved by every tiling under its best loop order."""
        return self._best((1 << len(self._trips)) - 1) + self._once

    def best(self, tiling: int) -> tuple[int, ...]:
        """The loop order, outermost first, that `traffic` stands for; arrays must be one-dimensional.

        Loops of one trip are left out.
        """
        inside = (1 << len(self._trips)) - 1
        order: list[int] = []
        while inside:
            loops = [j for j in range(len(self._trips)) if inside >> j & 1]
            loop = min(loops, key=lambda j: _element(self._outer(j, inside ^ 1 << j), tiling))
            if _element(self._trips[loop], tiling) > 1:
                order.append(loop)
            inside ^= 1 << loop
        return tuple(order)

    def _best(self, inside: int) -> Ints:
        if inside not in self._inner:
            options = (self._outer(j, inside ^ 1 << j) for j in range(len(self._trips)) if inside >> j & 1)
            result = next(options)
            for option in options:
                result = np.minimum(result, option)
            self._inner[inside] = result
        return self._inner[inside]

    def _outer(self, loop: int, inside: int) -> Ints:
        """Traffic of running `loop` around the best order of `inside`."""
        moved = [step for s in self._steps if (step := s.of(loop, inside)) is not None]
        step = sum(moved[1:], moved[0]) if moved else np.zeros((), np.int64)
        return self._best(inside) * self._trips[loop] + step * (self._trips[loop] - 1)


def _element(values: Ints, position: int) -> int:
    return int(values[position] if values.ndim else values)
