"""Attention over heads: `[batch, sequence, heads * size]` split into heads, scores, masks, and the weighted sum."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from tilec.importer.broadcasting import require_fit
from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.ops.contraction import product
from tilec.importer.ops.movement import concatenated, reshaped, transposed
from tilec.importer.ops.softmax import softmax
from tilec.importer.shapes import ShapeError, shape_text, symbols_of
from tilec.importer.sums import summed, wide
from tilec.importer.value import Value
from tilec.ir.algebra import simplify
from tilec.ir.expr import Const, Expr, constant_value
from tilec.ir.text import text_of


def columns(op: Op, x: Value, start: Expr | int, size: Expr | int, part: str) -> Value:
    """`size` elements of the last dimension from `start` on."""
    axes = op.axes_of([*x.shape[:-1], Const(size) if isinstance(size, int) else size])
    index = [a.var for a in axes]
    return op.emit(axes, x.at([*index[:-1], formula("c + s", c=index[-1], s=start)]), x.ttype, part=part)


def split_heads(op: Op, x: Value, heads: int, part: str) -> Value:
    """`[b, s, heads * h]` as `[b, heads, s, h]`."""
    if x.rank != 3:
        raise ShapeError(f"{part} {shape_text(x.shape)}, not [batch, sequence, channels]")
    size = op.divided(x.shape[2], heads, "heads")
    apart = reshaped(op, x, [*x.shape[:2], Const(heads), size], part=f"{part}_channels")
    return transposed(op, apart, (0, 2, 1, 3), part=f"{part}_heads")


def joined_heads(op: Op, x: Value, part: str = "") -> Value:
    """`[b, heads, s, h]` as `[b, s, heads * h]`."""
    b, n, s, h = x.shape
    turned = transposed(op, x, (0, 2, 1, 3), part="turned")
    return reshaped(op, turned, (b, s, simplify(formula("n * h", n=n, h=h))), part=part)


def repeated_heads(op: Op, x: Value, heads: int, part: str) -> Value:
    """Every head of `[b, n, t, h]` as often as gives `heads` heads."""
    known = constant_value(x.shape[1])
    if known is None or known < 1 or heads % known:
        raise op.invalid(f"{heads} heads for {text_of(x.shape[1])} heads of keys and values")
    if known == heads:
        return x
    axes = op.axes_of([x.shape[0], Const(heads), *x.shape[2:]])
    b, n, t, h = (a.var for a in axes)
    return op.emit(axes, x.at((b, formula("n // g", n=n, g=heads // known), t, h)), x.ttype, part=part)


def scale_of(op: Op, size: Expr, ttype: str) -> float | Value:
    """The attribute `scale`; `1 / sqrt(size of a head)` by default, a tensor for products of type `ttype` where it
    depends on symbols."""
    given, known = op.number("scale"), constant_value(size)
    if given or known is not None:
        return given or 1.0 / sqrt(known or 1)
    kind = summed(ttype)
    return op.emit((), formula(f"1.0 / sqrt({kind}(size))", size=size), kind, part="scale")


def extended(op: Op, past: Value | None, new: Value, part: str, output: int = 0) -> Value:
    """`[b, n, t, h]` behind a cache of earlier tokens."""
    if past is None:
        return new
    if past.rank != 4:
        raise ShapeError(f"{part} {shape_text(past.shape)}, not [batch, heads, tokens, channels]")
    return concatenated(op, [past, new], 2, part=part, output=output)


def attended(
    op: Op,
    q: Value,
    k: Value,
    v: Value,
    terms: Sequence[Value] = (),
    softcap: float = 0.0,
    part: str = "",
    sink: Value | None = None,
) -> Value:
    """`softmax(scale * Q K^T + terms) V` joined to `[b, s, channels]`; `terms` broadcast to `[b, n, s, t]`, and a
    `sink`, one more score of each row, to `[b, n, s, 1]`."""
    scale = scale_of(op, q.shape[3], q.ttype)
    op.require_same(q.shape[3], k.shape[3], "channels of a head of queries and keys")
    op.require_same(k.shape[2], v.shape[2], "tokens of keys and values")
    for x, what in ((k, "keys"), (v, "values")):
        op.require_same(x.shape[0], q.shape[0], f"the batch of queries and {what}")
        op.require_same(x.shape[1], q.shape[1], f"heads of queries and {what}")
    for term in terms:
        require_fit(term.shape, (*q.shape[:3], k.shape[2]), op.sizes)
    raw = product(op, q, transposed(op, k, (0, 1, 3, 2), part="turned_keys"), part="products")
    text = f"{wide('x', raw.ttype)} * scale"
    operands: dict[str, Value | float] = {"x": raw, "scale": scale}
    if softcap:
        text = f"tanh(({text}) * inverse) * cap"
        operands |= {"cap": softcap, "inverse": 1.0 / softcap}
    for number, term in enumerate(terms):
        text += f" + {wide(f't{number}', term.ttype)}"
        operands[f"t{number}"] = term
    scores = op.elementwise(text, operands, q.ttype, part="scores")
    weights = softmax(op, scores, (3,), part="weights", sink=sink)
    return joined_heads(op, product(op, weights, v, part="attended"), part)


def causal(op: Op, q: Value, k: Value, excluded: float) -> Value:
    """`[1, 1, s, t]`: `excluded` for keys behind a query, 0 for others; queries are the last of all tokens."""
    s, t = q.shape[2], k.shape[2]
    axes = op.axes_of((Const(1), Const(1), s, t))
    body = formula("where(j <= i + t - s, 0.0, e)", i=axes[2].var, j=axes[3].var, s=s, t=t, e=excluded)
    return op.emit(axes, body, q.ttype, part="causal")


def _whose_size(mask: Value, batch: Expr) -> str | None:
    """What helps where the size of a mask decides what it means."""
    flags = " ".join(f"--shape {symbol}=SIZE" for symbol in symbols_of(mask.shape, (batch,)))
    return f"Its size says what it holds; bind it: {flags}." if flags else None


def padding(op: Op, mask: Value, q: Value, k: Value, excluded: float) -> Value:
    """`[b, 1, 1 or s, t]`: `excluded` for keys that the mask excludes, 0 for others.

    A mask has the number of keys for each batch `[b]` (and behind it their first ones, `[2 * b]`), or is 0 at keys to
    exclude: `[b, t]`, `[b, s, t]`, `[b, 1, max, max]`.
    """
    b, s, t = q.shape[0], q.shape[2], k.shape[2]
    axes = op.axes_of((b, Const(1), s if mask.rank > 2 else Const(1), t))
    vb, _, vs, vt = (a.var for a in axes)
    described = f"a mask {shape_text(mask.shape)}"
    if mask.rank == 1 and op.sizes.same(mask.shape[0], b):
        kept = formula("i64(t) < i64(end)", t=vt, end=mask.access([vb]))
    elif mask.rank == 1 and op.sizes.same(mask.shape[0], formula("2 * b", b=b)):
        start = mask.access([formula("b + n", b=vb, n=b)])
        kept = formula("t >= i64(start) and t < i64(end)", t=vt, start=start, end=mask.access([vb]))
    elif mask.rank in (2, 3):
        for extent, wanted in zip(mask.shape, (b, s, t) if mask.rank == 3 else (b, t), strict=True):
            op.require_same(extent, wanted, described)
        kept = formula("m > 0", m=mask.access([vb, vs, vt] if mask.rank == 3 else [vb, vt]))
    elif mask.rank == 4:
        row = formula("i + t - s", i=vs, t=t, s=s)
        kept = formula("m > 0", m=mask.access([vb, Const(0), row, vt]))
    else:
        raise op.unsupported(f"{described} for {text_of(b)} batches", _whose_size(mask, b))
    return op.emit(axes, formula("where(kept, 0.0, e)", kept=kept, e=excluded), q.ttype, part="mask")
