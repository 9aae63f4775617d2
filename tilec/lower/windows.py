"""Windows: order, intersections with the tensor, and the buffers that store them."""

from __future__ import annotations

from math import prod

from tilec.ir.expr import Binary, Call, Const, Expr
from tilec.ir.program import Buffer
from tilec.ir.types import TTYPES
from tilec.lower.lowering_context import LoweringContext, Window

BOUNDED_BYTES = 64 << 20
"""Most bytes of a buffer that has room for the upper ends of sizes: extents that are numbers make faster code, and
what no run touches costs addresses alone."""

LONGEST_BOUND = 512
"""Longest extent of a larger buffer that is a number where sizes decide it."""


def leaves(s: LoweringContext, window: Window, shape: tuple[Expr, ...]) -> bool:
    """Whether a window may reach outside its tensor."""
    return not all(s.sizes.stays(lo, hi, extent) for (lo, hi), extent in zip(window, shape, strict=True))


def contains(s: LoweringContext, outer: Window, inner: Window) -> bool:
    """Whether a window certainly contains another one."""
    return outer == inner or all(s.sizes.covers(*whole, *part) for whole, part in zip(outer, inner, strict=True))


def cut(s: LoweringContext, window: Window, limit: Window) -> Window:
    """The intersection of two windows."""
    return tuple((s.sizes.maximum(a, c), s.sizes.minimum(b, d)) for (a, b), (c, d) in zip(window, limit, strict=True))


def buffer(s: LoweringContext, tensor: str, level: int, window: Window) -> Buffer:
    """A new buffer for a window, with the layout and the number of copies in the plan. Its extents are numbers, but for
    a large one in a cache, which is as large as symbols make it."""
    name, ttype = s.levels[level].name, s.ttype(tensor, level)
    widths = [Binary("-", hi, lo) for lo, hi in window]
    shape = [s.sizes.largest(width) for width in widths]
    known = [extent.value for extent in shape if isinstance(extent, Const)]
    large = len(known) < len(shape) or prod(known) * TTYPES[ttype].bits // 8 > BOUNDED_BYTES
    if large and s.levels[level].managed == "implicit":  # what a scratchpad holds must be known to fit
        shape = [s.sizes.in_symbols(w) if _is_long(n) else n for w, n in zip(widths, shape, strict=True)]
    shape = [_within(s, *each) for each in zip(shape, window, s.shapes[tensor], strict=True)]
    return Buffer(
        name=s.names.new(f"{tensor}_{name}"),
        tensor=tensor,
        level=name,
        lo=tuple(lo for lo, _ in window),
        hi=tuple(hi for _, hi in window),
        shape=tuple(s.sizes.size(Call("maximum", (extent, Const(0)))) for extent in shape),
        ttype=ttype,
        layout=s.variant.layouts.get(name, {}).get(tensor, ()),
        copies=s.variant.copies.get(name, {}).get(tensor, 1),
        pad=s.variant.pads.get(name, {}).get(tensor, 0),
        swizzle=s.variant.swizzles.get(name, {}).get(tensor, 0),
    )


def _within(s: LoweringContext, width: Expr, ends: tuple[Expr, Expr], extent: Expr) -> Expr:
    """A width in symbols that exceeds no extent of the tensor where the window stays in it: chains of windows that
    reach back from every position, as those of running sums of an unknown length, are cut at the beginning."""
    if isinstance(width, Const) or not s.sizes.stays(*ends, extent):
        return width
    return s.sizes.minimum(width, extent)


def _is_long(extent: Expr) -> bool:
    return isinstance(extent, Const) and extent.value > LONGEST_BOUND


def window_of(allocated: Buffer) -> Window:
    """The window of a buffer."""
    return tuple(zip(allocated.lo, allocated.hi, strict=True))
