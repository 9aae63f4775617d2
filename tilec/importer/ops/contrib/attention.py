"""Attention and MultiHeadAttention of the contrib domain."""

from __future__ import annotations

from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.ops.contraction import product
from tilec.importer.ops.contrib.heads import (
    attended,
    causal,
    columns,
    extended,
    padding,
    split_heads,
)
from tilec.importer.registry import CONTRIB, operator
from tilec.importer.shapes import ShapeError, shape_text
from tilec.importer.value import Value
from tilec.ir.algebra import simplify
from tilec.ir.expr import Const, Expr

EXCLUDED = -10000.0
"""The default of `mask_filter_value`: the score added to excluded keys."""

LOWEST = -3.4028234663852886e38
"""The score of keys behind a query."""


@operator("Attention", domain=CONTRIB)
def _attention(op: Op) -> tuple[Value | None, ...]:
    x, weight, bias = op.value(0), op.value(1), op.optional(2)
    refuse(op, {"past_present_share_buffer": 0, "do_rotary": 0})
    total = product(op, x, weight, part="product" if bias is not None else "projected")
    if bias is not None:
        total = op.map("x + b", x=total, b=bias, part="projected")
    return self_attention(op, total, op.optional(3), op.optional(4), op.optional(5))


def refuse(op: Op, defaults: dict[str, int]) -> None:
    """Raise UnsupportedError for an attribute with another value than its default."""
    for name, default in defaults.items():
        if op.integer(name, default) != default:
            raise op.unsupported(f"the attribute {name!r} is {op.integer(name)}")


def self_attention(
    op: Op, projected: Value, mask: Value | None, past: Value | None, bias: Value | None = None
) -> tuple[Value | None, ...]:
    """The result and the cache `[2, b, n, t, h]` from queries, keys and values beside each other in the channels."""
    heads = op.integer("num_heads")
    if projected.rank != 3:
        raise ShapeError(f"an input {shape_text(projected.shape)}, not [batch, sequence, channels]")
    sizes: list[Expr] = [Const(n) for n in op.integers("qkv_hidden_sizes") or ()]
    sizes = sizes or [op.divided(projected.shape[2], 3, "projections")] * 3
    if len(sizes) != 3:
        raise op.invalid(f"qkv_hidden_sizes has {len(sizes)} values", "It must have three.")
    starts = [Const(0), sizes[0], formula("q + k", q=sizes[0], k=sizes[1])]
    q, k, v = (
        split_heads(op, columns(op, projected, start, size, part), heads, part)
        for part, start, size in zip("qkv", starts, sizes, strict=True)
    )
    if past is not None:
        if past.rank != 5:
            raise ShapeError(f"past {shape_text(past.shape)}, not [2, batch, heads, tokens, channels]")
        k, v = (
            extended(op, _half(op, past, n), new, f"{part}_all") for n, (part, new) in enumerate((("k", k), ("v", v)))
        )
    terms = score_terms(op, q, k, mask, bias)
    present = _cache(op, k, v) if op.wants(1) else None
    return attended(op, q, k, v, terms), present


def score_terms(op: Op, q: Value, k: Value, mask: Value | None, bias: Value | None) -> list[Value]:
    """Terms added to the scores: a mask of keys, that of causal attention, a bias."""
    terms = [] if mask is None else [padding(op, mask, q, k, op.number("mask_filter_value", EXCLUDED))]
    terms += [causal(op, q, k, LOWEST if q.ttype != "f16" else -65504.0)] if op.integer("unidirectional") else []
    return terms + ([] if bias is None else [bias])


def _half(op: Op, past: Value, number: int) -> Value:
    axes = op.axes_of(past.shape[1:])
    return op.emit(axes, past.access([Const(number), *(a.var for a in axes)]), past.ttype, part=f"past{number}")


def _cache(op: Op, k: Value, v: Value) -> Value:
    axes = op.axes_of((Const(2), *k.shape))
    index = [a.var for a in axes[1:]]
    body = formula("where(i == 0, k, v)", i=axes[0].var, k=k.at(index), v=v.at(index))
    return op.emit(axes, body, k.ttype, output=1)


@operator("MultiHeadAttention", domain=CONTRIB)
def _multi_head_attention(op: Op) -> tuple[Value | None, ...]:
    """Keys and values may be given in heads (`[b, n, t, h]`) or packed beside each other (`[b, t, n, 2 or 3, h]`)."""
    if op.optional(8) is not None or op.optional(9) is not None or op.wants(3):
        raise op.unsupported("a shared cache buffer, beams or scores as an output")
    query, key, value, bias = op.value(0), op.optional(1), op.optional(2), op.optional(3)
    heads = op.integer("num_heads")
    if query.rank == 5:
        q, k, v = (_packed(op, query, n, 3) for n in range(3))
    elif key is not None and key.rank == 5:
        q = split_heads(op, query, heads, "q")
        k, v = _packed(op, key, 0, 2), _packed(op, key, 1, 2)
    else:
        key, value = key or query, value or query
        biases = _biases(op, bias, query, key, value)
        q, k, v = (
            x
            if x.rank == 4
            else split_heads(op, x if b is None else op.map("x + b", x=x, b=b, part=f"{n}_biased"), heads, n)
            for n, x, b in zip("qkv", (query, key, value), biases, strict=True)
        )
        bias = None
    if bias is not None:
        raise op.unsupported("a bias of packed projections")
    k, v = (
        extended(op, op.optional(6 + n), new, "" if op.wants(1 + n) else f"{part}_all", 1 + n if op.wants(1 + n) else 0)
        for n, (part, new) in enumerate((("k", k), ("v", v)))
    )
    terms = score_terms(op, q, k, op.optional(4), op.optional(5))
    return attended(op, q, k, v, terms), k, v


def _packed(op: Op, x: Value, number: int, parts: int) -> Value:
    """Part `number` of `[b, s, n, parts, h]` as `[b, n, s, h]`."""
    b, s, n, packed, h = x.shape
    op.require_same(packed, Const(parts), f"packed projections {shape_text(x.shape)}")
    axes = op.axes_of((b, n, s, h))
    vb, vn, vs, vh = (a.var for a in axes)
    return op.emit(axes, x.access([vb, vs, vn, Const(number), vh]), x.ttype, part="qkv"[number + 3 - parts])


def _biases(op: Op, bias: Value | None, *inputs: Value) -> list[Value | None]:
    """The parts of a bias of all channels of queries, keys and values; None for inputs given in heads."""
    if bias is None:
        return [None] * 3
    if bias.rank != 1:
        raise ShapeError(f"a bias {shape_text(bias.shape)} of all channels")
    sizes = [x.shape[-1] if x.rank == 3 else inputs[0].shape[-1] for x in inputs]
    behind = simplify(formula("q + k", q=sizes[0], k=sizes[1]))
    total = simplify(formula("b + v", b=behind, v=sizes[2]))
    op.require_same(bias.shape[0], total, "the bias and the channels of queries, keys and values")
    starts = (Const(0), sizes[0], behind)
    return [
        columns(op, bias, start, size, f"{name}_bias") if x.rank == 3 else None
        for name, start, size, x in zip("qkv", starts, sizes, inputs, strict=True)
    ]
