"""The loops of a lane over its part of a tile or of an array in registers.

Their variables are `#i_r` and `#i_v`, rounds and neighbours along an axis `i`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilec.codegen.gpu.guards import below
from tilec.codegen.gpu.kernel_ir import Axis, KernelIR, Tile
from tilec.codegen.gpu.kernel_names import LANE
from tilec.codegen.gpu.lanes import Lanes, axis_lanes, upper
from tilec.codegen.gpu.ranges import with_ranges
from tilec.errors import UnsupportedError
from tilec.ir.algebra import bounds_of, simplify
from tilec.ir.expr import Access, Binary, Const, Expr, Var, constant_value, variables
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.program import Buffer


def axis(
    name: str,
    lo: Expr,
    hi: Expr,
    ranges: KnownRanges,
    lanes: Lanes | None = None,
    *,
    fixed: bool = False,
    vector: int = 1,
    most: int | None = None,
) -> Axis:
    """The axis of an interval `[lo, hi)`; `lanes` when the lanes share it, else a lane takes `vector` neighbours a
    round where that divides it. `fixed`: a constant number of slots, some of them outside. There are `most` points at
    most, where that is known beside the ends. Raises UnsupportedError for lanes that share what may be of any width."""
    width = simplify(Binary("-", hi, lo), ranges)
    known = constant_value(width)
    largest = known if known is not None else _largest(lo, hi, ranges, most)
    lane_count = lanes.count if lanes is not None else 1
    if lanes is not None:
        vector = lanes.vector
    elif not known or known % vector:
        vector = 1
    count, exact = width, True
    if lanes is not None and largest is None:
        raise UnsupportedError(
            f"lanes lie along {name}, along which tiles have no largest width", hint="Plan for fixed sizes."
        )
    if largest is not None and (lanes is not None or fixed):
        whole = lane_count * vector
        count = Const(-(-max(0, largest) // whole))
        exact = known is not None and largest % whole == 0
    elif known is not None:
        count = Const(max(0, known) // vector)
    rounds, neighbours = f"#{name}_r", f"#{name}_v"
    r = Const(0) if count == Const(1) else Var(rounds)
    v = Const(0) if vector == 1 else Var(neighbours)
    at: Expr = r
    if lanes is not None:
        which = Binary("%", Binary("//", LANE, Const(lanes.step)), Const(lane_count))
        at = Binary("+", Binary("*", r, Const(lane_count)), simplify(which, ranges))
    offset = Binary("+", Binary("*", at, Const(vector)), v)
    slot = simplify(Binary("+", Binary("*", r, Const(vector)), v))
    counts: dict[str, Expr | int] = {rounds: count, neighbours: vector}
    inside = None if exact else below(simplify(offset), width, with_ranges(ranges, counts))
    return Axis(name, (rounds, count), (neighbours, vector), simplify(Binary("+", lo, offset), ranges), slot, inside)


def _largest(lo: Expr, hi: Expr, ranges: KnownRanges, most: int | None) -> int | None:
    return min((n for n in (bounds_of(Binary("-", hi, lo), ranges)[1], most) if n is not None), default=None)


def tile_axes(kernel: KernelIR, tile: Tile, ranges: KnownRanges, neighbours: Mapping[str, int]) -> tuple[Axis, ...]:
    """The axes of a tile, one an iterator, where lanes that share none take so many neighbours along some."""
    widths = [upper(extent, tile.target) for extent in tile.target.shape] if kernel.is_private(tile.target) else ()
    most = dict(zip(tile.expr.spatial, widths, strict=False))
    box = {name: (lo, hi) for name, lo, hi in tile.box}
    return tuple(
        axis(name, *box[name], ranges, axis_lanes(tile.lanes, name), fixed=name in most,
             vector=neighbours.get(name, 1), most=most.get(name))
        for name in (*tile.expr.spatial, *tile.expr.reduce)
    )  # fmt: skip


def array_axes(kernel: KernelIR, buffer: Buffer, ranges: KnownRanges, neighbours: int) -> tuple[Axis, ...]:
    """The axes of an array in registers, one a dimension, where lanes that share none take so many neighbours along the
    last."""
    held, last = kernel.held[buffer.name], len(buffer.shape) - 1
    return tuple(
        axis(f"{buffer.name}_{d}", lo, hi, ranges, axis_lanes(held, d), fixed=True,
             vector=neighbours if d == last and not held else 1, most=upper(buffer.shape[d], buffer))
        for d, (lo, hi) in enumerate(zip(buffer.lo, buffer.hi, strict=True))
    )  # fmt: skip


def axis_ranges(axes: Sequence[Axis], ranges: KnownRanges) -> KnownRanges:
    """The ranges with the loop variables of axes."""
    more: dict[str, Expr | int] = {}
    for each in axes:
        more |= {each.outer[0]: each.outer[1], each.inner[0]: each.inner[1]}
    return with_ranges(ranges, more)


def inside(axes: Sequence[Axis], access: Access | None = None) -> list[Expr]:
    """The conditions under which a lane has a point, along all axes or along those that an access names."""
    named = None if access is None else {name for each in access.index for name in variables(each)}
    return [each.inside for each in axes if each.inside is not None and (named is None or each.name in named)]


def innermost(counts: Mapping[str, int]) -> str:
    """The innermost of loops, variable -> count, that has several turns."""
    return next((variable for variable in reversed([*counts]) if counts[variable] > 1), "")
