"""Sliding windows of convolution and pooling: positions, padding and output extents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.shapes import shape_text
from tilec.ir.algebra import bounds_of, simplify
from tilec.ir.expr import Const, Expr, constant_value
from tilec.ir.text import text_of

SPATIAL = {1: ("w",), 2: ("h", "w"), 3: ("d", "h", "w")}
KERNEL = {1: ("s",), 2: ("r", "s"), 3: ("q", "r", "s")}
"""Iterators over the positions of a window (`SPATIAL`) and over the elements inside it (`KERNEL`)."""


@dataclass(frozen=True, slots=True)
class WindowFunction:
    """A window along one dimension: kernel extent, stride, dilation, padding before and after, output extent."""

    size: Expr
    kernel: Expr
    stride: int
    dilation: int
    before: Expr
    after: Expr
    out: Expr

    def position(self, at: Expr, inside: Expr) -> Expr:
        """The index of the element `inside` the window `at`; outside the tensor in the padding."""
        return simplify(formula("at * s + i * d - p", at=at, s=self.stride, i=inside, d=self.dilation, p=self.before))


def windows(op: Op, sizes: Sequence[Expr], kernel: Sequence[Expr]) -> tuple[WindowFunction, ...]:
    """The windows along the spatial dimensions, from the attributes strides, dilations, pads, auto_pad and ceil_mode.

    Raises ConfigError for attributes that do not fit.
    """
    rank = len(sizes)
    if rank not in SPATIAL:
        raise op.unsupported(f"{rank} spatial dimensions", "One to three are supported.")
    strides = per_dimension(op, "strides", rank)
    dilations = per_dimension(op, "dilations", rank)
    if len(kernel) != rank or min((*strides, *dilations, *map(_least, kernel)), default=1) < 1:
        described = f"kernel {shape_text(kernel)}, strides {list(strides)}, dilations {list(dilations)}"
        raise op.invalid(f"{described} for rank {rank}")
    mode = op.text("auto_pad", "NOTSET")
    pads = op.integers("pads") or (0,) * (2 * rank)
    if len(pads) != 2 * rank:
        raise op.invalid(f"the attribute 'pads' has {len(pads)} entries, not {2 * rank}")
    result = []
    for d in range(rank):
        op.sizes.demand(formula("k >= 1", k=kernel[d]), "a window has elements")
        span = simplify(formula("(k - 1) * d + 1", k=kernel[d], d=dilations[d]))
        before, after = _padding(op, mode, sizes[d], span, strides[d], pads[d], pads[rank + d])
        out = _reach(sizes[d], span, strides[d], before, after, ceil=bool(op.integer("ceil_mode")))
        room = simplify(formula("e + b + a", e=sizes[d], b=before, a=after))
        known, least = constant_value(room), constant_value(span)
        if known is not None and least is not None and known < least:
            raise op.invalid(f"a window of {least} does not fit into dimension {d} of extent {text_of(sizes[d])}")
        if (known is None or least is None) and mode in ("NOTSET", "", "VALID"):
            op.sizes.demand(formula("room >= span", room=room, span=span), f"a window of {text_of(span)} fits")
        result.append(WindowFunction(sizes[d], kernel[d], strides[d], dilations[d], before, after, out))
    return tuple(result)


def _least(kernel: Expr) -> int:
    """An extent of a kernel, as far as it is known; one that varies is at least 1."""
    known = constant_value(kernel)
    return 1 if known is None else known


def per_dimension(op: Op, attribute: str, rank: int) -> tuple[int, ...]:
    """An attribute with one integer for each spatial dimension, 1 by default."""
    given = op.integers(attribute) or (1,) * rank
    if len(given) != rank:
        raise op.invalid(f"the attribute {attribute!r} has {len(given)} entries, not {rank}")
    return given


def _padding(op: Op, mode: str, size: Expr, span: Expr, stride: int, before: int, after: int) -> tuple[Expr, Expr]:
    if mode in ("NOTSET", ""):
        return Const(before), Const(after)
    if mode == "VALID":
        return Const(0), Const(0)
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise op.invalid(f"auto_pad is {mode!r}", "It must be NOTSET, SAME_UPPER, SAME_LOWER or VALID.")
    text = "maximum(((size + stride - 1) // stride - 1) * stride + span - size, 0)"
    total = simplify(formula(text, size=size, stride=stride, span=span))
    less, more = (simplify(formula(t, total=total)) for t in ("total // 2", "(total + 1) // 2"))
    return (less, more) if mode == "SAME_UPPER" else (more, less)


def _reach(size: Expr, span: Expr, stride: int, before: Expr, after: Expr, ceil: bool) -> Expr:
    """The number of windows; with `ceil` including one that begins inside the tensor or its front padding and extends
    beyond."""
    operands = {"size": size, "span": span, "stride": stride, "before": before, "after": after}
    room = simplify(formula("size + before + after - span", **operands))
    if not ceil:
        return simplify(formula("room // stride + 1", room=room, stride=stride))
    out = simplify(formula("(room + stride - 1) // stride + 1", room=room, stride=stride))
    late = simplify(formula("(out - 1) * stride - size - before", out=out, **operands))
    low, high = bounds_of(late)
    if high is not None and high < 0:
        return out
    if low is not None and low >= 0:
        return simplify(formula("out - 1", out=out))
    return simplify(formula("out - minimum(maximum(late + 1, 0), 1)", out=out, late=late))


def inside(window: WindowFunction, index: Expr, low: Expr | int = 0, high: Expr | int = 0) -> Expr:
    """Whether an index lies in the tensor, extended by `low` elements before and `high` after it."""
    text = "i >= -low and i < size + high"
    return formula(text, i=index, size=window.size, low=low, high=high)


def guarded(conditions: Sequence[Expr], value: Expr, otherwise: Expr) -> Expr:
    """`where(all conditions, value, otherwise)`."""
    if not conditions:
        return value
    every = conditions[0]
    for condition in conditions[1:]:
        every = formula("a and b", a=every, b=condition)
    return formula("where(c, value, otherwise)", c=every, value=value, otherwise=otherwise)
