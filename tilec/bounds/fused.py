"""Operators fused under the templates: every mapping of a segment costed at once, and the front of those (O17-O23)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilec.bounds import ffmt
from tilec.bounds.chain import Product
from tilec.bounds.curve import Ints, front
from tilec.bounds.ffmt import ONE
from tilec.bounds.plans import Fusion, Plan, plans, sizes
from tilec.bounds.room import Placed, Scheme, room
from tilec.bounds.steps import times, total
from tilec.errors import UnsupportedError

_CHUNK = 1 << 20
"""Mappings costed at once."""


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


def _rows(segment: Sequence[Product], ragged: bool) -> Ints:
    """Rows of a tile to try: of ragged ones the least of those that are equally many in every batch."""
    extent, batches = segment[0].m, {each.batches: each for each in segment if each.batches > 1}
    if not ragged or not batches:
        return np.array(sizes(extent, ragged), np.int64)
    tiles = np.arange(1, extent + 1)
    count = -(-extent // tiles)
    _, least = np.unique([count, *(ffmt.visits(each, count, tiles) for each in batches.values())],
                         axis=1, return_index=True)  # fmt: skip
    return tiles[np.sort(least)]


def fused(segment: Sequence[Product], fusion: Fusion, scheme: Scheme, ragged: bool) -> Mappings:
    """The front of all mappings of two or more operators that are fused.

    Raises UnsupportedError for too many operators and for counts that leave 64 bits.
    """
    if sum(3 * each.macs * _bits(each) for each in segment) >= 2**62:
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
    joined = np.concatenate(parts, axis=1)
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
