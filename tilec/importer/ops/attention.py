"""Rotary position embedding."""

from __future__ import annotations

from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.ops.gather import looked_up, require_range
from tilec.importer.registry import operator
from tilec.importer.shapes import ShapeError, shape_text
from tilec.importer.value import Value
from tilec.ir.algebra import simplify
from tilec.ir.expr import Const, Expr
from tilec.ir.size_facts import divides


@operator("RotaryEmbedding")
def _rotary_embedding(op: Op) -> Value:
    x, heads = op.value(0), op.integer("num_heads")
    if x.rank == 3 and heads < 1:
        raise op.invalid("an input of rank 3 needs the attribute 'num_heads'")
    size = op.divided(x.shape[2], heads, "heads") if x.rank == 3 else None
    return rotated(op, x, op.value(1), op.value(2), op.optional(3), size)


def rotated(op: Op, x: Value, cos: Value, sin: Value, positions: Value | None, of_rank_3: Expr | None) -> Value:
    """Pairs of channels of a head, rotated by the tables' angle for the token's position; heads of an input of rank 3
    have the size `of_rank_3`."""
    if x.rank not in (3, 4):
        raise ShapeError(f"an input {shape_text(x.shape)} of rank {x.rank}, not 3 or 4")
    size = of_rank_3 or x.shape[-1]
    axes = op.axes_of(x.shape)
    place: list[Expr] = [a.var for a in axes]
    if x.rank == 4:
        batch, token, channel = place[0], place[2], place[3]
        first: Expr = Const(0)
    else:
        batch, token = place[0], place[1]
        channel = formula("c % size", c=place[2], size=size)
        first = formula("c // size * size", c=place[2], size=size)
    turned, half = _turned(op, size)
    _require_tables(op, x, cos, sin, positions, half)
    interleaved = bool(op.integer("interleaved"))

    def element(inner: Expr) -> Expr:
        at = formula("first + inner", first=first, inner=inner)
        return x.access([*place[:-1], at])

    def angle(table: Value) -> Expr:
        pair = formula("c // 2" if interleaved else "c % half", c=channel, half=half)
        row_index = formula("minimum(p, half - 1)", p=pair, half=half)
        if positions is None:
            return table.access([batch if table.shape[0] != Const(1) else Const(0), token, row_index])
        row = positions.at([batch if positions.shape[0] != Const(1) else Const(0), token])
        return table.access([looked_up(op, row, positions.ttype, table.shape[0]), row_index])

    if interleaved:
        low = formula("c % 2 == 0", c=channel)
        partner = formula("c + 1 - c % 2 * 2", c=channel)
    else:
        low = formula("c < half", c=channel, half=half)
        partner = formula("(c + half) % turned", c=channel, half=half, turned=turned)
    partner = formula("minimum(p, turned - 1)", p=partner, turned=turned)
    text = "where(low, x * cos - y * sin, x * cos + y * sin)"
    body = formula(text, low=low, x=element(channel), y=element(partner), cos=angle(cos), sin=angle(sin))
    if op.sizes.same(turned, size) is not True:
        body = formula("where(c < turned, body, x)", c=channel, turned=turned, body=body, x=element(channel))
    return op.emit(axes, body, x.ttype)


def _turned(op: Op, size: Expr) -> tuple[Expr, Expr]:
    """The number of channels of a head that are rotated, by default all of them, and its half."""
    given = op.integer("rotary_embedding_dim")
    turned = Const(given) if given else size
    if given:
        op.sizes.assume(formula("turned <= size", turned=turned, size=size), "channels that are rotated")
    op.sizes.assume(divides(Const(2), turned), "channels that are rotated in pairs")
    return turned, simplify(formula("turned // 2", turned=turned))


def _require_tables(op: Op, x: Value, cos: Value, sin: Value, positions: Value | None, half: Expr) -> None:
    """Raise ShapeError unless tables are `[position, half]`, or `[batch, token, half]` without positions."""
    for table in (cos, sin):
        if table.rank != (3 if positions is None else 2):
            raise ShapeError(f"a table of angles {shape_text(table.shape)}")
        op.require_same(table.shape[-1], half, "half the channels and the tables")
    op.require_same(cos.shape[0], sin.shape[0], "rows of both tables")
    if positions is None:
        op.require_same(cos.shape[1], sin.shape[1], "tokens of both tables")
    tokens = cos if positions is None else positions
    if positions is not None and positions.rank != 2:
        raise ShapeError(f"positions {shape_text(positions.shape)}, not [batch, token]")
    op.require_same(tokens.shape[1], x.shape[1 if x.rank == 3 else 2], "tokens and their positions")
    if positions is not None:
        require_range(op, positions, cos.shape[0], wraps=False)
    if tokens.shape[0] != Const(1):
        op.require_same(tokens.shape[0], x.shape[0], "batch and positions")
