"""Cost of every mapping of fused operators under the templates, vectorised, and their Pareto front (Orojenesis,
FFMT)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilec.bounds.chain import templates
from tilec.bounds.chain.buffer_requirement import Placed, Scheme, buffer_requirement
from tilec.bounds.chain.chain import Product
from tilec.bounds.chain.choices import Choice, Fusion, Plans, plans, sizes
from tilec.bounds.chain.templates import ONE
from tilec.bounds.einsum.front import Ints, front
from tilec.bounds.einsum.operand_traffic import total
from tilec.errors import UnsupportedError

_CHUNK = 1 << 20
"""Number of mappings costed at once."""

MAX_RAGGED_ROWS = 1 << 20
"""Maximal number of rows in batches: every tile size up to it is tried."""


@dataclass(frozen=True)
class Mappings:
    """The front of a segment: bytes of buffer and of traffic; plans, combination, rows and width of each mapping."""

    buffer: Ints
    traffic: Ints
    plans: tuple[Plans, ...]
    which: Ints
    combination: Ints
    rows: Ints
    widths: Ints
    costed: int

    def choices(self, row: int) -> tuple[Choice, ...]:
        """The choice of every operator in one mapping."""
        return self.plans[int(self.which[row])].choices(int(self.combination[row]))


def _rows(segment: Sequence[Product], ragged: bool) -> Ints:
    """Candidate tiles of rows; of ragged ones the smallest of those with equal numbers of tiles in every batch.

    Raises UnsupportedError for more than `MAX_RAGGED_ROWS` rows in batches.
    """
    extent, batches = segment[0].m, {each.batches: each for each in segment if each.batches > 1}
    if not ragged or not batches:
        return np.array(sizes(extent, ragged), np.int64)
    if extent > MAX_RAGGED_ROWS:
        raise UnsupportedError(f"{extent} rows are more than ragged tiles are counted for", segment[0].name,
                               "Bound fewer batches, or use perfect factors (oro).")  # fmt: skip
    tiles = np.arange(1, extent + 1)
    count = -(-extent // tiles)
    _, least = np.unique([count, *(templates.visits(each, count, tiles) for each in batches.values())],
                         axis=1, return_index=True)  # fmt: skip
    return tiles[np.sort(least)]


def fused(segment: Sequence[Product], fusion: Fusion, scheme: Scheme, ragged: bool, units: int = 1) -> Mappings:
    """The front of all mappings of two or more operators that are fused, in at least as many tiles of rows as `units`,
    which have a buffer each and share the tiles.

    Raises UnsupportedError for too many operators or rows and for counts that exceed 64 bits.
    """
    if sum(3 * each.macs * _bits(each) for each in segment) >= 2**62:
        raise UnsupportedError("more words than can be counted", segment[0].name, "Bound a smaller problem.")
    rows = _rows(segment, ragged)
    rows = rows[-(-segment[0].m // rows) >= units]
    tried = tuple(plans(segment, fusion, ragged, beyond(fusion, scheme, ragged)))
    parts: list[Ints] = []
    costed = 0
    for index, each in enumerate(tried):
        step = max(1, _CHUNK // (len(rows) * len(each.picks[0])))
        for start in range(0, len(each.widths), step):
            widths = np.array(each.widths[start : start + step], np.int64)
            bits = _cost(segment, each, rows, widths[:, None], scheme, units)
            costed += bits[0].size
            buffer, traffic = (-(-part.ravel() // 8) for part in bits)
            best = front(buffer, traffic)
            combination, at_width, at_rows = np.unravel_index(best, bits[0].shape)
            best_rows = [buffer[best], traffic[best], np.full(len(best), index), combination, rows[at_rows]]
            parts.append(np.stack([*best_rows, widths[at_width]]))
    joined = np.concatenate(parts, axis=1)
    buffer, traffic, which, combination, in_tile, width = joined[:, front(joined[0], joined[1])]
    return Mappings(buffer, traffic, tried, which, combination, in_tile, width, costed)


def beyond(fusion: Fusion, scheme: Scheme, ragged: bool) -> bool:
    """Whether mappings outside the published templates are tried: where tiles are ragged, and the buffer counts
    everything it holds at once."""
    return ragged and fusion == "ffmt" and scheme == 1


def _bits(product: Product) -> int:
    return max(product.input_bits, product.weight_bits, product.output_bits)


def tile(product: Product, choice: Choice, rows: Ints, width: Ints) -> dict[str, Ints]:
    """Tile of m, and of k and n of one head, of one operator."""
    of = {"least": ONE, "link": width // product.heads}
    k, n = (
        chosen * ONE if isinstance(chosen, int) else of.get(chosen, extent * ONE)
        for chosen, extent in ((choice.k, product.k), (choice.n, product.n))
    )
    return {"m": rows, "k": k, "n": n}


def words(
    segment: Sequence[Product], position: int, choice: Choice, rows: Ints, width: Ints, units: int = 1
) -> tuple[Ints, Ints, Ints]:
    """Words of I, W and O that one operator moves; a tensor passed on inside the segment moves none (Orojenesis,
    backing store accesses)."""
    product, none = segment[position], 0 * ONE
    tiles = tile(product, choice, rows, width)
    extents = {"m": product.m, "k": product.k, "n": product.n}
    trips = {dim: -(-extent // tiles[dim]) for dim, extent in extents.items()}
    over = {**trips, "k": ONE, "n": ONE} if choice.all_kept else trips
    return (
        templates.input_words(choice.template, product, trips) if position == 0 else none,
        templates.weight_words(choice.template, product, over, rows, np.array(choice.kept), units),
        templates.output_words(choice.template, product, trips) if position == len(segment) - 1 else none,
    )


def _cost(
    segment: Sequence[Product], tried: Plans, rows: Ints, widths: Ints, scheme: Scheme, units: int
) -> tuple[Ints, Ints]:
    """Bits of buffer and of traffic by combination, width and rows."""
    traffic, placed = [], []
    for position, (alternatives, pick) in enumerate(zip(tried.alternatives, tried.picks, strict=True)):
        product, pick = segment[position], pick[:, None, None]
        moved, inputs, weights, outputs = [], [], [], []
        for choice in alternatives:
            tiles = tile(product, choice, rows, widths)
            i, w, o = words(segment, position, choice, rows, widths, units)
            moved.append(i * product.input_bits + w * product.weight_bits + o * product.output_bits)
            inputs.append(tiles["m"] * tiles["k"] * product.heads * product.input_bits)
            weights.append(_resident_words(product, choice, tiles) * product.heads * product.weight_bits)
            outputs.append(tiles["m"] * tiles["n"] * product.heads * product.output_bits)
        stays = np.array([choice.kept for choice in alternatives])
        whole = np.array([choice.kept and choice.k == choice.n == "whole" for choice in alternatives])
        traffic.append(np.choose(pick, moved))
        placed.append(Placed(
            np.choose(pick, inputs), np.choose(pick, weights), np.choose(pick, outputs), stays[pick], whole[pick],
            product.heads * product.k * product.input_bits, product.heads * product.n * product.output_bits,
        ))  # fmt: skip
    for link in tried.parts:
        # Rows of I stay while the next operator runs, and the next operator's rows of O while this one runs.
        producer, consumer = placed[link : link + 2]
        placed[link] = replace(producer, outputs=producer.outputs + consumer.outputs)
        placed[link + 1] = replace(consumer, inputs=consumer.inputs + producer.inputs)
    shape = (len(tried.picks[0]), len(widths), len(rows))
    return np.broadcast_to(buffer_requirement(placed, scheme), shape), np.broadcast_to(total(traffic), shape)


def _resident_words(product: Product, choice: Choice, tiles: Mapping[str, Ints]) -> Ints:
    """Words of W of one head in the buffer: all, a tile, or a single one that passes."""
    if choice.all_kept:
        return product.k * product.n * ONE
    return tiles["k"] * tiles["n"] if choice.kept else ONE
