"""How a tile is cut: what is unrolled into one body and what loops.

A `Choice` says it in a few numbers, those that a plan has for a node: the vector dimension, how many points of every
dimension one body covers, how many accumulators a point has.  `blocked` follows a choice, `best_choice` makes the one
for a tile of which the plan says nothing.

The vector dimension is the last spatial one with strides 0 or 1 in all accesses and 1 in the target; else the
last such reduce dimension, with a horizontal reduction at the end; else one along which some accesses are shuffled
or gathered; else none.  Accumulators and what is loaded beside them fit the registers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from tilec.codegen.cpu.extents import Extent
from tilec.codegen.cpu.kernel_ir import Blocking, Dim, Tile
from tilec.codegen.cpu.open_sizes import NO_OPEN_SIZES, OpenSizes
from tilec.codegen.cpu.passes.flatten_statements import size_of
from tilec.codegen.cpu.strip_mining import Strip, even_width, known_multiple, squares, strip_mine, strip_mine_open
from tilec.codegen.cpu.target import CpuTarget
from tilec.codegen.cpu.vectorize import alternatives, dots, forms, lanes_of, square_copy, vector_dim, work
from tilec.ir.expr import Call, Expr, accesses, constant_value, variables, walk
from tilec.ir.vector_pieces import vector_count
from tilec.spec.machine_costs import CpuCosts

LONG_ROW = 1 << 20
"""Elements that a row of an open size is taken for where only the order of strides counts."""


TESTED_ROWS = 2
"""Most rows of an open size in one body where elements are tested: every width of the rest is code of its own, and a
test takes more of it than what it guards (measured: depthwise convolutions of 28 rows at once compile in 15 s)."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What is chosen for a tile: the vector dimension (None: scalar code), the points of every dimension that one body
    covers, and the accumulators of a point."""

    vector: str | None
    widths: Mapping[str, int]
    accumulators: int = 1


@dataclass(frozen=True, slots=True)
class _Vectors:
    """Vectors of a tile: along a spatial dimension `spatial`, or along a `reduce` dimension; `lanes` of them."""

    spatial: str | None
    reduce: str | None
    lanes: int

    @property
    def dim(self) -> str | None:
        """The vector dimension."""
        return self.spatial or self.reduce

    def count(self, dim: Dim, width: int) -> int:
        """Vectors, or single points, that cover a width of a spatial dimension."""
        return vector_count(width, self.lanes) if dim.name == self.spatial else width


def best_choice(
    tile: Tile,
    target: CpuTarget,
    ttypes: Mapping[str, str],
    local: bool,
    vector: str | None = "",
    sizes: OpenSizes = NO_OPEN_SIZES,
) -> Choice:
    """The choice for a tile; `local` says that it touches buffers that should stay in registers, `vector` names the
    vector dimension where that is settled. Open sizes are taken for their usual ones."""
    if any(sizes.depends(dim.extent) for dim in tile.dims):
        near = local and not any(sizes.depends(dim.extent) for dim in tile.spatial)
        choice = best_choice(sizes.typical(tile), target, ttypes, near, vector)
        return _for_any_size(choice, tile, _vectors(tile, target, ttypes, choice.vector), sizes)
    vectors = _vectors(tile, target, ttypes, vector)
    square = None if local else square_copy(tile, vectors.spatial, vectors.lanes, ttypes)
    if square is not None:
        across, side = square
        return Choice(vectors.dim, {d.name: side if d.name in (vectors.dim, across) else 1 for d in tile.spatial})
    points = _points(tile, vectors)
    whole = local and points is not None and points * work(tile, target.costs) <= target.costs.register_tile_work
    widths = _spatial_widths(tile, vectors, _budgets(tile, vectors, target), whole)
    body = prod(vectors.count(d, widths[d.name]) for d in tile.spatial)
    heft = max(1, alternatives(tile), dots(tile))
    unrolled, accumulators = _reduce_widths(_reduce_order(tile, vectors.reduce), vectors, body, heft, target)
    return Choice(vectors.dim, widths | unrolled, accumulators)


def _for_any_size(choice: Choice, tile: Tile, vectors: _Vectors, sizes: OpenSizes) -> Choice:
    """A choice for usual sizes in which bodies along open dimensions are whole vectors, and no wider than what there
    may be, so that rests in powers of two cover them. Of several open reduce dimensions the innermost one is unrolled:
    each has a rest in every rest of the others."""
    widths = dict(choice.widths)
    tested = _tested(tile.value)
    summed = [d.name for d in _reduce_order(tile, vectors.reduce) if sizes.depends(d.extent) and widths[d.name] > 1]
    widths |= dict.fromkeys(summed[:-1], 1)
    for dim in tile.dims:
        if not sizes.depends(dim.extent):
            continue
        if dim.name in tested and dim in tile.spatial and dim.name != vectors.dim:
            widths[dim.name] = min(widths[dim.name], TESTED_ROWS)
        high, width = sizes.largest(dim.extent), widths[dim.name]
        if high is not None:
            width = min(width, 1 << max(0, high.bit_length() - 1)) if width >= high else width
        if dim.name == vectors.dim:
            width = width // vectors.lanes * vectors.lanes or 1 << max(0, width.bit_length() - 1)
        widths[dim.name] = max(1, width)
    return Choice(choice.vector, widths, choice.accumulators)


def _tested(value: Expr) -> frozenset[str]:
    """Dimensions whose positions decide whether an element is read."""
    choices = [part for part in walk(value) if isinstance(part, Call) and part.fn == "where"]
    conditions = [part.args[0] for part in choices if not accesses(part.args[0]) and accesses(part)]
    return frozenset[str]().union(*map(variables, conditions))


def blocked(
    tile: Tile,
    choice: Choice,
    target: CpuTarget,
    ttypes: Mapping[str, str],
    local: bool,
    sizes: OpenSizes = NO_OPEN_SIZES,
) -> Blocking:
    """The cut of a tile that a choice says."""
    vectors = _vectors(tile, target, ttypes, choice.vector)
    widths = choice.widths
    square = None if local else square_copy(sizes.typical(tile), vectors.spatial, vectors.lanes, ttypes)

    def strips(dim: Dim) -> tuple[Strip, ...]:
        if not sizes.depends(dim.extent):
            if dim.size is None and dim.name == vectors.dim:  # lanes of tasks that begin or end inside of it
                return strip_mine_open(dim.extent, widths[dim.name], vectors.lanes)
            return strip_mine(dim.extent, widths[dim.name])
        lanes = vectors.lanes if dim.name == vectors.dim else widths[dim.name]
        strips = strip_mine_open(dim.extent, widths[dim.name], lanes, sizes.usual(dim.extent))
        return tuple(strip for strip in strips if not sizes.is_empty(strip.trips)) or strips[:1]

    if square is not None and {widths[square[0]], widths[str(vectors.spatial)]} == {square[1]}:
        return _squares(tile, str(vectors.spatial), *square)
    reduce = _reduce_order(tile, vectors.reduce)
    order = [d.name for d in tile.spatial if d.name != vectors.spatial]
    reduce_runs = {d.name: strips(d) for d in reduce}
    return Blocking(
        vector=vectors.dim,
        horizontal=vectors.reduce is not None,
        lanes=vectors.lanes,
        spatial=(*order, *([vectors.spatial] if vectors.spatial else [])),
        reduce=tuple(d.name for d in reduce),
        runs={d.name: strips(d) for d in tile.spatial} | reduce_runs,
        chains=choice.accumulators,
        group=_group(tile, vectors, widths, target.costs) if _unrolled(reduce_runs) and not vectors.reduce else None,
    )


def _vectors(tile: Tile, target: CpuTarget, ttypes: Mapping[str, str], vector: str | None) -> _Vectors:
    lanes = lanes_of(tile, target, ttypes)
    if vector == "":
        vector = vector_dim(tile, lanes, target.costs)
    if vector is None:
        return _Vectors(None, None, 1)
    spatial = any(d.name == vector for d in tile.spatial)
    return _Vectors(vector if spatial else None, None if spatial else vector, lanes)


def _register_tile(count: int, rows: int, target: CpuTarget) -> tuple[int, int]:
    """(vectors, rows) of accumulators that fit the registers beside the operands, most reuse per load first.

    Few rows take as many vectors as hide the latency: then weights are read in one stream (measured: a row times
    2048 x 128 weights in two halves of four vectors 0.7 ms, in one of eight 0.3).
    """

    def fitting(vectors: int) -> tuple[float, int, int]:
        height = even_width(rows, max(1, (target.registers - 1 - vectors) // vectors))
        return vectors * height / (vectors + height), vectors, height

    limit = max(target.costs.row_vectors, target.costs.hiding_chains // rows)
    _, vectors, height = max(fitting(even_width(count, most)) for most in range(1, min(count, limit) + 1))
    return vectors, height


def _budgets(tile: Tile, vectors: _Vectors, target: CpuTarget) -> tuple[int, int]:
    """(vectors along the vector dimension, points of the other spatial dimensions) that one body covers at most."""
    along = next((d.size for d in tile.spatial if d.name == vectors.spatial and d.size), None)
    body = target.costs.elementwise_vectors
    if not tile.reduce:
        most = body if work(tile, target.costs) < target.costs.function_work else body // 2
        count = vector_count(along, vectors.lanes) if along else most
        return most, max(1, most // max(1, count))
    if vectors.spatial is None:
        return 1, target.registers // 2 if vectors.reduce else body * 2
    rows = prod(1 if d.name == vectors.spatial else d.size or 1 for d in tile.spatial)
    return _register_tile(vector_count(along, vectors.lanes) if along else 2, rows, target)


def _spatial_widths(tile: Tile, vectors: _Vectors, budgets: tuple[int, int], whole: bool) -> dict[str, int]:
    """Positions of every spatial dimension that one body covers, innermost dimensions first."""
    widths: dict[str, int] = {}
    most, rows = budgets
    for dim in reversed(tile.spatial):
        if dim.name == vectors.spatial:
            count = vector_count(dim.size, vectors.lanes) if dim.size is not None else 0
            if dim.size is None:
                widths[dim.name] = known_multiple(dim.extent, vectors.lanes, most)
            elif whole or count <= most:
                widths[dim.name] = dim.size
            else:
                widths[dim.name] = vectors.lanes * even_width(count, most)
        elif dim.size is None:
            widths[dim.name] = 1
        else:
            widths[dim.name] = dim.size if whole else even_width(dim.size, max(1, rows))
            rows //= max(1, widths[dim.name])
    return {d.name: widths[d.name] for d in tile.spatial}


def _points(tile: Tile, vectors: _Vectors) -> int | None:
    """Vectors and single points of all spatial dimensions; None while an extent is dynamic."""
    if any(dim.size is None for dim in tile.spatial):
        return None
    return prod(vectors.count(dim, dim.size or 0) for dim in tile.spatial)


def _reduce_order(tile: Tile, vector: str | None) -> tuple[Dim, ...]:
    """Reduce dimensions, largest strides outermost, the vector dimension innermost."""
    inner, _ = forms(tile)

    def reach(dim: Dim) -> tuple[bool, int]:
        steps = [f.stride(dim.name) for f in inner]
        return dim.name != vector, sum(_step(s) for s in steps)

    return tuple(sorted(tile.reduce, key=reach, reverse=True))


def _step(stride: Extent | None) -> int:
    """The length of a stride, as far as it is known; rows of open sizes are long."""
    return abs(stride) if isinstance(stride, int) else LONG_ROW if stride is not None else 1


def _reduce_widths(
    dims: tuple[Dim, ...], vectors: _Vectors, points: int, heft: int, target: CpuTarget
) -> tuple[dict[str, int], int]:
    """Points of the reduce dimensions that a body covers, innermost unrolled first, and the accumulators of a point, as
    many as the registers hold; a step is as much code as `heft` multiply-adds."""
    costs = target.costs
    total = size_of(dims)
    if (
        vectors.reduce is None
        and total is not None
        and total <= costs.window_steps
        and total * points * heft <= costs.window_body
    ):
        return {d.name: d.size or 1 for d in dims}, 1
    widths: dict[str, int] = {}
    copies, most = 1, max(1, costs.reduce_body // max(1, points * heft))
    chains, hiding = 1, costs.hiding_chains
    for dim in reversed(dims):
        step = vectors.lanes if dim.name == vectors.reduce else 1
        size = dim.size
        if size is None:
            widths[dim.name] = step
            continue
        steps = max(1, size // step)
        if copies * steps <= most and steps <= 16:
            widths[dim.name] = size
            copies *= max(1, steps)
            continue
        if copies == 1:
            unroll = 2 if points >= hiding else min(hiding, -(-hiding // points))
            while unroll > 1 and dim.name != vectors.reduce and size % unroll:
                unroll -= 1
            copies = min(unroll, steps)
            most = min(most, target.registers // costs.registers_per_step)
            widths[dim.name] = step * copies
            if points < hiding:
                chains = max(1, min(copies, (target.registers - costs.free_registers) // points))
            continue
        widths[dim.name] = step
    return widths, chains


def _unrolled(runs: Mapping[str, tuple[Strip, ...]]) -> bool:
    return bool(runs) and all(constant_value(run.trips) == 1 for strips in runs.values() for run in strips)


def _group(tile: Tile, vectors: _Vectors, widths: Mapping[str, int], costs: CpuCosts) -> int:
    """Points computed side by side: neighbours, which share what they load, as many as leave room for that."""
    group = 1
    order = sorted(tile.spatial, key=lambda d: d.name == vectors.spatial)
    for dim in reversed(order):
        count = vectors.count(dim, widths[dim.name])
        if group * count > costs.window_points:
            break
        group *= count
    return group


def _squares(tile: Tile, vector: str, across: str, side: int) -> Blocking:
    """The cut of a copy that transposes."""
    runs = {d.name: squares(d.extent, side if d.name in (vector, across) else 1) for d in tile.spatial}
    order = [d.name for d in tile.spatial if d.name not in (vector, across)]
    return Blocking(vector, False, side, (*order, across, vector), (), runs, across=across)
