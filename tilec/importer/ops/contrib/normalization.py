"""Layer normalisations that onnxruntime's optimiser has joined with residual sums and embeddings."""

from __future__ import annotations

from collections.abc import Callable

from tilec.importer.broadcasting import require_fit
from tilec.importer.compose import applied, every_result
from tilec.importer.operator import Op
from tilec.importer.ops.contrib.quantized_elementwise import real
from tilec.importer.ops.gather import require_range
from tilec.importer.registry import CONTRIB, operator
from tilec.importer.shapes import ShapeError, shape_text
from tilec.importer.value import Value

_EPSILON = 1e-12
"""The default of the operators' `epsilon`."""


def _residual(op: Op, bias: Value | None) -> Value:
    """The input plus the skip connection plus the bias."""
    x, skip = op.value(0), op.value(1)
    if not 2 <= skip.rank <= x.rank <= 3:
        raise ShapeError(f"an input {shape_text(x.shape)} and a skip connection {shape_text(skip.shape)}")
    for term in (skip, bias):
        if term is not None:
            require_fit(term.shape, x.shape, op.sizes)
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
    """Inputs 5 and 6 are scale and shift of the normalisation, 7 the mask, 8 the positions."""
    return _embedded(op, op.value(5), op.value(6), op.optional(8), lambda rows, _: rows)


@operator("QEmbedLayerNormalization", domain=CONTRIB)
def _quantized_embed_layer_normalization(op: Op) -> tuple[Value | None, ...]:
    """Five tables of small integers from input 2 on, their scales from input 8 on, their zero points from 13 on."""

    def number(x: Value, table: int) -> Value:
        return real(op, x, op.value(8 + table), op.optional(13 + table), f"real{table}")

    return _embedded(op, number(op.value(5), 3), number(op.value(6), 4), None, number)


def _embedded(
    op: Op, gamma: Value, beta: Value, where: Value | None, number: Callable[[Value, int], Value]
) -> tuple[Value | None, ...]:
    """The normalised sum of word, position and segment embeddings; the number of tokens of each sentence; the sum.

    `number` converts rows looked up in table 0, 1 or 2 to real numbers.
    """
    ids, segments = op.value(0), op.optional(1)
    if ids.rank != 2:
        raise ShapeError(f"input_ids {shape_text(ids.shape)}, not [batch, sequence]")
    batch, length = ids.shape
    positions = op.indices(length, 1, 2) if where is None else where
    rows: dict[str, Value | None] = {"word": ids, "position": positions, "segment": segments}
    for table, index in enumerate(rows.values()):
        if index is not None:
            require_range(op, index, op.value(2 + table).shape[0], wraps=False)
    parts = {
        part: number(applied(op, "Gather", op.value(2 + table), index, part=part), table)
        for table, (part, index) in enumerate(rows.items())
        if index is not None
    }
    output = 2 if op.wants(2) else 0
    total = op.elementwise(" + ".join(parts), parts, part="" if output else "sum", output=output)
    normal = applied(op, "LayerNormalization", total, gamma, beta, epsilon=op.number("epsilon", _EPSILON))
    mask = op.optional(7)
    if not op.wants(1):
        return normal, None, total
    if mask is None:
        return normal, op.full((batch,), 0, "i32", output=1), total
    return normal, op.reduce("sum", (1,), "i32(m == 1)", keep=False, output=1, m=mask), total
