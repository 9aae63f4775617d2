"""Mappings of fused operators beyond the published templates: weights kept beside small tiles, and links in parts.

The templates keep W only beside whole rows of its operator, and pass whole rows from the second operator on. They leave
out two freedoms, neither of which costs traffic:

- W stays as a whole for any tiles: the first I and the last O pass an element of every row at a time;
- any link passes in parts, a column at a time: the rows of I from which it is computed stay, and so do the partial
  sums of the rows computed from it, until all of it has passed. If W stays too, two small rows replace a long one.

Two adjacent links cannot both pass in parts: the sums over the first are complete only at its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import lcm
from typing import Literal

from tilec.bounds.chain.chain import Product
from tilec.bounds.chain.templates import FULL, TILED_K, TILED_N, Template

MEANING = "weights kept beside tiles of any width, links handed on in parts"

PRODUCER = Template("made in parts", ("m", "n", "k"))
CONSUMER = Template("read in parts", ("m", "k", "n"))

Width = Literal["whole", "least"] | int
"""Width of a tile of k or n of one head."""


@dataclass(frozen=True)
class ExtendedTemplate:
    """Template and widths of k and n of each operator; `parts` are the links that pass in parts, each named by the
    operator that writes it."""

    operators: tuple[tuple[Template, Width, Width], ...]
    parts: frozenset[int]


def extended_templates(segment: Sequence[Product]) -> Iterator[ExtendedTemplate]:
    """All combinations that can be on the front: links in parts are one column wide, and only links that need less
    buffer that way."""
    links = [at for at in range(len(segment) - 1) if segment[at].rows == "free" and _spares(segment, at)]
    for count in range(len(links) + 1):
        for parts in combinations(links, count):
            if all(after - before > 1 for before, after in pairwise(parts)):
                yield ExtendedTemplate(
                    tuple(_operator(segment, at, parts) for at in range(len(segment))), frozenset(parts)
                )


def _operator(segment: Sequence[Product], at: int, parts: Sequence[int]) -> tuple[Template, Width, Width]:
    last = at == len(segment) - 1
    if at in parts:
        return PRODUCER, "whole", _column(segment, at) // segment[at].heads
    if at - 1 in parts:
        return CONSUMER, _column(segment, at - 1) // segment[at].heads, "whole"
    if at == 0:
        return TILED_K, "least", "whole"
    if last and segment[at].rows == "free":
        return TILED_N, "whole", "least"
    return FULL, "whole", "whole"


def _column(segment: Sequence[Product], link: int) -> int:
    """Minimal number of columns of all heads that pass together."""
    return lcm(segment[link].heads, segment[link + 1].heads)


def _spares(segment: Sequence[Product], link: int) -> bool:
    """Whether the rows beside a link and one column of it need less buffer than whole rows of it."""
    one, other = segment[link], segment[link + 1]
    before = one.heads * one.k * one.input_bits
    after = other.heads * other.n * other.output_bits
    whole, column = one.heads * one.n * one.output_bits, _column(segment, link) * one.output_bits
    producing = whole + (one.heads * one.input_bits if link == 0 else before)
    free = link + 2 == len(segment) and other.rows == "free"
    consuming = whole + (other.heads * other.output_bits if free else after)
    return before + column + after < max(producing, consuming)
