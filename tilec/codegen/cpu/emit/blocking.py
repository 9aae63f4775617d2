"""How a tile is cut: what is unrolled into one body and what loops.

The vector dimension is the last spatial one with strides 0 or 1 in all accesses and 1 in the target; else the
last such reduce dimension, with a horizontal reduction at the end; else one along which some accesses are shuffled
or gathered; else none.  Accumulators and what is loaded beside them fit the registers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilec.codegen.cpu.emit.vectorize import (
    HEAVY_WORK,
    alternatives,
    forms,
    lanes_of,
    square_copy,
    vector_dim,
    work,
)
from tilec.codegen.cpu.kernel_ir import Dim, Tile
from tilec.codegen.cpu.passes.flatten_statements import size_of
from tilec.codegen.cpu.strip_mining import Strip, even_width, known_multiple, squares, strip_mine, vector_pieces
from tilec.codegen.cpu.target import CpuTarget
from tilec.ir.expr import constant_value

UNROLLED = 1200
"""Most operations of a tile on local buffers that are all unrolled, so that the buffers stay in registers."""
BODY = 4
"""Vectors that one iteration of an elementwise loop covers."""
STEPS = 128
"""Most multiply-adds that unrolling a reduction puts into one loop body."""
JAMMED = 4
"""Registers for each step of a body that also unrolls a loop around its own, whose rounds read side by side (measured
with AVX2: convolutions of 3x3 over 512 channels 1.18 ms with two steps, 1.26 to 1.7 with six; with AVX-512, which has
twice the registers, six steps take 0.92 of the time of two)."""
WINDOW = 320
"""Most multiply-adds of a reduction that is unrolled altogether, such as the window of a depthwise convolution."""
GROUP = 14
"""Most points of such a reduction that are computed side by side, so that what they load stays in registers."""
CHAINS = 8
"""Independent accumulators that hide the latency of an addition."""
BESIDE = 4
"""Registers beside several accumulators of a point, for what is loaded."""
WIDE_VECTORS = 4
"""Most vectors of a row of accumulators, where there are rows enough."""


@dataclass(frozen=True, slots=True)
class Blocking:
    """`vector` names the vector dimension (None: scalar), `horizontal` says that it is a reduce dimension.

    `runs` cut every dimension; spatial ones are nested in the order of `spatial`, reduce ones in that of `reduce`.
    `chains` is how many accumulators a point has. A copy that transposes reads vectors along dimension `across`:
    where a body covers `lanes` positions of both, it is a square block. `group` points of a reduction that is
    unrolled altogether are computed side by side.
    """

    vector: str | None
    horizontal: bool
    lanes: int
    spatial: tuple[str, ...]
    reduce: tuple[str, ...]
    runs: Mapping[str, tuple[Strip, ...]]
    chains: int = 1
    across: str | None = None
    group: int | None = None


def _register_tile(count: int, rows: int, registers: int) -> tuple[int, int]:
    """(vectors, rows) of accumulators that fit the registers beside the operands, most reuse per load first.

    Few rows take as many vectors as hide the latency: then weights are read in one stream (measured: a row times
    2048 x 128 weights in two halves of four vectors 0.7 ms, in one of eight 0.3).
    """

    def fitting(vectors: int) -> tuple[float, int, int]:
        height = even_width(rows, max(1, (registers - 1 - vectors) // vectors))
        return vectors * height / (vectors + height), vectors, height

    limit = max(WIDE_VECTORS, CHAINS // rows)
    _, vectors, height = max(fitting(even_width(count, most)) for most in range(1, min(count, limit) + 1))
    return vectors, height


def _budgets(tile: Tile, vector: str | None, horizontal: bool, lanes: int, target: CpuTarget) -> tuple[int, int]:
    """(vectors along the vector dimension, points of the other spatial dimensions) that one body covers at most."""
    if not tile.reduce:
        vectors = BODY if work(tile) < HEAVY_WORK else BODY // 2
        count = next((len(vector_pieces(d.size, lanes)) for d in tile.spatial if d.name == vector and d.size), vectors)
        return vectors, max(1, vectors // max(1, count))
    if vector is None:
        return 1, target.registers // 2 if horizontal else BODY * 2
    count = next((len(vector_pieces(d.size, lanes)) for d in tile.spatial if d.name == vector and d.size), 2)
    rows = 1
    for dim in tile.spatial:
        rows *= 1 if dim.name == vector else dim.size or 1
    return _register_tile(count, rows, target.registers)


def _spatial_widths(
    tile: Tile, vector: str | None, lanes: int, budgets: tuple[int, int], whole: bool
) -> dict[str, int]:
    """Positions of every spatial dimension that one body covers, innermost dimensions first."""
    widths: dict[str, int] = {}
    vectors, rows = budgets
    for dim in reversed(tile.spatial):
        if dim.name == vector:
            count = len(vector_pieces(dim.size, lanes)) if dim.size is not None else 0
            if dim.size is None:
                widths[dim.name] = known_multiple(dim.extent, lanes, vectors)
            elif whole or count <= vectors:
                widths[dim.name] = dim.size
            else:
                widths[dim.name] = lanes * even_width(count, vectors)
        elif dim.size is None:
            widths[dim.name] = 1
        else:
            widths[dim.name] = dim.size if whole else even_width(dim.size, max(1, rows))
            rows //= max(1, widths[dim.name])
    return {d.name: widths[d.name] for d in tile.spatial}


def _points(tile: Tile, vector: str | None, lanes: int) -> int | None:
    total = 1
    for dim in tile.spatial:
        if dim.size is None:
            return None
        total *= len(vector_pieces(dim.size, lanes)) if dim.name == vector else dim.size
    return total


def _reduce_order(tile: Tile, vector: str | None) -> tuple[Dim, ...]:
    """Reduce dimensions, largest strides outermost, the vector dimension innermost."""
    inner, _ = forms(tile)

    def reach(dim: Dim) -> tuple[bool, int]:
        steps = [f.stride(dim.name) for f in inner]
        return dim.name != vector, sum(abs(s) if s is not None else 1 for s in steps)

    return tuple(sorted(tile.reduce, key=reach, reverse=True))


def _reduce_runs(
    dims: tuple[Dim, ...], vector: str | None, lanes: int, points: int, heft: int, registers: int
) -> tuple[dict[str, tuple[Strip, ...]], int]:
    """Runs of the reduce dimensions, innermost unrolled first, and the accumulators of a point, as many as the
    registers hold; a step is as much code as `heft` multiply-adds."""
    runs: dict[str, tuple[Strip, ...]] = {}
    total = size_of(dims)
    if vector is None and total is not None and total <= 32 and total * points * heft <= WINDOW:
        return {d.name: strip_mine(d.extent, d.size or 1) for d in dims}, 1
    copies, most = 1, max(1, STEPS // max(1, points * heft))
    chains = 1
    for dim in reversed(dims):
        step = lanes if dim.name == vector else 1
        size = dim.size
        if size is None:
            runs[dim.name] = strip_mine(dim.extent, step)
            continue
        steps = max(1, size // step)
        if copies * steps <= most and steps <= 16:
            runs[dim.name] = strip_mine(dim.extent, size)
            copies *= max(1, steps)
            continue
        if copies == 1:
            unroll = 2 if points >= CHAINS else min(CHAINS, -(-CHAINS // points))
            while unroll > 1 and dim.name != vector and size % unroll:
                unroll -= 1
            copies = min(unroll, steps)
            most = min(most, registers // JAMMED)
            runs[dim.name] = strip_mine(dim.extent, step * copies)
            chains = max(1, min(copies, (registers - BESIDE) // points)) if points < CHAINS else 1
            continue
        runs[dim.name] = strip_mine(dim.extent, step)
    return runs, chains


def _unrolled(runs: dict[str, tuple[Strip, ...]]) -> bool:
    return bool(runs) and all(constant_value(run.trips) == 1 for found in runs.values() for run in found)


def _group(tile: Tile, vector: str | None, lanes: int, widths: dict[str, int]) -> int:
    """Points computed side by side: neighbours, which share what they load, as many as leave room for that."""
    group = 1
    order = [d.name for d in tile.spatial if d.name != vector] + ([vector] if vector else [])
    for name in reversed(order):
        count = len(vector_pieces(widths[name], lanes)) if name == vector else widths[name]
        if group * count > GROUP:
            break
        group *= count
    return group


def _squares(tile: Tile, vector: str, across: str, side: int) -> Blocking:
    """The cut of a copy that transposes."""
    runs = {d.name: squares(d.extent, side if d.name in (vector, across) else 1) for d in tile.spatial}
    order = [d.name for d in tile.spatial if d.name not in (vector, across)]
    return Blocking(vector, False, side, (*order, across, vector), (), runs, across=across)


def choose_blocking(tile: Tile, target: CpuTarget, ttypes: Mapping[str, str], local: bool) -> Blocking:
    """The cut of a tile; `local` says that it touches buffers that should stay in registers."""
    lanes = lanes_of(tile, target, ttypes)
    vector, horizontal = vector_dim(tile, lanes)
    if vector is None:
        lanes = 1
    inside, across = (None, vector) if horizontal else (vector, None)
    square = None if local else square_copy(tile, inside, lanes, ttypes)
    if square is not None and inside is not None:
        return _squares(tile, inside, *square)
    points = _points(tile, inside, lanes)
    whole = local and points is not None and points * work(tile) <= UNROLLED
    widths = _spatial_widths(tile, inside, lanes, _budgets(tile, inside, horizontal, lanes, target), whole)
    runs = {d.name: strip_mine(d.extent, widths[d.name]) for d in tile.spatial}
    order = [d.name for d in tile.spatial if d.name != inside] + ([inside] if inside else [])
    body = 1
    for d in tile.spatial:
        body *= len(vector_pieces(widths[d.name], lanes)) if d.name == inside else widths[d.name]
    reduce = _reduce_order(tile, across)
    reduce_runs, chains = _reduce_runs(reduce, across, lanes, body, max(1, alternatives(tile)), target.registers)
    return Blocking(
        vector=vector,
        horizontal=horizontal,
        lanes=lanes,
        spatial=tuple(order),
        reduce=tuple(d.name for d in reduce),
        runs=runs | reduce_runs,
        chains=chains,
        group=_group(tile, inside, lanes, widths) if _unrolled(reduce_runs) and not horizontal else None,
    )
