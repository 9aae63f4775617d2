"""Operators fused under the templates: every mapping of a segment at once, and the front of those (O17-O23).

Tiles are handed on in the buffer, so the first operator makes what the second reads, tile by tile of the same rows
and columns; from the second on rows are handed on whole, for partial sums are not (O23).  Only these choices can be
on the front, the others move as much and need more room:

- k and n that no link binds are whole, or 1 wide: what a loop over them costs does not depend on its trips;
- W is kept whole, or passes an element at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import lcm
from typing import Literal

import numpy as np

from tilec.bounds import ffmt
from tilec.bounds.chain import Product
from tilec.bounds.curve import Ints, front
from tilec.bounds.ffmt import ONE, Template
from tilec.bounds.oro import divisors
from tilec.bounds.oro_plus import tile_sizes
from tilec.bounds.steps import times, total
from tilec.errors import UnsupportedError

Fusion = Literal["ffmt", "flat", "flash"]
"""Templates by position, rows handed on whole (FLAT), or the pair of FlashAttention."""

Scheme = Literal["1", "2", "pipelined"]
"""How the buffer of a segment adds up; `room` says how."""

LONGEST = 10
"""Operators of a segment at most: every subset of their weights may be kept."""

_CHUNK = 1 << 20
"""Mappings costed at once."""


@dataclass(frozen=True)
class Choice:
    """Tiles of one operator: `whole` or `least`, or as wide as the `link`; `kept` says whether W stays."""

    template: Template
    k: Literal["whole", "least", "link"] = "whole"
    n: Literal["whole", "least", "link"] = "whole"
    kept: bool = False


@dataclass(frozen=True)
class Plan:
    """A choice for every operator, and the widths of the first link (columns of all heads) to try."""

    choices: tuple[Choice, ...]
    widths: tuple[int, ...]


@dataclass(frozen=True)
class Placed:
    """Bits of the tiles of one operator in many mappings, and of one row of I and of O.

    `kept` says that the tile of W stays while other operators run, `whole` that it is all of W.
    """

    inputs: Ints
    weights: Ints
    outputs: Ints
    kept: bool
    whole: bool
    row_in: int
    row_out: int


@dataclass(frozen=True)
class Mappings:
    """The front of a segment: bytes of buffer and traffic, and of each mapping the plan, rows of a tile, and width."""

    buffer: Ints
    traffic: Ints
    plans: tuple[Plan, ...]
    which: Ints
    rows: Ints
    widths: Ints
    costed: int


def _sizes(extent: int, ragged: bool) -> list[int]:
    """Tiles to try: all divisors, or the smallest tile of every number of tiles."""
    return tile_sizes(extent) if ragged else divisors(extent)


def _rows(segment: Sequence[Product], ragged: bool) -> Ints:
    """Rows of a tile to try: of ragged ones the least of those that are equally many in every batch."""
    extent, batches = segment[0].m, {each.batches: each for each in segment if each.batches > 1}
    if not ragged or not batches:
        return np.array(_sizes(extent, ragged), np.int64)
    tiles = np.arange(1, extent + 1)
    count = -(-extent // tiles)
    _, least = np.unique([count, *(ffmt.visits(each, count, tiles) for each in batches.values())],
                         axis=1, return_index=True)  # fmt: skip
    return tiles[np.sort(least)]


def plans(segment: Sequence[Product], fusion: Fusion, ragged: bool) -> Iterator[Plan]:
    """Every plan that the positions of the operators allow (O18).  Raises UnsupportedError for a long segment."""
    if len(segment) > LONGEST:
        raise UnsupportedError(f"{len(segment)} operators are more than can be fused at once",
                               hint=f"Allow cuts, or bound at most {LONGEST} operators together.")  # fmt: skip
    if fusion == "flash" and len(segment) != 2:
        raise UnsupportedError(f"{len(segment)} operators are not a pair", hint="FlashAttention fuses two products.")
    first, second = segment[0], segment[1]
    *parts, whole = _widths(first, second, ragged)
    if fusion != "flash":
        yield from (Plan(choices, (whole,)) for choices in _keeping(_by_rows(len(segment))))
    if fusion == "ffmt" and first.rows == "free" and parts:
        rest = _by_rows(len(segment))[2:]
        for start, widths in _by_columns(len(segment), parts):
            yield from (Plan((*start, *choices), widths) for choices in _keeping(rest))
    if len(segment) == 2 and (fusion == "flash" or (fusion == "ffmt" and first.rows != "whole")):
        for pair, widths in _flash(parts, whole):
            for one in (False, True):
                for two in (False, True):
                    yield Plan((replace(pair[0], kept=one), replace(pair[1], kept=two)), widths)


def _widths(first: Product, second: Product, ragged: bool) -> list[int]:
    """Columns of all heads that tiles of the link may have, rising up to whole rows; each a multiple of the heads."""
    heads = lcm(first.heads, second.heads)
    return [heads * size for size in _sizes(first.heads * first.n // heads, ragged)]


def _by_rows(length: int) -> list[Choice]:
    """Choices where every link hands on whole rows, for streamed weights."""
    inner = [Choice(ffmt.FULL)] * (length - 2)
    return [Choice(ffmt.TILED_K, k="least"), *inner, Choice(ffmt.TILED_N, n="least")]


_Pairs = Iterator[tuple[tuple[Choice, Choice], tuple[int, ...]]]
"""Choices of the first two operators, and the widths of the link to try them with."""


def _by_columns(length: int, widths: Sequence[int]) -> _Pairs:
    """Choices where the first link hands on parts of rows.

    No loop of these moves less with wider tiles if I stays in place and O is not tiled: only the least width counts.
    """
    second = ffmt.TILED_NK if length == 2 else ffmt.TILED_K
    stays, again = Choice(ffmt.TILED_KN, n="link"), Choice(ffmt.TILED_KN, k="least", n="link")
    yield (stays, Choice(second, k="link")), (widths[0],)
    yield (again, Choice(second, k="link")), tuple(widths)
    if length == 2:
        yield (stays, Choice(second, k="link", n="least")), tuple(widths)
        yield (again, Choice(second, k="link", n="least")), tuple(widths)


def _flash(widths: Sequence[int], whole: int) -> _Pairs:
    """Choices where loops over rows run inside those over the columns of the link (O26)."""
    yield (Choice(ffmt.FLASH_FIRST), Choice(ffmt.FLASH_SECOND)), (whole,)
    if widths:
        yield (Choice(ffmt.FLASH_FIRST, n="link"), Choice(ffmt.FLASH_SECOND, k="link")), tuple(widths)


def _keeping(streamed: Sequence[Choice]) -> Iterator[tuple[Choice, ...]]:
    """The choices with every subset of weights kept; a kept W has no loops over k and n."""
    if not streamed:
        yield ()
        return
    first, *rest = streamed
    for others in _keeping(rest):
        yield first, *others
        yield Choice(first.template, kept=True), *others


def fused(segment: Sequence[Product], fusion: Fusion, scheme: Scheme, ragged: bool) -> Mappings:
    """The front of all mappings of two or more operators that are fused.

    Raises UnsupportedError for too many operators and for counts that leave 64 bits.
    """
    if sum(3 * each.macs * each.batches * _bits(each) for each in segment) >= 2**62:
        raise UnsupportedError("more words than can be counted", segment[0].name, "Bound a smaller problem.")
    rows = _rows(segment, ragged)
    tried = tuple(plans(segment, fusion, ragged))
    parts: list[Ints] = []
    costed = 0
    for index, plan in enumerate(tried):
        step = max(1, _CHUNK // len(rows))
        for start in range(0, len(plan.widths), step):
            widths = np.array(plan.widths[start : start + step], np.int64)[:, None]
            bits = _cost(segment, plan, rows, widths, scheme)
            costed += bits[0].size
            buffer, traffic = (-(-each.ravel() // 8) for each in bits)
            best = front(buffer, traffic)
            at_width, at_rows = np.unravel_index(best, bits[0].shape)
            parts.append(np.stack([buffer[best], traffic[best], np.full(len(best), index),
                                   rows[at_rows], widths[at_width, 0]]))  # fmt: skip
    joined = np.concatenate(parts, axis=1) if parts else np.zeros((5, 0), np.int64)
    joined = joined[:, front(joined[0], joined[1])]
    return Mappings(joined[0], joined[1], tried, joined[2], joined[3], joined[4], costed)


def _bits(product: Product) -> int:
    return max(product.input_bits, product.weight_bits, product.output_bits)


def tile(segment: Sequence[Product], plan: Plan, position: int, rows: Ints, width: Ints) -> dict[str, Ints]:
    """Tile of m, and of k and n of one head, of one operator."""
    product, choice = segment[position], plan.choices[position]
    of = {"whole": {"k": product.k * ONE, "n": product.n * ONE}, "least": {"k": ONE, "n": ONE}}
    link = width // product.heads
    return {
        "m": rows,
        "k": link if choice.k == "link" else of[choice.k]["k"],
        "n": link if choice.n == "link" else of[choice.n]["n"],
    }


def trips(product: Product, tiles: dict[str, Ints]) -> dict[str, Ints]:
    """Number of tiles of m, k and n."""
    return {dim: -(-extent // tiles[dim]) for dim, extent in (("m", product.m), ("k", product.k), ("n", product.n))}


def words(segment: Sequence[Product], plan: Plan, rows: Ints, width: Ints) -> list[tuple[Ints, Ints, Ints]]:
    """Words of I, W and O that every operator moves; what is handed on costs none (O21)."""
    moved = []
    for position, (product, choice) in enumerate(zip(segment, plan.choices, strict=True)):
        tiles = tile(segment, plan, position, rows, width)
        count = trips(product, tiles)
        none = 0 * ONE
        first, last = position == 0, position == len(segment) - 1
        moved.append((
            ffmt.input_words(choice.template, product, count) if first else none,
            ffmt.weight_words(choice.template, product, count, tiles["m"], np.array(choice.kept)),
            ffmt.output_words(choice.template, product, count) if last else none,
        ))  # fmt: skip
    return moved


def _cost(segment: Sequence[Product], plan: Plan, rows: Ints, widths: Ints, scheme: Scheme) -> tuple[Ints, Ints]:
    """Bits of buffer and of traffic by width and rows."""
    shape = np.broadcast_shapes(rows.shape, widths.shape)
    moved = words(segment, plan, rows, widths)
    traffic = total([
        i * product.input_bits + w * product.weight_bits + o * product.output_bits
        for product, (i, w, o) in zip(segment, moved, strict=True)
    ])  # fmt: skip
    placed = []
    for position, (product, choice) in enumerate(zip(segment, plan.choices, strict=True)):
        tiles = tile(segment, plan, position, rows, widths)
        held = tiles["k"] * tiles["n"] if choice.kept else ONE
        placed.append(Placed(
            times([tiles["m"], tiles["k"]]) * product.heads * product.input_bits,
            held * product.heads * product.weight_bits,
            times([tiles["m"], tiles["n"]]) * product.heads * product.output_bits,
            choice.kept,
            choice.kept and choice.k == choice.n == "whole",
            product.heads * product.k * product.input_bits,
            product.heads * product.n * product.output_bits,
        ))  # fmt: skip
    return np.broadcast_to(room(placed, scheme), shape), np.broadcast_to(traffic, shape)


def room(placed: Sequence[Placed], scheme: Scheme) -> Ints:
    """Bits of buffer that a segment needs (O19, O20, O22).

    1: the largest operator, a streamed W counted with it, and everything that is kept.
    2: as the paper counts.  Operators side by side that keep all of W work row by row: their weights, the largest
    rows between them, and the first tile of I or the last of O, which may take its place.  Others take their tiles.
    The largest counts, although what is kept must stay while others run.
    pipelined: all weights, and the largest I and O.
    """
    if scheme == "pipelined":
        return total([each.weights for each in placed]) + _largest([each.inputs + each.outputs for each in placed])
    if scheme == "1":
        most = _largest([each.inputs + each.outputs + (0 if each.kept else each.weights) for each in placed])
        return most + total([each.weights for each in placed if each.kept])
    needs: list[Ints] = []
    run: list[Placed] = []
    for each in placed:
        if each.whole:
            run.append(each)
            continue
        needs += [_side_by_side(run), each.inputs + each.weights + each.outputs]
        run = []
    return _largest([*needs, _side_by_side(run)])


def _side_by_side(run: Sequence[Placed]) -> Ints:
    """Bits for operators that keep all their weights and hand on single rows."""
    if not run:
        return 0 * ONE
    rows = [
        (each.row_in if position else 0) + (each.row_out if position < len(run) - 1 else 0)
        for position, each in enumerate(run)
    ]
    return total([each.weights for each in run]) + np.maximum(run[0].inputs, run[-1].outputs) + max(rows)


def _largest(values: Sequence[Ints]) -> Ints:
    return reduce(np.maximum, values)
