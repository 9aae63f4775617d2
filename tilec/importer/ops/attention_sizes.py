"""What Attention demands of the sizes of its inputs, beyond what the function that defines it says."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.importer.broadcasting import require_fit
from tilec.importer.operator import Op
from tilec.importer.registry import demands
from tilec.importer.shapes import ShapeError, assume_divides, shape_text
from tilec.importer.value import Value
from tilec.ir.expr import Const, Expr

Shape = Sequence[Expr]


@demands("Attention")
def _attention_sizes(op: Op) -> None:
    """One batch; as many values as keys; key heads divide query heads; queries and keys of one size."""
    q, k, v = (_by_head(op, op.value(n), "kv_num_heads" if n else "q_num_heads") for n in range(3))
    op.require_same(q[0], k[0], "the batch of queries and keys")
    op.require_same(k[0], v[0], "the batch of keys and values")
    op.require_same(k[1], v[1], "heads of keys and values")
    op.require_same(k[2], v[2], "numbers of keys and values")
    op.require_same(q[3], k[3], "sizes of a query and a key")
    assume_divides(op.sizes, k[1], q[1], "heads of keys divide those of queries")
    mask = op.optional(3)
    if mask is not None:
        # How many keys it names is the function's own: since opset 24 they may be fewer than there are.
        require_fit(mask.shape[:-1], q[:3], op.sizes)
    past = op.optional(4), op.optional(5)
    for cache, new, what in zip(past, (k, v), ("keys", "values"), strict=True):
        if cache is not None:
            _require_cache(op, cache, new, what)
    if past[0] is not None and past[1] is not None:
        op.require_same(past[0].shape[2], past[1].shape[2], "numbers of past keys and values")
    lengths = op.optional(6)
    if lengths is not None and lengths.rank == 1:
        op.require_same(lengths.shape[0], k[0], "the batch of keys and their numbers")


def _by_head(op: Op, x: Value, attribute: str) -> Shape:
    """An input's shape as `[batch, heads, tokens, size]`."""
    if x.rank == 4:
        return x.shape
    if x.rank != 3:
        raise ShapeError(f"an input {shape_text(x.shape)} of rank {x.rank}, not 3 or 4")
    heads = op.integer(attribute)
    if heads < 1:
        raise op.invalid(f"an input of rank 3 needs the attribute {attribute!r}")
    batch, tokens, channels = x.shape
    return batch, Const(heads), tokens, op.divided(channels, heads, "heads")


def _require_cache(op: Op, cache: Value, new: Shape, what: str) -> None:
    if cache.rank != 4:
        raise ShapeError(f"past {what} {shape_text(cache.shape)}, not [batch, heads, tokens, size]")
    for dimension, part in ((0, "batch"), (1, "heads"), (3, "sizes")):
        op.require_same(cache.shape[dimension], new[dimension], f"{part} of past and new {what}")
