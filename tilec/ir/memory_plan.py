"""Places in one address space by lifetime, best fit (memory management; Welder, 4.2)."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Life:
    """A tensor or buffer that needs `size` bytes from step `born` to step `dies`, both included, at a multiple of
    `alignment`."""

    name: str
    size: int
    born: int
    dies: int
    alignment: int = 1


@dataclass(frozen=True, slots=True)
class Arena:
    """`offsets` in bytes by name; `size` of the whole."""

    offsets: Mapping[str, int]
    size: int


_ORDERS: tuple[Callable[[Life], Any], ...] = (
    lambda life: (-life.size, life.born, life.name),
    lambda life: (life.born - life.dies, -life.size, life.born, life.name),
    lambda life: (-life.size * (life.dies - life.born + 1), life.born, life.name),
    lambda life: (life.born, -life.size, life.name),
)
"""Orders in which best fit places: largest first, longest first, largest product of both, first born first."""

ATTEMPTS = 16
"""Maximal number of changes to an order while places end above the most bytes alive at once."""

EFFORT = 1 << 16
"""Maximal number of pairs of lives that the changes to an order look at: many lives leave hardly any gaps."""


def plan_memory(lives: Sequence[Life], alignment: int) -> Arena:
    """Give everything a place: what is alive at the same step never overlaps.

    One after the other goes into the smallest gap between those already placed that it fits in, largest first. Where
    that takes more than the most bytes alive at once, whatever lies above them goes first in the next attempt (squeaky
    wheel optimization), and other orders are tried in the same way; the smallest arena counts. Places are multiples of
    `alignment` bytes, and so are the sizes that they take.
    """
    rounded = [replace(life, size=-(-life.size // alignment) * alignment) for life in lives]
    least = most_alive(rounded)
    best: Arena | None = None
    for key in _ORDERS:
        order = sorted(rounded, key=key)
        for _ in range(max(1, min(ATTEMPTS, EFFORT // max(1, len(order) ** 2)))):
            arena = _placed(order)
            best = arena if best is None or arena.size < best.size else best
            if best.size <= least:
                return best
            order.sort(key=lambda life: arena.offsets[life.name] + life.size <= least)
    return best or Arena({}, 0)


def most_alive(lives: Iterable[Life]) -> int:
    """The most bytes that are alive at once, a lower bound of every arena."""
    changes = [change for life in lives for change in ((life.born, life.size), (life.dies + 0.5, -life.size))]
    most = alive = 0
    for _, change in sorted(changes):
        alive += change
        most = max(most, alive)
    return most


def _placed(lives: Iterable[Life]) -> Arena:
    """Best fit in this order."""
    placed: list[tuple[int, int, int, int]] = []
    offsets: dict[str, int] = {}
    total = 0
    for life in lives:
        size, born, dies = life.size, life.born, life.dies
        best, waste, cursor = -1, None, 0
        for at, end, first, last in placed:
            if first > dies or born > last:
                continue
            start = -(-cursor // life.alignment) * life.alignment
            gap = at - start
            if gap >= size and (waste is None or gap - size < waste):
                best, waste = start, gap - size
            cursor = max(cursor, end)
        offset = best if waste is not None else -(-cursor // life.alignment) * life.alignment
        offsets[life.name] = offset
        insort(placed, (offset, offset + size, born, dies))
        total = max(total, offset + size)
    return Arena(offsets, total)
