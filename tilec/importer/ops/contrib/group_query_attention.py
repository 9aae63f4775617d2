"""Causal attention with a cache of keys and values whose valid length differs between batches."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.importer.compose import applied
from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.ops.contrib.attention import refuse
from tilec.importer.ops.contrib.heads import attended, columns, repeated_heads, split_heads
from tilec.importer.ops.gather import require_range
from tilec.importer.registry import CONTRIB, operator
from tilec.importer.shapes import ShapeError, shape_text
from tilec.importer.value import Value
from tilec.ir.algebra import simplify
from tilec.ir.expr import Const, Expr

_DEFAULTS = {"smooth_softmax": 0, "kv_cache_bit_width": 0, "sliding_window_cache": 0, "causal": 1, "qk_output": 0}


@operator("GroupQueryAttention", domain=CONTRIB)
def _group_query_attention(op: Op) -> tuple[Value, ...]:
    """`seqlens_k[b]` is the index of the last valid token of a batch; a prompt has no earlier tokens."""
    refuse(op, _DEFAULTS)
    if any(op.optional(i) is not None for i in range(11, 16)) or op.wants(3):
        raise op.unsupported("sinks, quantised caches, normalised queries or scores as an output")
    heads, groups = op.integer("num_heads"), op.integer("kv_num_heads")
    q, k, v = _projections(op, heads, groups)
    length, total = q.shape[1], op.single(6)
    lengths = op.value(5)
    require_range(op, lengths, total, wraps=False)
    axes = op.axes_of(q.shape[:1])
    last = lengths.access([axes[0].var] if lengths.rank == 1 else [axes[0].var, Const(0)])
    body = formula("where(s == t, 0, i64(last) + 1 - s)", last=last, s=length, t=total)
    earlier = op.emit(axes, body, "i64", part="earlier")
    if op.integer("do_rotary"):
        q, k = _rotated(op, q, heads, earlier, "q"), _rotated(op, k, groups, earlier, "k")
    past = op.optional(3), op.optional(4)
    _require_caches(op, [cache for cache in past if cache is not None])
    keys = _present(op, past[0], split_heads(op, k, groups, "k"), earlier, total, 1)
    values = _present(op, past[1], split_heads(op, v, groups, "v"), earlier, total, 2)
    query = split_heads(op, q, heads, "q")
    terms = [_window(op, query, keys, earlier)]
    terms += [op.value(10)] if op.optional(10) is not None else []
    k, v = repeated_heads(op, keys, heads, "keys"), repeated_heads(op, values, heads, "values")
    result = attended(op, query, k, v, terms, op.number("softcap"))
    return result, keys, values


def _projections(op: Op, heads: int, groups: int) -> tuple[Value, Value, Value]:
    """Queries, keys and values `[b, s, channels]`, which may be beside each other in one tensor."""
    query = op.value(0)
    if query.rank != 3:
        raise ShapeError(f"a query {shape_text(query.shape)}, not [batch, sequence, channels]")
    if op.optional(1) is not None:
        return query, op.value(1), op.value(2)
    size = op.divided(query.shape[2], heads + 2 * groups, "heads")
    q, kv = (simplify(formula("n * h", n=n, h=size)) for n in (heads, groups))
    behind = simplify(formula("q + k", q=q, k=kv))
    return columns(op, query, 0, q, "q"), columns(op, query, q, kv, "k"), columns(op, query, behind, kv, "v")


def _rotated(op: Op, x: Value, heads: int, earlier: Value, part: str) -> Value:
    """Rotary embedding at the tokens' positions: given ones, or counted on from the earlier tokens."""
    positions = op.optional(9)
    if positions is None:
        axes = op.axes_of(x.shape[:2])
        body = formula("n + t", n=earlier.access([axes[0].var]), t=axes[1].var)
        positions = op.emit(axes, body, "i64", part=f"{part}_positions")
    cos, sin = op.value(7), op.value(8)
    interleaved = op.integer("rotary_interleaved")
    dimension = simplify(formula("2 * h", h=cos.shape[-1]))
    turned = int(dimension.value) if isinstance(dimension, Const) else 0
    return applied(
        op,
        "RotaryEmbedding",
        *(x, cos, sin, positions),
        part=f"{part}_rotated",
        opset=23,
        interleaved=interleaved,
        num_heads=heads,
        rotary_embedding_dim=turned,
    )


def _require_caches(op: Op, caches: Sequence[Value]) -> None:
    """Caches of keys and values hold as many tokens."""
    for cache in caches:
        if cache.rank != 4:
            raise ShapeError(f"a cache {shape_text(cache.shape)}, not [batch, heads, tokens, channels]")
        op.require_same(cache.shape[2], caches[0].shape[2], "tokens of both caches")


def _present(op: Op, past: Value | None, new: Value, earlier: Value, total: Expr, output: int) -> Value:
    """The cache `[b, n, t, h]`: the earlier tokens, the new ones, zeros behind them."""
    b, n, s, h = new.shape
    if past is not None:
        for dimension, part in ((0, "batch"), (1, "heads"), (3, "channels")):
            op.require_same(past.shape[dimension], new.shape[dimension], f"{part} of a cache and of new tokens")
    extent = total if past is None else simplify(formula("maximum(p, t)", p=past.shape[2], t=total))
    axes = op.axes_of((b, n, extent, h))
    vb, vn, vt, vh = (a.var for a in axes)
    names: dict[str, Expr] = {"t": vt, "n": earlier.access([vb]), "s": s}
    place = formula("maximum(minimum(t - n, s - 1), 0)", **names)
    body = formula("where(t < n + s, x, 0.0)", x=new.access([vb, vn, place, vh]), **names)
    if past is not None and past.shape[2] != Const(0):
        row = formula("minimum(t, p - 1)", t=vt, p=past.shape[2])
        body = formula("where(t < n, old, body)", old=past.access([vb, vn, row, vh]), body=body, **names)
    wanted = op.wants(output)
    return op.emit(axes, body, new.ttype, part="" if wanted else f"cache{output}", output=output if wanted else 0)


def _window(op: Op, q: Value, k: Value, earlier: Value) -> Value:
    """`[b, 1, s, t]`: -inf for keys behind a query, or further before it than the window reaches; 0 for others."""
    axes = op.axes_of((q.shape[0], Const(1), q.shape[2], k.shape[2]))
    last = formula("n + i", n=earlier.access([axes[0].var]), i=axes[2].var)
    inside = formula("t <= last", t=axes[3].var, last=last)
    window = op.integer("local_window_size", -1)
    if window > 0:
        inside = formula("inside and t > last - w", inside=inside, t=axes[3].var, last=last, w=window)
    return op.emit(axes, formula("where(inside, 0.0, -inf)", inside=inside), q.ttype, part="window")
