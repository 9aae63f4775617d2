"""How vectors cover a width without predicates: full ones, then halves of them (28 = 16 + 8 + 4)."""

from __future__ import annotations


def vector_pieces(width: int, lanes: int) -> tuple[tuple[int, int], ...]:
    """(offset, lanes) of the vectors that cover a width."""
    result: list[tuple[int, int]] = []
    at = 0
    while at < width:
        while lanes > width - at:
            lanes //= 2
        result.append((at, lanes))
        at += lanes
    return tuple(result)


def vector_count(width: int, lanes: int) -> int:
    """The number of those vectors."""
    return width // lanes + (width % lanes).bit_count()
