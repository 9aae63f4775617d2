"""One arena for all intermediate tensors: places by lifetime, best fit (W08, W38, B24)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilec.abi.alignment import ALIGNMENT


@dataclass(frozen=True, slots=True)
class Life:
    """A tensor that needs `size` bytes from step `born` to step `dies`, both included."""

    tensor: str
    size: int
    born: int
    dies: int


@dataclass(frozen=True, slots=True)
class Arena:
    """`offsets` in bytes by tensor; `size` of the whole."""

    offsets: Mapping[str, int]
    size: int


def plan_memory(lives: Sequence[Life], alignment: int = ALIGNMENT) -> Arena:
    """Give every tensor a place: two that are alive at the same step never overlap.

    Largest first, each into the smallest gap between those already placed that it fits in, which comes close to
    the largest sum of sizes alive at once. Places are multiples of `alignment` bytes.
    """
    placed: list[tuple[int, int, Life]] = []
    offsets: dict[str, int] = {}
    total = 0
    for life in sorted(lives, key=lambda each: (-each.size, each.born, each.tensor)):
        size = -(-life.size // alignment) * alignment
        busy = sorted((at, end) for at, end, other in placed if other.born <= life.dies and life.born <= other.dies)
        best, waste, cursor = -1, None, 0
        for at, end in busy:
            gap = at - cursor
            if gap >= size and (waste is None or gap - size < waste):
                best, waste = cursor, gap - size
            cursor = max(cursor, end)
        offset = best if waste is not None else cursor
        offsets[life.tensor] = offset
        placed.append((offset, offset + size, life))
        total = max(total, offset + size)
    return Arena(offsets, total)
