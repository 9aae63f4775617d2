"""Layer normalisations that onnxruntime's optimiser has joined with residual sums and embeddings."""

from __future__ import annotations

from tilec.importer.compose import applied, every_result
from tilec.importer.operator import Op
from tilec.importer.registry import CONTRIB, operator
from tilec.importer.shapes import ShapeError, require_same, shape_text
from tilec.importer.value import Value

_EPSILON = 1e-12
"""The default of the operators' `epsilon`."""


def _residual(op: Op, bias: Value | None) -> Value:
    """The input plus the skip connection plus the bias."""
    x, skip = op.value(0), op.value(1)
    if not 2 <= skip.rank <= x.rank <= 3:
        raise ShapeError(f"an input {shape_text(x.shape)} and a skip connection {shape_text(skip.shape)}")
    if bias is None:
        return op.map("x + s", x=x, s=skip, output=3 if op.wants(3) else 0, part="" if op.wants(3) else "sum")
    return op.map("x + s + b", x=x, s=skip, b=bias, output=3 if op.wants(3) else 0, part="" if op.wants(3) else "sum")


@operator("SkipLayerNormalization", domain=CONTRIB)
def _skip_layer_normalization(op: Op) -> tuple[Value | None, ...]:
    """The normalised sum, its mean and inverse deviation, and the sum."""
    total = _residual(op, op.optional(4))
    inputs = (total, op.value(2), op.optional(3))
    epsilon = op.number("epsilon", _EPSILON)
    result, mean, inverse = every_result(op, "LayerNormalization", *inputs, epsilon=epsilon, results=3)
    return result, mean, inverse, total


@operator("SkipSimplifiedLayerNormalization", domain=CONTRIB)
def _skip_simplified(op: Op) -> tuple[Value | None, ...]:
    """The sum divided by its root mean square, and the sum; statistics are an output of training only."""
    if op.wants(1) or op.wants(2):
        raise op.unsupported("mean and inverse deviation as outputs", "onnxruntime computes them in training only.")
    total = _residual(op, op.optional(3))
    return (
        applied(op, "RMSNormalization", total, op.value(2), epsilon=op.number("epsilon", _EPSILON)),
        None,
        None,
        total,
    )


@operator("EmbedLayerNormalization", domain=CONTRIB)
def _embed_layer_normalization(op: Op) -> tuple[Value | None, ...]:
    """The normalised sum of word, position and segment embeddings; the number of tokens of each sentence; the sum."""
    ids, segments, words, positions = op.value(0), op.optional(1), op.value(2), op.value(3)
    if ids.rank != 2:
        raise ShapeError(f"input_ids {shape_text(ids.shape)}, not [batch, sequence]")
    batch, length = ids.shape
    total = applied(op, "Gather", words, ids, part="word")
    where = op.optional(8)
    if where is None:
        where = op.indices(length, 1, 2)
    position = applied(op, "Gather", positions, where, part="position")
    parts = {"w": total, "p": position}
    if segments is not None:
        require_same(segments.shape[1], length, "segment_ids and input_ids")
        parts["s"] = applied(op, "Gather", op.value(4), segments, part="segment")
    output = 2 if op.wants(2) else 0
    total = op.elementwise(" + ".join(parts), parts, part="" if output else "sum", output=output)
    normal = applied(op, "LayerNormalization", total, op.value(5), op.value(6), epsilon=op.number("epsilon", _EPSILON))
    mask = op.optional(7)
    if mask is None:
        return normal, op.full((batch,), 0, "i32", output=1) if op.wants(1) else None, total
    number = op.reduce("sum", (1,), "i32(m == 1)", keep=False, output=1, m=mask) if op.wants(1) else None
    return normal, number, total
