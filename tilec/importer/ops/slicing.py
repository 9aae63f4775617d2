"""Slices and splits, with limits that may be expressions of the symbols."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.registry import operator
from tilec.importer.shapes import shape_text, solve_reshape
from tilec.importer.value import Value
from tilec.ir.algebra import bounds_of, simplify
from tilec.ir.expr import Binary, Const, Expr, constant_value
from tilec.ir.text import text_of

FAR = 1 << 31
"""Limits from here on mean the end of the dimension, for any extent."""


ENDLESS = ((1 << 31) - 1, (1 << 63) - 1)
"""Ends that onnxruntime treats as the last element in the direction of the step."""


def sliced(op: Op, x: Value, starts: dict[int, tuple[Expr, int, Expr]], output: int = 0) -> Value:
    """`x` restricted along some dimensions: dimension -> (first index, step, extent)."""
    if all(start == Const(0) and step == 1 and extent == x.shape[d] for d, (start, step, extent) in starts.items()):
        return x
    axes = op.axes_of([starts[d][2] if d in starts else extent for d, extent in enumerate(x.shape)])
    index = [
        formula("start + i * step", start=starts[d][0], i=a.var, step=starts[d][1]) if d in starts else a.var
        for d, a in enumerate(axes)
    ]
    return op.emit(axes, x.at(index), x.ttype, output=output)


@operator("Slice")
def _slice(op: Op) -> Value:
    x = op.value(0)
    starts, ends = op.setting(1, "starts"), op.setting(2, "ends")
    if starts is None or ends is None or len(starts) != len(ends):
        raise op.invalid("starts and ends do not fit each other")
    given = op.integers("axes") or op.constants(3) or tuple(range(len(starts)))
    steps = op.constants(4) or (1,) * len(starts)
    if len(given) != len(starts) or len(steps) != len(starts):
        raise op.invalid(f"{len(starts)} starts, {len(given)} axes, {len(steps)} steps")
    parts: dict[int, tuple[Expr, int, Expr]] = {}
    for start, end, axis, step in zip(starts, ends, given, steps, strict=True):
        if step == 0:
            raise op.invalid("a step of 0")
        d = op.axis(axis, x.rank)
        parts[d] = _range(op, x.shape[d], start, end, step)
    return sliced(op, x, parts)


def _range(op: Op, size: Expr, start: Expr, end: Expr, step: int) -> tuple[Expr, int, Expr]:
    """First index, step and number of elements. Backwards, a start before the first element is the first element."""
    low, high = (Const(0), size) if step > 0 else (Const(-1), simplify(formula("size - 1", size=size)))
    first = _clamped(op, start, size, Const(0), high)
    last = low if step < 0 and constant_value(end) in ENDLESS else _clamped(op, end, size, low, high)
    text = "(last - first + step - 1) // step" if step > 0 else "(first - last - step - 1) // (-step)"
    extent = simplify(formula(f"maximum({text}, 0)", first=first, last=last, step=step))
    return first, step, extent


def _clamped(op: Op, place: Expr, size: Expr, low: Expr, high: Expr) -> Expr:
    """A limit, counted from the end where negative, inside [low, high]. One that sizes decide is assumed to count from
    the end where it is at most 0, and from the front else."""
    known = constant_value(place)
    if known is not None and abs(known) >= FAR:
        return high if known > 0 else low
    least, most = bounds_of(place)
    if most is not None and most <= 0 and place != Const(0):
        op.sizes.assume(Binary("<=", place, Const(-1)), f"the bound {text_of(place)} counts from the end")
        place = simplify(formula("size + place", size=size, place=place))
    elif least is None or least < -1:
        op.sizes.assume(Binary(">=", place, Const(0)), f"the bound {text_of(place)} counts from the front")
    # A limit that may be -1 is a size minus 1 of a dimension that is then empty.
    return simplify(formula("minimum(maximum(place, low), high)", place=place, low=low, high=high))


@operator("Split")
def _split(op: Op) -> list[Value]:
    x = op.value(0)
    axis = op.axis(op.integer("axis"), x.rank)
    sizes = op.setting(1, "split")
    ends = _ends(op, x.shape[axis]) if sizes is None else _added(op, x, axis, sizes)
    if len(ends) <= len(op.outputs):
        raise op.invalid(f"{len(ends) - 1} parts for {len(op.outputs)} outputs")
    parts = [(a, 1, simplify(formula("b - a", a=a, b=b))) for a, b in pairwise(ends)]
    return [sliced(op, x, {axis: part}, output=n) for n, part in enumerate(parts[: len(op.outputs)])]


def _added(op: Op, x: Value, axis: int, sizes: Sequence[Expr]) -> list[Expr]:
    """The ends of parts of these sizes, 0 first."""
    ends: list[Expr] = [Const(0)]
    for size in sizes:
        ends.append(simplify(formula("end + size", end=ends[-1], size=size)))
    op.require_same(ends[-1], x.shape[axis], f"the parts of axis {axis} of {shape_text(x.shape)}")
    return ends


def _ends(op: Op, size: Expr) -> list[Expr]:
    """The ends of equal parts, 0 first; since opset 18 the last one may be smaller."""
    number = op.integer("num_outputs", len(op.outputs))
    if number != len(op.outputs):
        raise op.invalid(f"num_outputs is {number}, the node has {len(op.outputs)} outputs")
    if op.opset >= 18:
        part = simplify(formula("(size + n - 1) // n", size=size, n=number))
        return [simplify(formula("minimum(part * i, size)", part=part, i=i, size=size)) for i in range(number + 1)]
    part = solve_reshape((size,), (Const(number), Const(-1)), zero_copies=False, sizes=op.sizes)[1]
    return [simplify(formula("part * i", part=part, i=i)) for i in range(number + 1)]
