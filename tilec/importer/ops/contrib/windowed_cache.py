"""Caches with room for a sliding window: the latest rows from the first place on, moved up when the room is used up.

A cache of C rows holds the latest `L(T)` of T tokens: all of them up to C; then `C - W + 1` rows are given up at once,
so that a window of W tokens is always there.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.value import Value
from tilec.ir.expr import Const, Expr


@dataclass(frozen=True, slots=True)
class Windowed:
    """Tokens of each batch before the new ones and with them (`earlier`, `total`), and how many of each the cache
    holds (`before`, `after`)."""

    capacity: Expr
    earlier: Value
    total: Value
    before: Value
    after: Value


def windowed(op: Op, past: Value, earlier: Value, last: Value, window: int) -> Windowed:
    """The rows of caches `[b, n, C, h]` of a node. Raises ConfigError where no window fits into them."""
    capacity = past.shape[2]
    op.sizes.demand(formula("c >= w", c=capacity, w=window), "a cache has room for a window")
    total = op.map("x + 1", x=last, part="tokens")
    before, after = (_held(op, each, capacity, window, part) for each, part in ((earlier, "before"), (total, "after")))
    return Windowed(capacity, earlier, total, before, after)


def _held(op: Op, tokens: Value, capacity: Expr, window: int, part: str) -> Value:
    """How many of some tokens a cache holds."""
    step = formula("i64(c - w + 1)", c=capacity, w=window)
    held = "where(x <= c, x, x - truncdiv(x - c + g - 1, g) * g)"
    return op.map(held, x=tokens, c=formula("i64(c)", c=capacity), g=step, part=f"rows_{part}")


def kept(op: Op, past: Value, new: Value, rows: Windowed, output: int) -> Value:
    """The cache behind the new tokens: the latest rows, zeros behind them."""
    b, n, s, h = new.shape
    axes = op.axes_of((b, n, rows.capacity, h))
    vb, vn, vr, vh = (axis.var for axis in axes)
    names: dict[str, Expr] = {
        "r": vr,
        "earlier": rows.earlier.access([vb]),
        "total": rows.total.access([vb]),
        "before": rows.before.access([vb]),
        "after": rows.after.access([vb]),
    }
    position = formula("total - after + r", **names)
    fresh = formula("maximum(minimum(p - earlier, s - 1), 0)", p=position, s=s, **names)
    old = formula("maximum(minimum(p - earlier + before, c - 1), 0)", p=position, c=rows.capacity, **names)
    body = formula(
        "where(r < after, where(p < earlier, old, new), 0.0)",
        p=position,
        old=past.access([vb, vn, old, vh]),
        new=new.access([vb, vn, fresh, vh]),
        **names,
    )
    wanted = op.wants(output)
    return op.emit(axes, body, new.ttype, part="" if wanted else f"cache{output}", output=output if wanted else 0)


def seen(op: Op, past: Value, new: Value, rows: Windowed, part: str) -> Value:
    """The rows that queries see: those of the cache before the new tokens, then the new ones. Rows that hold no token
    may hold anything, and are 0 here."""
    b, n, s, h = new.shape
    axes = op.axes_of((b, n, formula("c + s", c=rows.capacity, s=s), h))
    vb, vn, vr, vh = (axis.var for axis in axes)
    names: dict[str, Expr] = {"r": vr, "c": rows.capacity, "before": rows.before.access([vb])}
    old = past.access([vb, vn, formula("minimum(r, c - 1)", **names), vh])
    fresh = new.access([vb, vn, formula("maximum(r - c, 0)", **names), vh])
    body = formula("where(r < c, where(r < before, old, 0.0), new)", old=old, new=fresh, **names)
    return op.emit(axes, body, new.ttype, part=part)


def mask(op: Op, q: Value, rows: Windowed, window: int) -> Value:
    """`[b, 1, s, C + s]`: 0 for rows within the window of a query, -inf for others."""
    s = q.shape[2]
    axes = op.axes_of((q.shape[0], Const(1), s, formula("c + s", c=rows.capacity, s=s)))
    vb, _, query, row = (axis.var for axis in axes)
    names: dict[str, Expr] = {
        "r": row,
        "c": rows.capacity,
        "earlier": rows.earlier.access([vb]),
        "before": rows.before.access([vb]),
    }
    old, new = formula("earlier - before + r", **names), formula("earlier + r - c", **names)
    position = formula("where(r < c, old, new)", old=old, new=new, **names)
    there = formula("r >= c or r < before", **names)
    latest = formula("minimum(earlier + i, total - 1)", i=query, total=rows.total.access([vb]), **names)
    inside = formula(
        "there and p <= latest and p > earlier + i - w",
        there=there,
        p=position,
        latest=latest,
        i=query,
        w=window,
        **names,
    )
    return op.emit(axes, formula("where(inside, 0.0, -inf)", inside=inside), q.ttype, part="window")
