"""Store regions: the part of its window that a tile stores, so that overlapping windows store every element once."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.ir.expr import Binary, Call, Const, Expr, Var, substitute, variables
from tilec.ir.group_windows import is_partition
from tilec.lower.lowering_context import Interval, LoweringContext, Window
from tilec.lower.split import LoopHead, Tiling


def store_region(
    s: LoweringContext, window: Window, region: Window, tiling: Tiling, box: Sequence[Interval]
) -> tuple[Window, Window]:
    """The window of a tensor that leaves its part, enlarged where necessary, and the region of it that this tile
    stores.

    `region` is the union that all tiles must store and `box` gives the final node's untiled intervals. A tile stores
    its window without that of the tile before it; loops that do not move the window store in their first iteration
    only. Where tiles are not a partition of each dimension by one loop, the first tile stores the whole region.
    """
    loops = {head.variable: head for head in tiling.heads}
    used = [_variables(s, interval) & loops.keys() for interval in window]
    owned: list[Interval] = []
    if not is_partition(used):
        window, owned = region, list(region)
        moving: frozenset[str] = frozenset()
    else:
        moving = frozenset().union(*used) if used else frozenset()
        grown: list[Interval] = []
        for interval, whole, names in zip(window, region, used, strict=True):
            if names:
                (name,) = names
                wide, stored = _cut(s, interval, whole, loops[name], tiling, box)
            else:
                wide = stored = whole
            grown.append(_around(s, interval, wide))
            owned.append(stored)
        window = tuple(grown)
    idle = [name for name in loops if name not in moving and loops[name].extent != Const(1)]
    if idle and owned:
        lo, hi = owned[0]
        owned[0] = (lo, Call("where", (_all_zero(idle), hi, lo)))
    return window, tuple(owned)


def first_tile(tiling: Tiling) -> Expr:
    """1 in the first of all tiles, 0 in the others."""
    loops = [head.variable for head in tiling.heads if head.extent != Const(1)]
    return Call("where", (_all_zero(loops), Const(1), Const(0))) if loops else Const(1)


def _around(s: LoweringContext, interval: Interval, stored: Interval) -> Interval:
    lo = interval[0] if s.sizes.at_most(interval[0], stored[0]) else s.sizes.minimum(interval[0], stored[0])
    hi = interval[1] if s.sizes.at_most(stored[1], interval[1]) else s.sizes.maximum(interval[1], stored[1])
    return lo, hi


def _cut(
    s: LoweringContext, interval: Interval, region: Interval, loop: LoopHead, tiling: Tiling, box: Sequence[Interval]
) -> tuple[Interval, Interval]:
    """The interval that the window must contain, and the part of it that is stored."""
    for (_, piece), whole in zip(tiling.pieces.items(), box, strict=True):
        if piece.piece == interval and whole == region:
            stored = (piece.own, interval[1])
            return stored, stored
    before = tuple(_at(s, end, loop, Binary("-", Var(loop.variable), Const(1))) for end in interval)
    here = tuple(s.sizes.size(s.sizes.resolve(end)) for end in interval)
    first, last = Const(0), Binary("-", loop.extent, Const(1))
    if s.sizes.at_most(before[1], here[1]):
        lo, hi = before[1], interval[1]
        lo = _unless(s, loop, first, lo, region[0])
        hi = _unless(s, loop, last, hi, region[1])
    elif s.sizes.at_most(here[0], before[0]):
        lo, hi = interval[0], before[0]
        lo = _unless(s, loop, last, lo, region[0])
        hi = _unless(s, loop, first, hi, region[1])
    else:
        return region, (region[0], Call("where", (_all_zero([loop.variable]), region[1], region[0])))
    # A region that is not the hull of all tiles cuts the tiles at its ends.
    stored = s.sizes.maximum(lo, region[0]), s.sizes.minimum(hi, region[1])
    return stored, stored


def _unless(s: LoweringContext, loop: LoopHead, position: Expr, end: Expr, other: Expr) -> Expr:
    """`end`, or `other` in the iteration `position` if the two differ there."""
    if _at(s, end, loop, position) == other:
        return end
    return Call("where", (Binary("==", Var(loop.variable), s.sizes.size(position)), other, end))


def _at(s: LoweringContext, expr: Expr, loop: LoopHead, value: Expr) -> Expr:
    return s.sizes.size(substitute(s.sizes.resolve(expr), {loop.variable: value}))


def _variables(s: LoweringContext, interval: Interval) -> frozenset[str]:
    return variables(s.sizes.resolve(interval[0])) | variables(s.sizes.resolve(interval[1]))


def _all_zero(names: Sequence[str]) -> Expr:
    condition: Expr | None = None
    for name in names:
        zero = Binary("==", Var(name), Const(0))
        condition = zero if condition is None else Binary("and", condition, zero)
    return condition or Const(True)
