"""How a tile is cut: the vector dimension, pieces of 16, 8, 4, 2 and 1 lanes, what is unrolled and what loops.

The vector dimension is the last spatial one with strides 0 or 1 in all accesses and 1 in the target; else the
last such reduce dimension, with a horizontal reduction at the end; else one along which some accesses are shuffled
or gathered; else none. Sub-expressions are shared later, so GEMM, convolution, pooling, depthwise convolution and
row reductions need nothing of their own here.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from tilec.codegen.cpu.flatten import size_of
from tilec.codegen.cpu.scalars import HEAVY
from tilec.codegen.cpu.strides import Form, form_of
from tilec.codegen.cpu.target import CpuTarget
from tilec.codegen.cpu.tree import Dim, Tile
from tilec.ir.algebra import polynomial, simplify
from tilec.ir.expr import Access, Binary, Call, Const, Expr, accesses, bound, children
from tilec.ir.types import TTYPES

UNROLLED = 1200
"""Most operations of a tile on local buffers that are all unrolled, so that the buffers stay in registers."""
BODY = 4
"""Vectors that one iteration of an elementwise loop covers."""
SHUFFLED = 4
"""Largest stride along the vector dimension that is as good as contiguous, more or less."""
GATHERED = 0.2
"""What a lane is worth when some accesses are gathered element by element."""
FOLDED = 0.25
"""What a lane of a horizontal reduction is worth."""
HEAVY_WORK = 25
"""Operations that a function such as exp takes."""
STEPS = 128
"""Most multiply-adds that unrolling a reduction puts into one loop body."""
WINDOW = 320
"""Most multiply-adds of a reduction that is unrolled altogether, such as the window of a depthwise convolution."""
GROUP = 14
"""Most points of such a reduction that are computed side by side, so that what they load stays in registers."""
CHAINS = 8
"""Independent accumulators that hide the latency of an addition."""


@dataclass(frozen=True, slots=True)
class Run:
    """`trips` iterations from `start` that each cover `width` consecutive positions of a dimension."""

    start: Expr
    trips: Expr
    width: int


@dataclass(frozen=True, slots=True)
class Blocking:
    """`vector` names the vector dimension (None: scalar), `horizontal` says that it is a reduce dimension.

    `runs` cut every dimension; spatial ones are nested in the order of `spatial`, reduce ones in that of `reduce`.
    `chains` is how many accumulators a point has. A copy that transposes reads vectors along dimension `across`:
    where a body covers `lanes` positions of both, it is a square block. `group` points of a reduction that is
    unrolled altogether are computed side by side. The results of a horizontal reduction are vectors along dimension
    `together`, whose runs have powers of two as widths.
    """

    vector: str | None
    horizontal: bool
    lanes: int
    spatial: tuple[str, ...]
    reduce: tuple[str, ...]
    runs: dict[str, tuple[Run, ...]]
    chains: int = 1
    across: str | None = None
    group: int | None = None
    together: str | None = None


def pieces(width: int, lanes: int) -> tuple[tuple[int, int], ...]:
    """(offset, lanes) of vectors that cover a width without predicates: full ones, then 8, 4, 2, 1."""
    result: list[tuple[int, int]] = []
    at = 0
    while at < width:
        while lanes > width - at:
            lanes //= 2
        result.append((at, lanes))
        at += lanes
    return tuple(result)


def _forms(tile: Tile) -> tuple[tuple[Form, ...], Form]:
    names = [d.name for d in tile.dims]
    inner = tuple(form_of(a.index[0], names) for a in accesses(tile.value))
    return inner, form_of(tile.target.index[0], names)


def _lanes(tile: Tile, target: CpuTarget, ttypes: dict[str, str]) -> int:
    """Elements a vector holds: what fits of the widest type that is computed with."""
    found = {tile.ttype}
    for part in _values(tile.value):
        match part:
            case Access(memory, _):
                found.add(ttypes[memory])
            case Call(fn, _) if fn in TTYPES:
                found.add(fn)
            case Call("exp" | "log" | "tanh" | "erf" | "sigmoid", _):
                found.add("f32")
            case _:
                pass
    return min(target.lanes(t) for t in found)


def _values(expr: Expr) -> list[Expr]:
    """Sub-expressions that are values, not parts of offsets."""
    result: list[Expr] = [expr]
    if not isinstance(expr, Access):
        for child in children(expr):
            result += _values(child)
    return result


def _work(tile: Tile) -> int:
    """Operations at one point, roughly."""
    calls = sum(isinstance(e, Call) and e.fn in HEAVY for e in _values(tile.value))
    return sum(isinstance(e, Binary | Call) for e in _values(tile.value)) + HEAVY_WORK * calls + 1


def _efficiency(dim: Dim, lanes: int) -> float:
    """Average lanes of the vectors that cover a dimension."""
    if dim.size is None:
        return lanes / 2
    return dim.size / len(pieces(dim.size, lanes)) if dim.size > 0 else 0.0


def _smoothness(forms: tuple[Form, ...], dim: str) -> float:
    """What vectors along a dimension are worth: 1 where all accesses are contiguous or the same for all lanes, less
    where some are shuffled out of several vectors, least where they are gathered one by one."""
    steps = [form.stride(dim) for form in forms]
    if all(step in (0, 1) for step in steps):
        return 1.0
    return 0.5 if all(step is not None and -1 <= step <= SHUFFLED for step in steps) else GATHERED


def _vector_dim(tile: Tile, lanes: int) -> tuple[str | None, bool]:
    """The vector dimension and whether it is reduced: the most lanes, inner dimensions first."""
    inner, place = _forms(tile)
    best, chosen, horizontal = 1.0, None, False
    for dim in reversed(tile.spatial):
        score = _efficiency(dim, lanes) * _smoothness(inner, dim.name)
        if place.stride(dim.name) == 1 and score > best:
            best, chosen = score, dim.name
    for dim in reversed(tile.reduce):
        worth = _smoothness(inner, dim.name)
        score = _efficiency(dim, lanes) * worth * FOLDED
        if worth > GATHERED and any(form.stride(dim.name) == 1 for form in inner) and score > best:
            best, chosen, horizontal = score, dim.name, True
    return chosen, horizontal


def _whole(extent: Expr, width: int) -> tuple[Run, ...]:
    """A dimension in steps of `width`, the rest in one more iteration (in single steps when it is dynamic)."""
    size = bound(extent)
    if size is None:
        # An empty window may have a negative extent.
        trips = simplify(Call("maximum", (Binary("//", extent, Const(width)), Const(0))))
        done = simplify(Binary("*", trips, Const(width)))
        rest = simplify(Binary("-", extent, done))
        main = Run(Const(0), trips, width)
        return (main,) if rest == Const(0) else (main, Run(done, rest, 1))
    width = max(1, min(width, size))
    count, left = divmod(size, width)
    whole = Run(Const(0), Const(count), width)
    return (whole, Run(Const(count * width), Const(1), left)) if left else (whole,)


def _even(size: int, most: int) -> int:
    """The width of equal blocks of at most `most`."""
    return -(-size // -(-size // max(1, most))) if size > 0 else 1


def _known_multiple(extent: Expr, step: int, most: int) -> int:
    """The largest of `step`, 2 `step`, ... up to `most` times it that divides a dynamic extent for certain."""
    common = gcd(*polynomial(extent).values())
    return next((step * n for n in range(most, 1, -1) if common % (step * n) == 0), step)


def _register_tile(count: int, rows: int, registers: int) -> tuple[int, int]:
    """(vectors, rows) of accumulators that fit the registers beside the operands, most reuse per load first."""

    def fitting(vectors: int) -> tuple[float, int, int]:
        height = _even(rows, max(1, (registers - 1 - vectors) // vectors))
        return vectors * height / (vectors + height), vectors, height

    _, vectors, height = max(fitting(_even(count, most)) for most in range(1, min(count, 4) + 1))
    return vectors, height


def _budgets(tile: Tile, vector: str | None, horizontal: bool, lanes: int, target: CpuTarget) -> tuple[int, int]:
    """(vectors along the vector dimension, points of the other spatial dimensions) that one body covers at most."""
    if not tile.reduce:
        vectors = BODY if _work(tile) < HEAVY_WORK else BODY // 2
        count = next((len(pieces(d.size, lanes)) for d in tile.spatial if d.name == vector and d.size), vectors)
        return vectors, max(1, vectors // max(1, count))
    if vector is None:
        return 1, target.registers // 2 if horizontal else BODY * 2
    count = next((len(pieces(d.size, lanes)) for d in tile.spatial if d.name == vector and d.size), 2)
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
            count = len(pieces(dim.size, lanes)) if dim.size is not None else 0
            if dim.size is None:
                widths[dim.name] = _known_multiple(dim.extent, lanes, vectors)
            elif whole or count <= vectors:
                widths[dim.name] = dim.size
            else:
                widths[dim.name] = lanes * _even(count, vectors)
        elif dim.size is None:
            widths[dim.name] = 1
        else:
            widths[dim.name] = dim.size if whole else _even(dim.size, max(1, rows))
            rows //= max(1, widths[dim.name])
    return {d.name: widths[d.name] for d in tile.spatial}


def _points(tile: Tile, vector: str | None, lanes: int) -> int | None:
    total = 1
    for dim in tile.spatial:
        if dim.size is None:
            return None
        total *= len(pieces(dim.size, lanes)) if dim.name == vector else dim.size
    return total


def _reduce_order(tile: Tile, vector: str | None) -> tuple[Dim, ...]:
    """Reduce dimensions, largest strides outermost, the vector dimension innermost."""
    inner, _ = _forms(tile)

    def reach(dim: Dim) -> tuple[bool, int]:
        steps = [f.stride(dim.name) for f in inner]
        return dim.name != vector, sum(abs(s) if s is not None else 1 for s in steps)

    return tuple(sorted(tile.reduce, key=reach, reverse=True))


def _reduce_runs(
    dims: tuple[Dim, ...], vector: str | None, lanes: int, points: int
) -> tuple[dict[str, tuple[Run, ...]], int]:
    """Runs of the reduce dimensions, innermost unrolled first, and the accumulators of a point."""
    runs: dict[str, tuple[Run, ...]] = {}
    total = size_of(dims)
    if vector is None and total is not None and total <= 32 and total * points <= WINDOW:
        return {d.name: _whole(d.extent, d.size or 1) for d in dims}, 1
    copies, most = 1, max(1, STEPS // max(1, points))
    chains = 1
    for dim in reversed(dims):
        step = lanes if dim.name == vector else 1
        size = dim.size
        if size is None:
            runs[dim.name] = _whole(dim.extent, step)
            continue
        steps = max(1, size // step)
        if copies * steps <= most and steps <= 16:
            runs[dim.name] = _whole(dim.extent, size)
            copies *= max(1, steps)
            continue
        if copies == 1:
            unroll = 2 if points >= CHAINS else min(CHAINS, -(-CHAINS // points))
            while unroll > 1 and dim.name != vector and size % unroll:
                unroll -= 1
            copies = min(unroll, steps)
            runs[dim.name] = _whole(dim.extent, step * copies)
            chains = copies if points < CHAINS else 1
            continue
        runs[dim.name] = _whole(dim.extent, step)
    return runs, chains


def _transposed(tile: Tile, vector: str | None, lanes: int, ttypes: dict[str, str]) -> tuple[str, int] | None:
    """(dimension that the source is contiguous along, side of a square block) of a copy that transposes."""
    value = tile.value
    if vector is None or not isinstance(value, Access) or tile.combine != "none":
        return None
    (source, *others), _ = _forms(tile)
    sizes = {d.name: d.size if d.size is not None else lanes for d in tile.spatial}
    across = next((d for d in sizes if source.stride(d) == 1), None)
    if others or source.stride(vector) in (0, 1) or across is None or ttypes[value.tensor] != tile.ttype:
        return None
    side = lanes
    while side > min(sizes[vector], sizes[across]):
        side //= 2
    return (across, side) if side >= 4 else None


def _squares(extent: Expr, side: int) -> tuple[Run, ...]:
    """A dimension in blocks of `side`, the rest in single steps."""
    first, *rest = _whole(extent, side)
    return (first, *(Run(run.start, run.trips, 1) if run.trips != Const(1) else _singly(run) for run in rest))


def _singly(run: Run) -> Run:
    return Run(run.start, Const(run.width), 1)


def _together(tile: Tile) -> Dim | None:
    """The spatial dimension along which results lie side by side."""
    _, place = _forms(tile)
    return next((d for d in reversed(tile.spatial) if place.stride(d.name) == 1 and (d.size or 0) >= 2), None)


def _powers(dim: Dim, most: int) -> tuple[Run, ...]:
    """A dimension in steps of the largest power of two up to `most`, the rest in smaller ones."""
    size = dim.size or 0
    step = 1 << (min(size, most).bit_length() - 1)
    runs = [Run(Const(0), Const(size // step), step)]
    done = size // step * step
    return (*runs, *(Run(Const(done + first), Const(1), width) for first, width in pieces(size - done, step)))


def _unrolled(runs: dict[str, tuple[Run, ...]]) -> bool:
    return bool(runs) and all(bound(run.trips) == 1 for found in runs.values() for run in found)


def _group(tile: Tile, vector: str | None, lanes: int, widths: dict[str, int]) -> int:
    """Points computed side by side: neighbours, which share what they load, as many as leave room for that."""
    group = 1
    order = [d.name for d in tile.spatial if d.name != vector] + ([vector] if vector else [])
    for name in reversed(order):
        count = len(pieces(widths[name], lanes)) if name == vector else widths[name]
        if group * count > GROUP:
            break
        group *= count
    return group


def choose(tile: Tile, target: CpuTarget, ttypes: dict[str, str], local: bool) -> Blocking:
    """The cut of a tile; `local` says that it touches buffers that should stay in registers."""
    lanes = _lanes(tile, target, ttypes)
    vector, horizontal = _vector_dim(tile, lanes)
    if vector is None:
        lanes = 1
    inside = None if horizontal else vector
    transposed = None if local else _transposed(tile, inside, lanes, ttypes)
    if transposed is not None:
        across, side = transposed
        runs = {d.name: _squares(d.extent, side if d.name in (vector, across) else 1) for d in tile.spatial}
        order = [d.name for d in tile.spatial if d.name not in (vector, across)]
        return Blocking(vector, False, side, (*order, across, str(vector)), (), runs, across=across)
    points = _points(tile, inside, lanes)
    whole = local and points is not None and points * _work(tile) <= UNROLLED
    budgets = _budgets(tile, inside, horizontal, lanes, target)
    widths = _spatial_widths(tile, inside, lanes, budgets, whole)
    runs = {d.name: _whole(d.extent, widths[d.name]) for d in tile.spatial}
    together = _together(tile) if horizontal else None
    if together is not None:
        runs[together.name] = _powers(together, min(lanes, max(2, widths[together.name])))
        widths[together.name] = runs[together.name][0].width
    last = together.name if together is not None else inside
    order = [d.name for d in tile.spatial if d.name != last] + ([last] if last else [])
    body = 1
    for d in tile.spatial:
        body *= len(pieces(widths[d.name], lanes)) if d.name == inside else widths[d.name]
    reduce = _reduce_order(tile, vector if horizontal else None)
    reduce_runs, chains = _reduce_runs(reduce, vector if horizontal else None, lanes, body)
    return Blocking(
        vector,
        horizontal,
        lanes,
        tuple(order),
        tuple(d.name for d in reduce),
        runs | reduce_runs,
        chains,
        group=_group(tile, inside, lanes, widths) if _unrolled(reduce_runs) and not horizontal else None,
        together=together.name if together is not None else None,
    )
