"""Rotary position embedding."""

from __future__ import annotations

from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.ops.gather import looked_up, require_range
from tilec.importer.registry import operator
from tilec.importer.shapes import ShapeError, shape_text
from tilec.importer.value import Value
from tilec.ir.algebra import simplify
from tilec.ir.expr import Const, Expr, constant_value


@operator("RotaryEmbedding")
def _rotary_embedding(op: Op) -> Value:
    """Pairs of channels of a head, rotated by the tables' angle for the token's position."""
    x = op.value(0)
    cos, sin, positions = op.value(1), op.value(2), op.optional(3)
    heads = op.integer("num_heads")
    if x.rank == 3 and heads < 1:
        raise op.invalid("an input of rank 3 needs the attribute 'num_heads'")
    if x.rank not in (3, 4):
        raise ShapeError(f"an input {shape_text(x.shape)} of rank {x.rank}, not 3 or 4")
    axes = op.axes_of(x.shape)
    place: list[Expr] = [a.var for a in axes]
    if x.rank == 4:
        batch, token, channel, size = place[0], place[2], place[3], x.shape[3]
        first: Expr = Const(0)
    else:
        size = simplify(formula("c // h", c=x.shape[2], h=heads))
        batch, token = place[0], place[1]
        channel = formula("c % size", c=place[2], size=size)
        first = formula("c // size * size", c=place[2], size=size)
    turned = constant_value(size) if not op.integer("rotary_embedding_dim") else op.integer("rotary_embedding_dim")
    if turned is None or turned % 2:
        raise op.unsupported("a symbolic or odd number of channels in a head", "Bind it with --shape SYMBOL=SIZE.")
    half = turned // 2
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
    partner = formula("minimum(p, last)", p=partner, last=turned - 1)
    text = "where(low, x * cos - y * sin, x * cos + y * sin)"
    body = formula(text, low=low, x=element(channel), y=element(partner), cos=angle(cos), sin=angle(sin))
    if turned != constant_value(size):
        body = formula("where(c < turned, body, x)", c=channel, turned=turned, body=body, x=element(channel))
    return op.emit(axes, body, x.ttype)


def _require_tables(op: Op, x: Value, cos: Value, sin: Value, positions: Value | None, half: int) -> None:
    """Raise ShapeError unless tables are `[position, half]`, or `[batch, token, half]` without positions."""
    for table in (cos, sin):
        if table.rank != (3 if positions is None else 2):
            raise ShapeError(f"a table of angles {shape_text(table.shape)}")
        op.require_same(table.shape[-1], Const(half), "half the channels and the tables")
    tokens = cos if positions is None else positions
    if positions is not None and positions.rank != 2:
        raise ShapeError(f"positions {shape_text(positions.shape)}, not [batch, token]")
    op.require_same(tokens.shape[1], x.shape[1 if x.rank == 3 else 2], "tokens and their positions")
    if positions is not None:
        require_range(op, positions, cos.shape[0], wraps=False)
    if tokens.shape[0] != Const(1):
        op.require_same(tokens.shape[0], x.shape[0], "batch and positions")
