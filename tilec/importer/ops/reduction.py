"""Reductions over axes from an attribute or an input."""

from __future__ import annotations

from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.ops.movement import reshaped
from tilec.importer.ops.softmax import log_sum_exp
from tilec.importer.registry import operator
from tilec.importer.sums import wide
from tilec.importer.value import Value
from tilec.ir.expr import Binary, Const, constant_value
from tilec.ir.types import TTYPES

REDUCTIONS: dict[str, tuple[str, str, str]] = {
    "ReduceL1": ("sum", "abs(x)", "x"),
    "ReduceL2": ("sum", "x * x", "sqrt(x)"),
    "ReduceLogSum": ("sum", "x", "log(x)"),
    "ReduceMax": ("max", "x", "x"),
    "ReduceMin": ("min", "x", "x"),
    "ReduceProd": ("prod", "x", "x"),
    "ReduceSum": ("sum", "x", "x"),
    "ReduceSumSquare": ("sum", "x * x", "x"),
}
"""Operator -> reduction, its body, formula of the result."""


def _axes(op: Op, x: Value) -> tuple[int, ...] | None:
    """The axes to reduce; None when nothing is reduced (no axes, and `noop_with_empty_axes`)."""
    axes = op.axes(1, "axes", x.rank)
    if axes is None and not op.integer("noop_with_empty_axes"):
        return tuple(range(x.rank))
    return axes


@operator(*REDUCTIONS)
def _reduction(op: Op) -> Value:
    """Roots and logarithms of integers are computed in f64 and truncated, as in onnxruntime."""
    x = op.value(0)
    reducer, before, after = REDUCTIONS[op.kind]
    axes = _axes(op, x)
    keep = bool(op.integer("keepdims", 1))
    cast = TTYPES[x.ttype].kind != "float" and after != "x"
    given = op.map("f64(x)", x=x, part="wide") if cast else x
    last = f"{x.ttype}({after})" if cast else after
    if axes is None:
        # Nothing is reduced; the elementwise parts of the operator still apply.
        return op.map(last.replace("x", f"({before})"), x=given) if (before, after) != ("x", "x") else x
    if last == "x":
        return op.reduce(reducer, axes, before, keep, x=x)
    total = op.reduce(reducer, axes, wide(before, given.ttype), keep, x=given, part="sum")
    return op.map(last if cast else after, x.ttype, x=total)


@operator("ReduceMean")
def _mean(op: Op) -> Value:
    """The mean; of no elements it is 0, as in onnxruntime."""
    x = op.value(0)
    axes = _axes(op, x)
    if axes is None:
        return x
    keep = bool(op.integer("keepdims", 1))
    if any(x.shape[d] == Const(0) for d in axes):
        return op.reduce("sum", axes, keep=keep, x=x)
    return op.mean(axes, x, keep=keep)


@operator("ReduceLogSumExp")
def _log_sum_exp(op: Op) -> Value:
    x = op.value(0)
    axes = _axes(op, x)
    if axes is None:
        return x
    keep = bool(op.integer("keepdims", 1))
    if TTYPES[x.ttype].kind == "float":
        return log_sum_exp(op, x, axes, keep)
    # Every power is truncated, as in onnxruntime.
    largest = op.reduce("max", axes, x=x, part="max")
    powers = op.reduce("sum", axes, f"{x.ttype}(exp(f64(x - m)))", x=x, m=largest, part="sum")
    logarithm = f"where(s == 0, m, {x.ttype}(log(f64(s)) + f64(m)))"
    result = op.map(logarithm, s=powers, m=largest, part="" if keep else "kept")
    return result if keep else reshaped(op, result, [e for d, e in enumerate(x.shape) if d not in axes])


@operator("ArgMax", "ArgMin")
def _arg(op: Op) -> Value:
    """The extremum along the axis, then the first (or last) index that has it; a NaN counts as the extremum."""
    x = op.value(0)
    axis = op.axis(op.integer("axis"), x.rank)
    if constant_value(x.shape[axis]) is None:
        op.sizes.assume(Binary(">=", x.shape[axis], Const(1)), "the place of an extremum")
    extremum = op.reduce("max" if op.kind == "ArgMax" else "min", (axis,), x=x, part="extremum")
    last = bool(op.integer("select_last_index"))
    keep = bool(op.integer("keepdims", 1))
    axes = op.axes_of(x.shape)
    (r,) = op.builder.iterators("r", [x.shape[axis]])
    index = [r.var if d == axis else a.var for d, a in enumerate(axes)]
    at = x.access(index)
    best = extremum.access([Const(0) if d == axis else i for d, i in enumerate(index)])
    hit = "x == m or isnan(x)" if TTYPES[x.ttype].kind == "float" else "x == m"
    miss = formula("-1 * e" if last else "e", e=x.shape[axis])
    body = formula(f"where({hit}, r, miss)", x=at, m=best, r=r.var, miss=miss)
    ones = op.builder.iterators([axes[axis].var.name], [Const(1)])
    spatial = [*axes[:axis], *(ones if keep else ()), *axes[axis + 1 :]]
    return op.emit(spatial, body, "i64", [r], "max" if last else "min")
