"""The loops of a lane over its part of a tile or of a register buffer."""

from __future__ import annotations

from dataclasses import dataclass

from tilec.codegen.gpu.guards import below
from tilec.codegen.gpu.kernel_ir import LANE
from tilec.codegen.gpu.kernel_state import KernelState
from tilec.codegen.gpu.lanes import Lanes
from tilec.codegen.gpu.ranges import with_ranges
from tilec.errors import UnsupportedError
from tilec.ir.algebra import bounds_of, simplify
from tilec.ir.expr import Binary, Const, Expr, Var
from tilec.ir.known_ranges import KnownRanges

UNROLLED = 64
"""The longest loop that a pragma unrolls."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One dimension of a tile as a lane sees it: loops `outer` (rounds) and `inner` (neighbours), variable -> count.

    `position` is the point, `slot` its number among the lane's, both over the loop variables; `inside` holds where
    the lane has a point, None when it always does.
    """

    name: str
    outer: tuple[str, Expr]
    inner: tuple[str, int]
    position: Expr
    slot: Expr
    inside: Expr | None = None


def axis(
    state: KernelState,
    name: str,
    lo: Expr,
    hi: Expr,
    ranges: KnownRanges,
    lanes: Lanes | None,
    *,
    fixed: bool,
    vector: int = 1,
    most: int | None = None,
) -> Axis:
    """The axis of an interval `[lo, hi)`; `lanes` when the lanes share it, else a lane takes `vector` neighbours a
    round where that divides it. `fixed`: a constant number of slots, some of them outside. There are `most` points at
    most, where that is known beside the ends."""
    rounds, neighbours = (state.names.fresh(f"{state.names[name]}_{part}") for part in ("r", "v"))
    width = simplify(Binary("-", hi, lo), ranges)
    largest = int(width.value) if isinstance(width, Const) else _largest(lo, hi, ranges, most)
    lane_count = lanes.count if lanes is not None else 1
    vector = (
        lanes.vector
        if lanes is not None
        else vector
        if isinstance(width, Const) and largest and largest % vector == 0
        else 1
    )
    count: Expr = width
    exact = isinstance(width, Const)
    if lanes is not None and largest is None:
        raise UnsupportedError(
            f"kernel {state.kernel.name} has lanes along {name}, whose tiles have no largest width",
            hint="Plan for fixed sizes.",
        )
    if largest is not None and (lanes is not None or fixed):
        whole = lane_count * vector
        count = Const(-(-max(0, largest) // whole))
        exact = exact and largest % whole == 0
    elif isinstance(width, Const):
        count = Const(max(0, int(width.value)) // vector)
    else:
        exact = True
    r = Const(0) if count == Const(1) else Var(f"#{rounds}")
    v = Const(0) if vector == 1 else Var(f"#{neighbours}")
    state.names.assign({f"#{rounds}": rounds, f"#{neighbours}": neighbours})
    at: Expr = r
    if lanes is not None:
        which = Binary("%", Binary("//", LANE, Const(lanes.step)), Const(lane_count))
        at = Binary("+", Binary("*", r, Const(lane_count)), simplify(which, ranges))
    offset = Binary("+", Binary("*", at, Const(vector)), v)
    slot = simplify(Binary("+", Binary("*", r, Const(vector)), v))
    counts: dict[str, Expr | int] = {f"#{rounds}": count, f"#{neighbours}": vector}
    inside = None if exact else below(simplify(offset), width, with_ranges(ranges, counts))
    return Axis(
        name, (f"#{rounds}", count), (f"#{neighbours}", vector), simplify(Binary("+", lo, offset), ranges), slot, inside
    )


def _largest(lo: Expr, hi: Expr, ranges: KnownRanges, most: int | None) -> int | None:
    return min((n for n in (bounds_of(Binary("-", hi, lo), ranges)[1], most) if n is not None), default=None)


def axis_ranges(axes: tuple[Axis, ...], ranges: KnownRanges) -> KnownRanges:
    """The ranges with the loop variables of axes."""
    more: dict[str, Expr | int] = {}
    for each in axes:
        more |= {each.outer[0]: each.outer[1], each.inner[0]: each.inner[1]}
    return with_ranges(ranges, more)


def loops(state: KernelState, axes: tuple[Axis, ...], ranges: KnownRanges, *, unroll: bool) -> list[str]:
    """The heads of the loops over axes, rounds of all before neighbours of any; counts of 1 have none."""
    heads = [loop(state, *each.outer, ranges, unroll=unroll) for each in axes]
    heads += [loop(state, each.inner[0], Const(each.inner[1]), ranges, unroll=unroll) for each in axes]
    return [head for head in heads if head]


def loop(state: KernelState, variable: str, count: Expr, ranges: KnownRanges, *, unroll: bool, step: int = 1) -> str:
    """The head of one loop; empty for a count of 1."""
    if count == Const(1):
        return ""
    name = state.names[variable]
    pragma = "#pragma unroll\n" if unroll and isinstance(count, Const) and int(count.value) <= UNROLLED * step else ""
    advance = f"{name} += {step}" if step > 1 else f"++{name}"
    return f"{pragma}for (int {name} = 0; {name} < {state.text(count, ranges)}; {advance})"
