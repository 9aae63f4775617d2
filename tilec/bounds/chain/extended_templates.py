"""Mappings of fused operators beyond the published templates: weights that stay beside small tiles, and links in parts.

The templates keep W only beside whole rows of its operator, and hand on whole rows from the second operator on.  Two
freedoms are left out, neither of which costs traffic:

- W stays as a whole whatever the tiles are: the first I and the last O pass an element of every row at a time;
- any link is handed on in parts, a column at a time: the rows of I that it is made of stay, and the partial sums of
  the rows that are made from it, until all of it has passed.  Where W stays too, two small rows take the place of a
  long one.

Two links side by side cannot both pass in parts: what is summed up from the first is complete only at its end.
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

MADE = Template("made in parts", ("m", "n", "k"))
READ = Template("read in parts", ("m", "k", "n"))

Width = Literal["whole", "least"] | int
"""Of a tile of k or n of one head."""


@dataclass(frozen=True)
class ExtendedTemplate:
    """How the operators run: template, widths of k and n of each; `parts` are the links that are handed on in parts,
    by the operator that makes them."""

    operators: tuple[tuple[Template, Width, Width], ...]
    parts: frozenset[int]


def extended_templates(segment: Sequence[Product]) -> Iterator[ExtendedTemplate]:
    """All that can be on the front: links in parts are a column wide, and only those that take less room so."""
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
        return MADE, "whole", _column(segment, at) // segment[at].heads
    if at - 1 in parts:
        return READ, _column(segment, at - 1) // segment[at].heads, "whole"
    if at == 0:
        return TILED_K, "least", "whole"
    if last and segment[at].rows == "free":
        return TILED_N, "whole", "least"
    return FULL, "whole", "whole"


def _column(segment: Sequence[Product], link: int) -> int:
    """Columns of all heads that are handed on together at least."""
    return lcm(segment[link].heads, segment[link + 1].heads)


def _spares(segment: Sequence[Product], link: int) -> bool:
    """Whether the rows beside a link and a column of it take less room than whole rows of it."""
    one, other = segment[link], segment[link + 1]
    before = one.heads * one.k * one.input_bits
    after = other.heads * other.n * other.output_bits
    whole, column = one.heads * one.n * one.output_bits, _column(segment, link) * one.output_bits
    made = whole + (one.heads * one.input_bits if link == 0 else before)
    free = link + 2 == len(segment) and other.rows == "free"
    read = whole + (other.heads * other.output_bits if free else after)
    return before + column + after < max(made, read)
