"""Windows: hulls, intersections with the tensor, and the buffers that store them."""

from __future__ import annotations

from collections.abc import Iterable

from tilec.ir.expr import Binary, Call, Const, Expr
from tilec.ir.program import Buffer
from tilec.lower.lowering_context import Interval, LoweringContext, Window


def is_empty(window: Window) -> bool:
    """Whether a window certainly has no elements."""
    return any(lo == hi for lo, hi in window)


def hull(s: LoweringContext, windows: Iterable[Window]) -> Window | None:
    """The smallest window around all windows, empty ones left out; None for no window at all."""
    result: Window | None = None
    for window in windows:
        if result is None or is_empty(result):
            result = window
        elif not is_empty(window):
            result = tuple(
                (s.sizes.minimum(a, c), s.sizes.maximum(b, d)) for (a, b), (c, d) in zip(result, window, strict=True)
            )
    return result


def leaves(s: LoweringContext, window: Window, shape: tuple[Expr, ...]) -> bool:
    """Whether a window may reach outside its tensor."""
    return not all(
        s.sizes.at_most(Const(0), lo) and s.sizes.at_most(hi, extent)
        for (lo, hi), extent in zip(window, shape, strict=True)
    )


def contains(s: LoweringContext, outer: Window, inner: Window) -> bool:
    """Whether a window certainly contains another one."""
    return outer == inner or all(
        s.sizes.at_most(a, c) and s.sizes.at_most(d, b) for (a, b), (c, d) in zip(outer, inner, strict=True)
    )


def cut(s: LoweringContext, window: Window, limit: Window) -> Window:
    """The intersection of two windows."""
    return tuple((s.sizes.maximum(a, c), s.sizes.minimum(b, d)) for (a, b), (c, d) in zip(window, limit, strict=True))


def inside(s: LoweringContext, interval: Interval, extent: Expr) -> Interval:
    """An interval in `[0, extent)` that contains the part of `interval` in it.

    Of constant width where possible: an interval that sticks out is moved back rather than cut.
    """
    lo, hi = interval
    if s.sizes.at_most(Const(0), lo) and s.sizes.at_most(hi, extent):
        return interval
    width = s.sizes.subtract(hi, lo)
    if isinstance(width, Const) and isinstance(extent, Const):
        if width.value >= extent.value:
            return Const(0), extent
        start = s.sizes.maximum(lo, Const(0))
        start = s.sizes.position(s.sizes.minimum(start, Const(extent.value - width.value)))
        return start, s.sizes.size(Binary("+", start, width))
    return s.sizes.maximum(lo, Const(0)), s.sizes.minimum(hi, extent)


def widened_window(s: LoweringContext, interval: Interval, box: Interval, extent: Expr) -> Interval:
    """An interval that may leave the tensor, enlarged to contain also the `box` inside the tensor."""
    lo, hi = interval
    if s.sizes.at_most(lo, box[0]) and s.sizes.at_most(box[1], hi):
        return interval
    below, above = s.sizes.smallest(lo), s.sizes.smallest(Binary("-", extent, hi))
    if below is not None and above is not None:
        lo, hi = s.sizes.add(lo, Const(-max(0, -above))), s.sizes.add(hi, Const(max(0, -below)))
    return s.sizes.minimum(lo, box[0]), s.sizes.maximum(hi, box[1])


def buffer(s: LoweringContext, tensor: str, level: int, window: Window) -> Buffer:
    """A new buffer for a window, with the layout and the number of copies in the plan."""
    name = s.levels[level].name
    widths = (s.sizes.largest(Binary("-", hi, lo)) for lo, hi in window)
    return Buffer(
        name=s.names.new(f"{tensor}_{name}"),
        tensor=tensor,
        level=name,
        lo=tuple(lo for lo, _ in window),
        hi=tuple(hi for _, hi in window),
        shape=tuple(s.sizes.size(Call("maximum", (width, Const(0)))) for width in widths),
        ttype=s.tensors[tensor].ttype,
        layout=s.variant.layouts.get(name, {}).get(tensor, ()),
        copies=s.variant.copies.get(name, {}).get(tensor, 1),
    )


def window_of(allocated: Buffer) -> Window:
    """The window of a buffer."""
    return tuple(zip(allocated.lo, allocated.hi, strict=True))
