"""Candidate mappings of fused operators: templates by position, and tiles that can be on the front (Orojenesis, FFMT).

Tiles pass through the buffer, so the first operator writes what the second reads, tile by tile with the same rows and
columns; from the second link on, whole rows pass, since partial sums do not. Only these choices can be on the front,
others have equal traffic and need more buffer:

- k and n that no link constrains are whole, or 1 wide: the cost of a loop over them does not
  depend on its trips;
- W is kept whole, or passes an element at a time.

`extended_templates` has the mappings that the templates leave out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import lcm, prod
from typing import Literal

import numpy as np

from tilec.bounds.chain import templates
from tilec.bounds.chain.chain import Product
from tilec.bounds.chain.extended_templates import extended_templates
from tilec.bounds.chain.templates import Template
from tilec.bounds.einsum.front import Ints
from tilec.bounds.einsum.oro import divisors
from tilec.bounds.einsum.oro_plus import tile_sizes
from tilec.errors import UnsupportedError

Fusion = Literal["ffmt", "flat", "flash"]
"""Templates by position (`ffmt`); whole rows passed on (`flat`); or by position with pairs as FlashAttention (`flash`),
as in the paper's case study of attention."""

MAX_PRODUCTS = 10
"""Maximal number of operators of a segment: every subset of their weights may be kept."""


@dataclass(frozen=True)
class Choice:
    """Tiles of one operator: `whole` or `least`, as wide as the `link`, or of some width.

    `kept`: the tile of W stays in the buffer; `all_kept`: all of W does.
    """

    template: Template
    k: Literal["whole", "least", "link"] | int = "whole"
    n: Literal["whole", "least", "link"] | int = "whole"
    kept: bool = False
    all_kept: bool = False


@dataclass(frozen=True)
class Plans:
    """Alternatives for every operator, to be combined in all ways, and the candidate widths of the first link.

    Widths are in columns of all heads. `parts` are links that pass in parts while the rows on both sides stay, each
    named by the operator that writes it.
    """

    alternatives: tuple[tuple[Choice, ...], ...]
    widths: tuple[int, ...]
    parts: frozenset[int] = frozenset()

    @property
    def picks(self) -> list[Ints]:
        """For every operator, the index of its alternative in each combination."""
        counts = [len(each) for each in self.alternatives]
        return [pick.astype(np.int64) for pick in np.unravel_index(np.arange(prod(counts)), counts)]

    def choices(self, combination: int) -> tuple[Choice, ...]:
        """The choice of every operator in one combination."""
        return tuple(each[pick[combination]] for each, pick in zip(self.alternatives, self.picks, strict=True))


def sizes(extent: int, ragged: bool) -> list[int]:
    """Candidate tiles: all divisors, or (`ragged`) the smallest tile of every number of tiles."""
    return tile_sizes(extent) if ragged else divisors(extent)


def plans(segment: Sequence[Product], fusion: Fusion, ragged: bool, beyond: bool = False) -> Iterator[Plans]:
    """All combinations that the positions of the operators allow, with `beyond` also those outside the templates.

    Raises UnsupportedError for a segment of more than `MAX_PRODUCTS` operators.
    """
    if len(segment) > MAX_PRODUCTS:
        raise UnsupportedError(f"{len(segment)} operators are more than can be fused at once",
                               hint=f"Allow cuts, or bound at most {MAX_PRODUCTS} operators together.")  # fmt: skip
    first, second = segment[0], segment[1]
    *parts, whole = _widths(first, second, ragged)
    pair = len(segment) == 2
    by_rows = tuple((each, Choice(each.template, kept=True)) for each in _by_rows(len(segment)))
    if not (pair and fusion == "flash"):
        yield Plans(by_rows, (whole,))
    if (fusion == "ffmt" or (fusion == "flash" and not pair)) and first.rows == "free" and parts:
        for (start, end), widths in _by_columns(len(segment), parts):
            yield Plans(((start,), (end,), *by_rows[2:]), widths)
    if pair and (fusion == "flash" or (fusion == "ffmt" and first.rows != "whole")):
        for two, widths in _flash(parts, whole):
            yield Plans(tuple((each, replace(each, kept=True)) for each in two), widths)
    for way in extended_templates(segment) if beyond else ():
        streamed = [Choice(*each) for each in way.operators]
        alternatives = tuple((each, replace(each, kept=True, all_kept=True)) for each in streamed)
        yield Plans(alternatives, (whole,), way.parts)


def _widths(first: Product, second: Product, ragged: bool) -> list[int]:
    """Candidate widths of the link's tiles in columns of all heads, rising up to whole rows; each a multiple of the
    heads."""
    heads = lcm(first.heads, second.heads)
    return [heads * size for size in sizes(first.heads * first.n // heads, ragged)]


def _by_rows(length: int) -> list[Choice]:
    """Choices where every link passes whole rows, for streamed weights; a kept W has no loops over k and n."""
    inner = [Choice(templates.FULL)] * (length - 2)
    return [Choice(templates.TILED_K, k="least"), *inner, Choice(templates.TILED_N, n="least")]


_Pairs = Iterator[tuple[tuple[Choice, Choice], tuple[int, ...]]]
"""Choices of the first two operators, and the candidate widths of the link between them."""


def _by_columns(length: int, widths: Sequence[int]) -> _Pairs:
    """Choices where the first link passes parts of rows.

    With I in place and O not tiled, no loop has less traffic with wider tiles, so only the smallest width counts.
    """
    second = templates.TILED_NK if length == 2 else templates.TILED_K
    stays, again = Choice(templates.TILED_KN, n="link"), Choice(templates.TILED_KN, k="least", n="link")
    yield (stays, Choice(second, k="link")), (widths[0],)
    yield (again, Choice(second, k="link")), tuple(widths)
    if length == 2:
        yield (stays, Choice(second, k="link", n="least")), tuple(widths)
        yield (again, Choice(second, k="link", n="least")), tuple(widths)


def _flash(widths: Sequence[int], whole: int) -> _Pairs:
    """Choices where loops over rows run inside those over the columns of the link (FlashAttention)."""
    yield (Choice(templates.FLASH_FIRST), Choice(templates.FLASH_SECOND)), (whole,)
    if widths:
        yield (Choice(templates.FLASH_FIRST, n="link"), Choice(templates.FLASH_SECOND, k="link")), tuple(widths)
