"""Operators that reverse or shift each sample of a batch by a number of its own."""

from __future__ import annotations

from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.ops.gather import require_range
from tilec.importer.registry import operator
from tilec.importer.value import Value
from tilec.ir.algebra import bounds_of, simplify
from tilec.ir.expr import Binary, Call, Const, Expr


def _of_sample(value: Value, sample: Expr) -> Expr:
    """The number of a sample as an index."""
    number = value.at([sample])
    return number if value.ttype == "i64" or isinstance(number, Const) else Call("i64", (number,))


@operator("ReverseSequence")
def _reverse_sequence(op: Op) -> Value:
    """The first `sequence_lens[b]` elements of sample b reversed, the others unchanged."""
    x, lengths = op.value(0), op.value(1)
    batch, time = op.integer("batch_axis", 1), op.integer("time_axis", 0)
    if x.rank < 2 or sorted((batch, time)) != [0, 1] or lengths.rank != 1:
        raise op.invalid("batch_axis and time_axis must be 0 and 1 in either order, sequence_lens a vector")
    op.require_same(lengths.shape[0], x.shape[batch], "sequence_lens and the batch")
    require_range(op, lengths, simplify(formula("e + 1", e=x.shape[time])), wraps=False)
    axes = op.axes_of(x.shape)
    length = formula("minimum(n, e)", n=_of_sample(lengths, axes[batch].var), e=x.shape[time])
    at = formula("where(t < n, n - 1 - t, t)", t=axes[time].var, n=length)
    return op.emit(axes, x.at([at if d == time else a.var for d, a in enumerate(axes)]), x.ttype)


@operator("TensorScatter")
def _tensor_scatter(op: Op) -> Value:
    """A cache into which sample b writes its update from `write_indices[b]` on, wrapping around in circular mode."""
    past, update, starts = op.value(0), op.value(1), op.optional(2)
    axis = op.axis(op.integer("axis", -2), past.rank)
    if update.rank != past.rank or axis == 0:
        raise op.invalid(f"an update of rank {update.rank} along axis {axis} of a cache of rank {past.rank}")
    for d in range(past.rank):
        if d != axis:
            op.require_same(past.shape[d], update.shape[d], f"dimension {d} of cache and update")
    if starts is not None and starts.rank != 1:
        raise op.invalid(f"write_indices of rank {starts.rank}", "It must be a vector.")
    if starts is not None:
        op.require_same(starts.shape[0], past.shape[0], "write_indices and the batch")
    most = bounds_of(Binary("-", past.shape[axis], update.shape[axis]))[1]
    if most is not None and most < 0:
        raise op.invalid("the update is longer than the cache")
    mode = op.text("mode", "linear")
    if mode not in ("linear", "circular"):
        raise op.invalid(f"mode is {mode!r}", "It must be linear or circular.")
    if starts is not None and mode == "linear":
        room = formula("e - u + 1", e=past.shape[axis], u=update.shape[axis])
        require_range(op, starts, simplify(room), wraps=False)
    if update.shape[axis] == Const(0):
        return past
    axes = op.axes_of(past.shape)
    place = [a.var for a in axes]
    start = Const(0) if starts is None else _of_sample(starts, place[0])
    offset = formula("t - start" if starts is not None else "t", t=place[axis], start=start)
    if mode == "circular":
        offset = formula("offset % e", offset=offset, e=past.shape[axis])
    size = update.shape[axis]
    inside = offset if starts is None else formula("maximum(minimum(i, e - 1), 0)", i=offset, e=size)
    body = formula(
        "where(i >= 0 and i < e, new, old)",
        i=offset,
        e=size,
        new=update.access([inside if d == axis else i for d, i in enumerate(place)]),
        old=past.access(place),
    )
    return op.emit(axes, body, past.ttype)
