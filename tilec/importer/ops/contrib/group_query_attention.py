"""Causal attention with a cache of keys and values whose valid length differs between batches."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.importer.compose import applied
from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.ops.contrib import quantised_cache, windowed_cache
from tilec.importer.ops.contrib.attention import refuse
from tilec.importer.ops.contrib.heads import attended, columns, repeated_heads, split_heads
from tilec.importer.ops.gather import require_range
from tilec.importer.ops.movement import reshaped
from tilec.importer.registry import CONTRIB, operator
from tilec.importer.shapes import ShapeError, shape_text, size_of
from tilec.importer.value import Value
from tilec.ir.algebra import simplify
from tilec.ir.expr import Const, Expr
from tilec.ir.types import is_float

_DEFAULTS = {"qk_output": 0}


@operator("GroupQueryAttention", domain=CONTRIB)
def _group_query_attention(op: Op) -> tuple[Value, ...]:
    """`seqlens_k[b]` is the index of the last valid token of a batch; a prompt has no earlier tokens.

    Results of tokens behind the last valid one are those of a query that sees the valid ones only, as in onnxruntime.
    """
    refuse(op, _DEFAULTS)
    if any(op.optional(i) is not None for i in range(14, 17)) or op.wants(3):
        raise op.unsupported("normalised queries, lengths of chunks or scores as an output")
    heads, groups = op.integer("num_heads"), op.integer("kv_num_heads")
    q, k, v = _projections(op, heads, groups)
    length, total = q.shape[1], op.single(6)
    lengths = op.value(5)
    op.require_same(lengths.shape[0], q.shape[0], "a last token of each batch")
    require_range(op, lengths, total, wraps=False)
    axes = op.axes_of(q.shape[:1])
    read = lengths.access([axes[0].var] if lengths.rank == 1 else [axes[0].var, Const(0)])
    last = op.emit(axes, formula("i64(last)", last=read), "i64", part="last")
    body = formula("where(s == t, 0, maximum(last + 1 - s, 0))", last=last.access([axes[0].var]), s=length, t=total)
    earlier = op.emit(axes, body, "i64", part="earlier")
    if op.integer("do_rotary"):
        rotations = formula("t <= n", t=total, n=op.value(7).shape[0])
        op.sizes.demand(rotations, "every position has a rotation")
        q, k = _rotated(op, q, heads, earlier, "q"), _rotated(op, k, groups, earlier, "k")
    past = op.optional(3), op.optional(4)
    query, k, v = split_heads(op, q, heads, "q"), split_heads(op, k, groups, "k"), split_heads(op, v, groups, "v")
    window = op.integer("local_window_size", -1)
    scales = op.optional(12), op.optional(13)
    bits = quantised_cache.require_codes(op, past, scales)
    if op.integer("sliding_window_cache"):
        if bits:
            raise op.unsupported("a quantised cache of a window")
        if past[0] is None or past[1] is None or window < 1 or not op.integer("causal", 1):
            raise op.invalid("a cache of a sliding window without a cache or without a window")
        _require_caches(op, length, total, [past[0], past[1]], windowed=True)
        rows = windowed_cache.windowed(op, past[0], earlier, last, window)
        keys, values = (windowed_cache.kept(op, p, n, rows, o) for p, n, o in ((past[0], k, 1), (past[1], v, 2)))
        k, v = (
            windowed_cache.seen(op, past[0], k, rows, "seen_keys"),
            windowed_cache.seen(op, past[1], v, rows, "seen_values"),
        )
        terms = [windowed_cache.mask(op, query, rows, window)]
    else:
        caches = [cache for cache in past if cache is not None]
        in_place = len(caches) == 2 and all(map(op.builder.is_state, caches)) and op.wants(1) and op.wants(2)
        _require_caches(op, length, total, caches, in_place=in_place)
        if scales[0] is not None and scales[1] is not None:
            k, v = (
                quantised_cache.quantised(op, x, scale, bits, f"{part}_codes")
                for x, scale, part in ((k, scales[0], "k"), (v, scales[1], "v"))
            )
        keys = _present(op, past[0], k, earlier, total, 1, in_place)
        values = _present(op, past[1], v, earlier, total, 2, in_place)
        k, v = (_first_rows(op, c, total, last, f"first_{n}") for c, n in ((keys, "keys"), (values, "values")))
        if scales[0] is not None and scales[1] is not None:
            k, v = (
                quantised_cache.dequantised(op, x, scale, bits, query.ttype, f"{part}_numbers")
                for x, scale, part in ((k, scales[0], "k"), (v, scales[1], "v"))
            )
        terms = [_window(op, query, k, earlier, last)]
    terms += [op.value(10)] if op.optional(10) is not None else []
    k, v = repeated_heads(op, k, heads, "keys"), repeated_heads(op, v, heads, "values")
    part = "attended_tokens" if window > 0 else ""
    result = attended(op, query, k, v, terms, op.number("softcap"), part, _sink(op, heads))
    return (result if window <= 0 else _of_some_keys(op, result, earlier, last, window)), keys, values


def _sink(op: Op, heads: int) -> Value | None:
    """One more score of each head, whose weight is left out: a given one, or 0."""
    given = op.optional(11)
    if given is None:
        return op.full((), 0.0, "f32", part="sink") if op.integer("smooth_softmax") == 1 else None
    op.require_same(size_of(given.shape), Const(heads), "a sink of each head")
    return reshaped(op, given, (Const(1), Const(heads), Const(1), Const(1)), part="sink")


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


def _require_caches(
    op: Op, new: Expr, total: Expr, caches: Sequence[Value], windowed: bool = False, in_place: bool = False
) -> None:
    """Caches of keys and values hold as many tokens: the earlier ones, or room for all of them, which those have that
    are updated in place."""
    op.sizes.demand(formula("s <= t", s=new, t=total), "all tokens are new ones and earlier ones")
    for cache in caches:
        if cache.rank != 4:
            raise ShapeError(f"a cache {shape_text(cache.shape)}, not [batch, heads, tokens, channels]")
        op.require_same(cache.shape[2], caches[0].shape[2], "tokens of both caches")
    if not caches:
        op.require_same(total, new, "all tokens and new tokens")
        return
    if windowed:
        return
    if in_place:
        fits = formula("t <= p", t=total, p=caches[0].shape[2])
        op.sizes.demand(fits, "a cache that is updated in place has room for all tokens")
        return
    fits = formula("t == p + s or t <= p", t=total, p=caches[0].shape[2], s=new)
    op.sizes.demand(fits, "a cache has the earlier tokens, or room for all")


def _present(op: Op, past: Value | None, new: Value, earlier: Value, total: Expr, output: int, in_place: bool) -> Value:
    """The cache `[b, n, t, h]`: the earlier tokens, the new ones, zeros behind them, or what was there before where it
    is updated in place."""
    b, n, s, h = new.shape
    if past is not None:
        for dimension, part in ((0, "batch"), (1, "heads"), (3, "channels")):
            op.require_same(past.shape[dimension], new.shape[dimension], f"{part} of a cache and of new tokens")
    extent = total if past is None else simplify(formula("maximum(p, t)", p=past.shape[2], t=total))
    extent = past.shape[2] if past is not None and in_place else extent
    axes = op.axes_of((b, n, extent, h))
    vb, vn, vt, vh = (a.var for a in axes)
    names: dict[str, Expr] = {"t": vt, "n": earlier.access([vb]), "s": s}
    place = formula("maximum(minimum(t - n, s - 1), 0)", **names)
    x = new.access([vb, vn, place, vh])
    if past is not None and in_place:
        old = past.access([vb, vn, vt, vh])
        body = formula("where(t < n + s, where(t < n, old, x), old)", old=old, x=x, **names)
        return op.emit(axes, body, new.ttype, output=output)
    body = formula("where(t < n + s, x, zero)", x=x, zero=0.0 if is_float(new.ttype) else 0, **names)
    if past is not None and past.shape[2] != Const(0):
        row = formula("minimum(t, p - 1)", t=vt, p=past.shape[2])
        body = formula("where(t < n, old, body)", old=past.access([vb, vn, row, vh]), body=body, **names)
    wanted = op.wants(output)
    return op.emit(axes, body, new.ttype, part="" if wanted else f"cache{output}", output=output if wanted else 0)


def _first_rows(op: Op, cache: Value, total: Expr, last: Value, part: str) -> Value:
    """The rows of a cache `[b, n, t, h]` up to the last token: those behind are no keys. In batches of different sizes
    the rows behind the last token of each are zeros, since anything may lie there; all codes are numbers."""
    if cache.shape[2] == total:
        return cache
    axes = op.axes_of((*cache.shape[:2], total, cache.shape[3]))
    row: Expr = cache.access([axis.var for axis in axes])
    if axes[0].extent != Const(1) and is_float(cache.ttype):
        there: dict[str, Expr] = {"t": axes[2].var, "last": last.access([axes[0].var])}
        row = formula("where(t <= last, x, 0.0)", x=row, **there)
    return op.emit(axes, row, cache.ttype, part=part)


def _window(op: Op, q: Value, k: Value, earlier: Value, last: Value) -> Value:
    """`[b, 1, s, t]`: -inf for keys behind a query or the last valid token, or further before the query than the window
    reaches; 0 for others."""
    axes = op.axes_of((q.shape[0], Const(1), q.shape[2], k.shape[2]))
    batch, _, row, key = (axis.var for axis in axes)
    place = formula("n + i", n=earlier.access([batch]), i=row)
    latest = formula(
        "minimum(place, last)" if op.integer("causal", 1) else "last", place=place, last=last.access([batch])
    )
    inside = formula("t <= latest", t=key, latest=latest)
    window = op.integer("local_window_size", -1)
    if window > 0:
        inside = formula("inside and t > place - w", inside=inside, t=key, place=place, w=window)
    return op.emit(axes, formula("where(inside, 0.0, -inf)", inside=inside), q.ttype, part="window")


def _of_some_keys(op: Op, x: Value, earlier: Value, last: Value, window: int) -> Value:
    """Results `[b, s, channels]`, 0 for a query so far behind the last valid token that its window has no key."""
    axes = op.axes_of(x.shape)
    batch, row, _ = (axis.var for axis in axes)
    names: dict[str, Expr] = {"n": earlier.access([batch]), "i": row, "last": last.access([batch])}
    body = formula("where(n + i - w < last, x, 0.0)", x=x.access([a.var for a in axes]), w=window, **names)
    return op.emit(axes, body, x.ttype)
