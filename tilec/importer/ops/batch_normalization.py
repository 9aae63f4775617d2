"""Batch normalisation, with given statistics or, in training, with those of the batch."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.ops.movement import reshaped
from tilec.importer.ops.normalization import standardized
from tilec.importer.registry import operator
from tilec.importer.shapes import ShapeError, shape_text
from tilec.importer.value import Value
from tilec.ir.expr import Const

OPERANDS = ("scale", "shift", "mean", "variance")


@operator("BatchNormalization")
def _batch_normalization(op: Op) -> Value | Sequence[Value | None]:
    """Statistics are per channel; with `spatial` 0 (before opset 9) per element of a sample."""
    x = op.value(0)
    if x.rank < 2:
        raise ShapeError(f"an input {shape_text(x.shape)} without channels")
    channel_dims = (1,) if op.integer("spatial", 1) else tuple(range(1, x.rank))
    wide = "f64" if x.ttype == "f64" else "f32"
    operands: dict[str, Value] = {}
    for number, name in enumerate(OPERANDS):
        value = op.value(number + 1)
        if value.rank != len(channel_dims):
            raise ShapeError(f"{name} {shape_text(value.shape)} for an input {shape_text(x.shape)}")
        for extent, d in zip(value.shape, channel_dims, strict=True):
            op.require_same(extent, x.shape[d], "channels and their statistics")
        operands[name] = _typed(op, value, wide, f"{name}_wide")
    if op.integer("training_mode") or (op.opset < 14 and op.wants(1)):
        return _in_training(op, _typed(op, x, wide, "wide"), channel_dims, operands)
    return _given(op, x, channel_dims, operands)


def _typed(op: Op, value: Value, ttype: str, part: str) -> Value:
    return value if value.ttype == ttype else op.map(f"{ttype}(x)", x=value, part=part)


def _given(op: Op, x: Value, channel_dims: Sequence[int], operands: dict[str, Value]) -> Value:
    """`x * a + b` with a and b computed from the statistics alone."""
    scale, shift, mean, variance = (operands[name] for name in OPERANDS)
    factor = op.map("s / sqrt(v + e)", s=scale, v=variance, e=op.number("epsilon", 1e-5), part="factor")
    offset = op.map("b - m * f", b=shift, m=mean, f=factor, part="offset")
    axes = op.axes_of(x.shape)
    index = [axes[d].var for d in channel_dims]
    text = "x * f + b" if x.ttype == factor.ttype else f"{x.ttype}({factor.ttype}(x) * f + b)"
    body = formula(text, x=x.access([a.var for a in axes]), f=factor.at(index), b=offset.at(index))
    return op.emit(axes, body, x.ttype)


def _in_training(op: Op, x: Value, channel_dims: Sequence[int], operands: dict[str, Value]) -> list[Value | None]:
    """Normalisation by the batch's statistics, and running averages of the given ones; before opset 14 both are
    outputs."""
    summed = [d for d in range(x.rank) if d not in channel_dims]
    normal = standardized(op, x, summed, op.number("epsilon", 1e-5))
    shape = [extent if d in channel_dims else Const(1) for d, extent in enumerate(x.shape)]
    scale, shift = (reshaped(op, operands[name], shape, f"{name}_along") for name in ("scale", "shift"))
    ttype = op.value(0).ttype
    text = "x * f * s + b" if ttype == x.ttype else f"{ttype}(x * f * s + b)"
    results: list[Value | None] = [op.map(text, x=normal.centered, f=normal.inverse, s=scale, b=shift)]
    momentum = op.number("momentum", 0.9)
    batch = {"mean": normal.mean, "variance": normal.variance}
    for output, (name, statistic) in enumerate(batch.items(), 1):
        if not op.wants(output):
            results.append(None)
            continue
        vector = reshaped(op, statistic, operands[name].shape, f"{name}_vector")
        kind = op.value(output + 2).ttype
        text = "old * m + new * r" if kind == x.ttype else f"{kind}(old * m + new * r)"
        results.append(op.map(text, old=operands[name], new=vector, m=momentum, r=1.0 - momentum, output=output))
    for output, (name, statistic) in enumerate(batch.items(), 3):
        kind = op.value(output).ttype
        saved = reshaped(op, statistic, operands[name].shape, f"{name}_saved") if op.wants(output) else None
        results.append(saved if saved is None or kind == x.ttype else op.map(f"{kind}(x)", x=saved, output=output))
    return results
