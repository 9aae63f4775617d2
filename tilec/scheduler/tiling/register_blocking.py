"""Register tiles of reductions: rows x vectors of accumulators with the most multiply-adds per load (W19, W22, W24).

The cost of one step of a reduction over a tile is modelled as a core executes it: two multiply-adds and nearly two
loads a cycle, each operand loaded once per point of the iterators it depends on, what the nearest cache cannot keep
fed from the next one, rows that fall into one set of that cache, and a chain of additions four cycles long.  Where
tiles do not divide an extent the last one either overlaps the one before it or, where that is clearly less, is narrower
(`clipped`), at the price of code of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import gcd, prod

import numpy as np
from numpy.typing import NDArray

from tilec.ir.expr import Expr, TensorExpr, constant_value, variables
from tilec.ir.intervals import Candidates
from tilec.scheduler.analysis.access import stride
from tilec.scheduler.analysis.contraction import Operand, operands_of
from tilec.scheduler.analysis.vector_iterator import Vector
from tilec.scheduler.analysis.window_propagation import propagate_windows, volume
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.tiling.body_work import body_work
from tilec.scheduler.tiling.tile_footprints import tile_box

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RegisterBlocking:
    """Sizes of the spatial iterators, the cycles of one tile with its whole reduction, and whether last tiles are
    narrower."""

    sizes: dict[str, int]
    cycles: float
    clipped: bool = False


def _lanes_used(width: int, lanes: int) -> list[int]:
    """Widths of the vectors that cover a width: each wants its own broadcasts."""
    return [lanes] * (width >= lanes) + [1 << bit for bit in range(lanes.bit_length()) if (width % lanes) >> bit & 1]


def moving(expr: TensorExpr) -> list[str]:
    """Spatial iterators with an extent other than 1."""
    return [i for i, e in zip(expr.spatial, expr.shape, strict=True) if constant_value(e) != 1]


def register_blocking(
    expr: TensorExpr,
    vector: Vector,
    lanes: int,
    panels: bool,
    shapes: Mapping[str, tuple[Expr, ...]],
    target: TargetModel,
    numbers: Candidates,
    within: Mapping[str, int],
    decided: Mapping[str, int] | None = None,
    converted: Collection[str] = (),
) -> RegisterBlocking:
    """The best tile of a reduction.

    `lanes` are the elements of a vector, `panels` says that weights are packed along the vector iterator, `within`
    how far iterators run in a core's tile, `decided` which sizes are not to be chosen, `converted` which operands every
    load converts to the type that is computed in.
    """
    extents = {i: int(numbers.size(e)) for i, e in expr.domain.items()}
    extents |= {i: min(n, extents[i]) for i, n in within.items()}
    extents = {i: max(1, n) for i, n in extents.items()}  # what is empty at these sizes has work at others
    spatial = vector.iterator if vector.kind == "spatial" else ""
    size = _grid(expr, vector, lanes, extents, target, decided or {})
    widths, which = np.unique(size.get(spatial, np.ones(1, np.int64)), return_inverse=True)
    one = np.ones(1, np.int64)
    vectors = np.asarray([target.vector_count(int(w), lanes) for w in widths])[which] if spatial else one
    masked = target.costs.masked
    kinds = np.asarray([1 if masked else len(_lanes_used(int(w), lanes)) for w in widths])[which] if spatial else one
    rows = [i for i in size if i != spatial]
    steps = prod(extents[i] for i in expr.reduce)
    if vector.kind == "reduce":
        steps = steps // max(1, extents[vector.iterator]) * target.vector_count(extents[vector.iterator], lanes)
    operands, body = dict.fromkeys(operands_of(expr)), body_work(expr)
    stream, block = _streams(expr, size, extents, shapes, target, numbers)
    evicted = _evicted(expr, vector, size, shapes, target)
    costs = target.costs

    def vectors_of(tile: Mapping[str, Ints], along: Collection[str] = rows) -> Ints:
        """Vectors of a tile along some of its rows."""
        counts = [tile[i] for i in rows if i in along]
        if not spatial:
            return prod(counts, start=vectors)
        return target.vectors_together([tile[spatial], *counts], vectors, lanes)

    everywhere = vectors_of(size)

    def cycles_of(tile: Mapping[str, Ints]) -> Floats:
        """Cycles of a tile whose rows are those or fewer."""
        held = vectors_of(tile)
        loads: Floats = np.zeros(held.shape)
        work: Floats = np.asarray(held, np.float64)
        for operand in operands:
            seen = prod((tile[i] for i in rows if i in operand.iterators), start=np.asarray(1))
            along = spatial in operand.iterators
            read = vectors_of(tile, operand.iterators) if along else seen
            loads = loads + read / body.joined_elements(operand.access.tensor)
            if operand.access.tensor in converted:
                work = work + seen * (vectors * costs.conversion if along else costs.broadcast_conversion)
        for part in body.parts:
            seen = prod((tile[i] for i in rows if i in part.iterators), start=np.asarray(1))
            work = work + seen * (vectors if spatial in part.iterators else 1) * part.instructions * costs.decoding
        fed = stream / max(1, steps) / target.feed * held / everywhere
        copies = np.asarray(1 if vector.kind == "spatial" else 2)
        if target.vectors:
            free = target.registers - costs.free_registers
            copies = np.clip(-(-costs.hiding_chains // held), 1, np.maximum(free // held, 1))
        latency = costs.addition_latency / np.minimum(copies, max(1, steps))
        chained = np.where(held < costs.hiding_chains, latency, 0)
        step = reduce(np.maximum, (work / costs.additions, loads / costs.loads, fed, chained, evicted))
        step = step + costs.load_friction * (loads / 4 + fed)
        lane_sums = costs.lane_sum * held if vector.kind == "reduce" else 0
        return np.asarray(steps * step + held + costs.tile_overhead + lane_sums)

    held, cycles = everywhere, cycles_of(size)
    total = cycles * prod((-(-extents[i] // size[i]) for i in size), start=np.asarray(1))
    factor = np.where(block * 2 > target.capacity, costs.crowded_level, 1.0)
    if spatial and panels:
        factor = factor * np.where(extents[spatial] % size[spatial] != 0, costs.ragged_panel, 1)
    reused = np.maximum(1, body.values(frozenset({spatial})) if spatial else 1)
    beside = np.where(held > vectors, vectors * reused, vectors)
    fits = (held <= target.accumulators) & (held + beside + kinds < max(4, target.registers))
    factor = np.where(fits, factor, np.inf)
    clipped = False
    if costs.narrower_tail == 1 and spatial:
        narrower = _narrower(cycles_of, size, rows, extents)
        clipped = bool(np.min(narrower * factor) < np.min(total * factor) * costs.clipped_tile)
        total = narrower if clipped else total
    total = total * factor
    inner = size[rows[0]] if rows else held
    width = size[spatial] if spatial else held
    best = int(np.lexsort((-width, -inner, held, np.round(total, 3)))[0])
    sizes = dict.fromkeys(moving(expr), 1) | {i: int(n[best]) for i, n in size.items()}
    return RegisterBlocking(sizes, float(cycles[best]), clipped)


def _narrower(
    cycles_of: Callable[[Mapping[str, Ints]], Floats],
    size: Mapping[str, Ints],
    rows: Sequence[str],
    extents: Mapping[str, int],
) -> Floats:
    """Cycles of all tiles where the last ones along rows are as narrow as what is left for them."""
    total: Floats = np.zeros(1)
    for last in product((False, True), repeat=len(rows)):
        tile, count = dict(size), prod(-(-extents[i] // size[i]) for i in size if i not in rows)
        for iterator, narrow in zip(rows, last, strict=True):
            left = extents[iterator] % size[iterator]
            count = count * (left > 0 if narrow else extents[iterator] // size[iterator])
            tile[iterator] = np.maximum(left, 1) if narrow else size[iterator]
        total = total + cycles_of(tile) * count
    return total


def _grid(
    expr: TensorExpr,
    vector: Vector,
    lanes: int,
    extents: Mapping[str, int],
    target: TargetModel,
    decided: Mapping[str, int],
) -> dict[str, Ints]:
    """Sizes of the vector iterator and of up to two row iterators, innermost first, as flat arrays: all that take no
    more accumulators than there are. A size that is decided is the only one, and every iterator with one has an
    array."""
    most = target.accumulators
    if vector.kind == "spatial":
        along = vector.iterator
        chosen = [decided[along]] if along in decided else _widths(extents[along], lanes, target)
        widths = np.asarray(chosen, np.int64)
        found, held = {along: widths}, np.asarray([target.vector_count(int(w), lanes) for w in widths], np.int64)
        rows = [i for i in reversed(moving(expr)) if i != along][:2]
    else:
        found, held = dict[str, Ints](), np.ones(1, np.int64)
        rows, most = moving(expr)[-1:], min(most, target.costs.reduced_rows)
    rows += [i for i in reversed(moving(expr)) if decided.get(i, 1) > 1 and i not in (*found, *rows)]
    for iterator in rows:
        size = decided.get(iterator)
        sizes = np.arange(1, max(1, min(extents[iterator], most)) + 1) if size is None else np.asarray([size], np.int64)
        here, there = np.nonzero((held[:, None] * sizes <= most) | (size is not None))
        found = {i: n[here] for i, n in found.items()} | {iterator: sizes[there]}
        held = held[here] * sizes[there]
    return found


def _widths(extent: int, lanes: int, target: TargetModel) -> list[int]:
    """Candidate widths of a tile along the vector iterator: whole vectors, divisors of the extent, all of it."""
    most = target.accumulators
    found = {lanes * n for n in range(1, most + 1) if lanes * n <= extent}
    found |= {d for d in range(1, min(extent, lanes * most) + 1) if extent % d == 0}
    return sorted(w for w in found if target.vector_count(w, lanes) <= most) or [1]


def _streams(
    expr: TensorExpr,
    size: Mapping[str, Ints],
    extents: Mapping[str, int],
    shapes: Mapping[str, tuple[Expr, ...]],
    target: TargetModel,
    numbers: Candidates,
) -> tuple[Floats, Floats]:
    """Bytes that a tile reads from a core's level, and bytes of all its operands.

    An operand that later tiles read again and that takes no more than half of the nearest cache stays there.
    """
    rest = {i: np.asarray(1, np.int64) for i in moving(expr) if i not in size}
    box = tile_box(expr, {**size, **rest}, {}, numbers)
    body, windows = body_work(expr), propagate_windows(expr, box, shapes, numbers)
    blocks = {t: volume(need.window) * 4.0 / body.joined_elements(t) for t, need in windows.items()}
    stream: Floats = np.zeros(1)
    for operand in {o.access.tensor: o for o in operands_of(expr)}.values():
        block = blocks[operand.access.tensor]
        again = _reuse(operand, size, extents)
        stream = stream + np.where((again > 1) & (block * 2 <= target.near), 0, block)
    return stream, np.asarray(sum(blocks.values()), np.float64)


def _evicted(
    expr: TensorExpr,
    vector: Vector,
    size: Mapping[str, Ints],
    shapes: Mapping[str, tuple[Expr, ...]],
    target: TargetModel,
) -> Floats:
    """Cycles a step to bring back rows that later steps read again, of which the stride puts more into one set of the
    nearest cache than it holds: all rows of what is broadcast, those in vectors where steps slide along them
    (measured: a window of 31 over 512 channels, 27 rows at a time 0.32 ms, 13 rows 0.16)."""
    way = target.costs.cache_way
    if not way:
        return np.zeros(1)
    ways = max(2, target.near // way)
    found: Floats = np.zeros(1)
    for operand in dict.fromkeys(operands_of(expr)):
        rows = [i for i in size if i in operand.iterators and i != vector.iterator]
        vectors = vector.iterator in operand.iterators
        if not rows or (vectors and (vector.kind != "spatial" or not _slides(operand, rows[0], expr))):
            continue
        step = stride(operand.access, shapes[operand.access.tensor], rows[0], expr.domain[rows[0]])
        distance = (constant_value(step) if step is not None else None) or 1
        places = way // gcd(distance * 4, way)
        held = prod((size[i] for i in rows), start=np.asarray(1))
        cycles = size[vector.iterator] * 4 / target.feed if vectors else 1.2
        found = np.maximum(found, np.where(held > ways * places, held * cycles, 0))
    return found


def _slides(operand: Operand, iterator: str, expr: TensorExpr) -> bool:
    """Whether a spatial and a reduce iterator move one index of an operand together, as a window does."""
    moved = [variables(index) for index in operand.access.index]
    return any(iterator in names and names & set(expr.reduce) for names in moved)


def _reuse(operand: Operand, size: Mapping[str, Ints], extents: Mapping[str, int]) -> Ints:
    """How many tiles in a row read the same elements of an operand."""
    found: Ints = np.asarray(1, np.int64)
    for iterator, sizes in size.items():
        if iterator not in operand.iterators:
            found = found * -(-extents[iterator] // sizes)
    return found
