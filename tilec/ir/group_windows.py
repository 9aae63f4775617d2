"""Windows of a group: from a tile of its final node back to what every node computes and reads (Welder, 3.1 and 3.2).

One walk over abstract numbers, as `tilec.ir.propagate` is for a single node. Tiling walks with the ends of many
candidate tiles at one place, memory levels with those of candidates at several places, lowering with expressions over
loop variables. They supply the arithmetic, the tile, and the windows that a node reads; which box follows from the
windows that readers request is decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import combinations
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tilec.ir.expr import TensorExpr

N = TypeVar("N")
Interval = tuple[N, N]
Flags = NDArray[np.bool_] | bool
"""A truth value for every candidate, or one for all."""


class WindowNumbers(Protocol[N]):
    """Arithmetic on the ends of windows `[lo, hi)`."""

    @property
    def zero(self) -> N:
        """The number 0."""
        ...

    def add(self, a: N, b: N) -> N:
        """Sum."""
        ...

    def subtract(self, a: N, b: N) -> N:
        """Difference."""
        ...

    def minimum(self, a: N, b: N) -> N:
        """The smaller number."""
        ...

    def maximum(self, a: N, b: N) -> N:
        """The larger number."""
        ...

    def select(self, condition: Flags, yes: N, no: N) -> N:
        """`yes` where the condition holds, else `no`."""
        ...

    def vacant(self, lo: N, hi: N) -> Flags:
        """Whether the interval is (certainly) empty."""
        ...

    def covers(self, lo: N, hi: N, first: N, end: N) -> Flags:
        """Whether `[lo, hi)` (certainly) contains `[first, end)` in every tile."""
        ...

    def stays(self, lo: N, hi: N, extent: N) -> bool:
        """Whether `[lo, hi)` certainly lies in `[0, extent)`; False where finding out costs more than it saves."""
        ...

    def is_zero(self, number: N) -> bool:
        """Whether a number is known to be 0 in all tiles of all candidates."""
        ...

    def is_fixed(self, width: N) -> bool:
        """Whether a width is the same in all tiles of a candidate."""
        ...

    def anchor(self, start: N) -> N:
        """The start of an interval in a form that further arithmetic stays simple with."""
        ...

    def shortfall(self, amount: N) -> N | None:
        """The most by which an amount falls below 0 in any tile; None where that is not known."""
        ...


def hull(windows: Iterable[tuple[Interval[N], ...]], numbers: WindowNumbers[N]) -> tuple[Interval[N], ...] | None:
    """The smallest window around all windows, empty ones left out; None for no window at all."""
    result: tuple[Interval[N], ...] | None = None
    for window in windows:
        result = window if result is None else _joined(result, window, numbers)
    return result


def _joined(
    one: tuple[Interval[N], ...], other: tuple[Interval[N], ...], numbers: WindowNumbers[N]
) -> tuple[Interval[N], ...]:
    left, right = _vacant(one, numbers), _vacant(other, numbers)
    if left is True:
        return other
    if right is True:
        return one
    both = tuple((numbers.minimum(a, c), numbers.maximum(b, d)) for (a, b), (c, d) in zip(one, other, strict=True))
    if left is False and right is False:
        return both
    return tuple(
        (
            numbers.select(left, c, numbers.select(right, a, lo)),
            numbers.select(left, d, numbers.select(right, b, hi)),
        )
        for (a, b), (c, d), (lo, hi) in zip(one, other, both, strict=True)
    )


def _vacant(window: tuple[Interval[N], ...], numbers: WindowNumbers[N]) -> Flags:
    empty: Flags = False
    for lo, hi in window:
        empty = empty | numbers.vacant(lo, hi)
        if empty is True:
            break
    return empty


def move_inside(interval: Interval[N], extent: N, numbers: WindowNumbers[N]) -> Interval[N]:
    """An interval in `[0, extent)` that contains the part of `interval` in it.

    One that sticks out is moved back, so that tiles are equally large wherever they lie; it is cut where it is wider
    than the tensor or its width varies.
    """
    lo, hi = interval
    if numbers.is_zero(lo):
        return lo, numbers.minimum(hi, extent)
    if numbers.stays(lo, hi, extent):
        return interval
    width = numbers.subtract(hi, lo)
    if not (numbers.is_fixed(width) and numbers.is_fixed(extent)):
        return numbers.maximum(lo, numbers.zero), numbers.minimum(hi, extent)
    width = numbers.minimum(width, extent)
    last = numbers.subtract(extent, width)
    start = numbers.anchor(numbers.minimum(numbers.maximum(lo, numbers.zero), last))
    return start, numbers.add(start, width)


def widen(interval: Interval[N], box: Interval[N], extent: N, numbers: WindowNumbers[N]) -> Interval[N]:
    """An interval that may leave the tensor, enlarged to contain also the `box` inside the tensor.

    A buffer whose readers go over the edge holds this: by as much as windows stick out at one end of the tensor, their
    boxes lie beyond them at the other side.
    """
    lo, hi = interval
    fits = numbers.covers(lo, hi, *box)
    if fits is True:
        return interval
    below, above = numbers.shortfall(lo), numbers.shortfall(numbers.subtract(extent, hi))
    first, end = lo, hi
    if below is not None and above is not None:
        first, end = numbers.subtract(lo, above), numbers.add(hi, below)
    first, end = numbers.minimum(first, box[0]), numbers.maximum(end, box[1])
    return numbers.select(fits, lo, first), numbers.select(fits, hi, end)


def aligned_iterator(final: TensorExpr, sink: TensorExpr, loop: str) -> str | None:
    """The iterator of a further sink that a tile loop of the final node may move: the one of the same name, or else at
    the same position (multi-output alignment; Welder, 3.2)."""
    if loop in sink.spatial:
        return loop
    at = final.spatial.index(loop)
    return sink.spatial[at] if at < len(sink.spatial) else None


def align(
    sink: TensorExpr,
    region: Mapping[str, Interval[N]],
    final: TensorExpr,
    whole: Mapping[str, Interval[N]],
    tile: Mapping[str, Interval[N]],
    numbers: WindowNumbers[N],
) -> tuple[dict[str, Interval[N]], dict[str, str]]:
    """The box of a further sink, and the tile loops that move it, each with the sink's iterator.

    args:
      region  interval of every spatial iterator of the sink over all tiles
      whole   interval of every tiled iterator of the final node over all tiles
      tile    interval of every tiled iterator of the final node in one tile

    A loop moves its `aligned_iterator` if both are equally wide; iterators that no loop moves run through the region.
    """
    box = dict(region)
    moved: dict[str, str] = {}
    for loop, (lo, hi) in tile.items():
        twin = aligned_iterator(final, sink, loop)
        if twin is None or twin in moved.values():
            continue
        (first, end), (start, stop) = region[twin], whole[loop]
        if numbers.subtract(end, first) == numbers.subtract(stop, start):
            offset = numbers.subtract(first, start)
            box[twin] = numbers.add(lo, offset), numbers.add(hi, offset)
            moved[loop] = twin
    return box, moved


def is_partition(
    moving: Sequence[Set[str]], running: Mapping[str, Flags] | None = None, cut: Sequence[Flags] | None = None
) -> Flags:
    """Whether tiles are parts of each dimension of a tensor by one loop of its own; only then can each tile store a
    part (`tilec.lower.store_regions`).

    args:
      moving   for every dimension the loops that move the tile's window along it
      running  for every loop whether it has more than one iteration (absent: all have)
      cut      for every dimension whether the window is narrower than the tensor (absent: all are)

    Rows of 64 that are read flat, 32 at a time, are no partition: the one loop moves both dimensions.
    """
    runs = dict.fromkeys(frozenset().union(*moving), True) if running is None else running
    parts = [True] * len(moving) if cut is None else cut
    clash: Flags = False
    for at, names in enumerate(moving):
        for one, other in combinations(sorted(names), 2):
            clash = clash | parts[at] & runs[one] & runs[other]
        for beside, others in enumerate(moving[at + 1 :], at + 1):
            for name in names & others:
                clash = clash | parts[at] & parts[beside] & runs[name]
    return not clash if isinstance(clash, bool) else np.logical_not(clash)


@dataclass(frozen=True)
class GroupWindows(Generic[N]):
    """The windows of a group's tensors while its nodes are placed, every node after its readers.

    final     the final node, whose tile is `tile`
    tile      interval of every spatial iterator of the final node
    requests  tensor -> windows that the nodes placed so far read of it, in their order
    """

    final: TensorExpr
    tile: Mapping[str, Interval[N]]
    numbers: WindowNumbers[N]
    requests: dict[str, list[tuple[Interval[N], ...]]] = field(default_factory=dict)

    def request(self, windows: Mapping[str, tuple[Interval[N], ...]]) -> None:
        """Note the windows that a node reads; they may leave the tensors."""
        for tensor, window in windows.items():
            self.requests.setdefault(tensor, []).append(window)

    def wanted(self, tensor: str) -> tuple[Interval[N], ...] | None:
        """The hull of the windows that readers request of a tensor; None if none does."""
        requests = self.requests.get(tensor, [])
        if len(requests) > 1:
            requests[:] = [w for w in [hull(reversed(requests), self.numbers)] if w is not None]
        return requests[0] if requests else None

    def place(self, expr: TensorExpr, shape: Sequence[N]) -> tuple[Interval[N], ...] | None:
        """The box of a node's spatial iterators: the final node's is the tile, any other's is what its readers want,
        moved inside the tensor. None for a further sink, which is to be aligned (`align`)."""
        if expr.tensor == self.final.tensor:
            return tuple(self.tile[iterator] for iterator in expr.spatial)
        wanted = self.wanted(expr.tensor)
        if wanted is None:
            return None
        return tuple(
            move_inside(interval, extent, self.numbers) for interval, extent in zip(wanted, shape, strict=True)
        )
