"""Cumulative sums and products in a few passes, each joining runs of a fixed number of shorter runs."""

from __future__ import annotations

from math import ceil

from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.registry import operator
from tilec.importer.value import Value
from tilec.ir.expr import Const, Expr, constant_value
from tilec.ir.types import TTYPES

MAX_RUN = 64
"""Maximal number of runs that one pass joins."""

SYMBOLIC_RUNS = (16,) * 8
"""Runs joined by each pass over an axis of unknown length: enough for 2**32 elements."""

REDUCERS = {"CumSum": ("sum", 0), "CumProd": ("prod", 1)}


@operator(*REDUCERS)
def _cumulative(op: Op) -> Value:
    """After a pass each element joins `run` elements up to it, after the next one `run * run` of them, and so on.

    That takes n log n steps, and rounding errors grow with log n instead of n. Intermediate f16 and bf16 are f32.
    """
    x = op.value(0)
    known = op.constants(1)
    if known is None or len(known) != 1:
        raise op.invalid("the axis must have one element")
    axis = op.axis(known[0], x.rank)
    shift = 1 if op.integer("exclusive") else 0
    ttype = x.ttype
    if TTYPES[ttype].bits == 16 and TTYPES[ttype].kind == "float":
        x = op.map("f32(x)", x=x, part="wide")
    stride = 1
    runs = _runs(constant_value(x.shape[axis]))
    for number, run in enumerate(runs):
        part = f"run{number}" if number + 1 < len(runs) or ttype != x.ttype else ""
        x = _pass(op, x, axis, (run, stride, shift), part)
        stride, shift = stride * run, 0
    return x if x.ttype == ttype else op.map(f"{ttype}(x)", x=x)


def _pass(op: Op, x: Value, axis: int, steps: tuple[int, int, int], part: str) -> Value:
    """Join the elements at distances `shift + r * stride`, r < run; those outside of the axis are neutral."""
    run, stride, shift = steps
    reducer, neutral = REDUCERS[op.kind]
    axes = op.axes_of(x.shape)
    (r,) = op.builder.iterators("r", [Const(run)])
    backwards = bool(op.integer("reverse"))
    text = "i + (r * stride + shift)" if backwards else "i - (r * stride + shift)"
    at = formula(text, i=axes[axis].var, r=r.var, stride=stride, shift=shift)
    inside: Expr = formula("at < e", at=at, e=x.shape[axis]) if backwards else formula("at >= 0", at=at)
    if constant_value(x.shape[axis]) is None:
        # Strides may be far longer than the axis: the window of the reads must not grow with them.
        at = formula("minimum(at, e - 1)" if backwards else "maximum(at, 0)", at=at, e=x.shape[axis])
    element = x.access([at if d == axis else a.var for d, a in enumerate(axes)])
    miss = float(neutral) if TTYPES[x.ttype].kind == "float" else neutral
    body = formula("where(inside, x, miss)", inside=inside, x=element, miss=miss)
    return op.emit(axes, body, x.ttype, [r], reducer, part=part)


def _runs(length: int | None) -> tuple[int, ...]:
    """The runs that the passes join, nearly equal, with a product of at least the length of the axis."""
    if length is None:
        return SYMBOLIC_RUNS
    passes = 1
    while MAX_RUN**passes < length:
        passes += 1
    run = max(1, round(length ** (1 / passes)))
    run += run**passes < length
    return (*(run,) * (passes - 1), max(1, ceil(length / run ** (passes - 1))))
