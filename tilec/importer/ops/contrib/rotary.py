"""Rotary position embedding of the contrib domain: ONNX's, with positions as an offset or for every token."""

from __future__ import annotations

from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.ops.attention import rotated
from tilec.importer.ops.contrib.attention import refuse
from tilec.importer.ops.gather import require_range
from tilec.importer.registry import CONTRIB, operator
from tilec.importer.shapes import ShapeError, assume_divides, shape_text
from tilec.importer.value import Value
from tilec.ir.algebra import simplify
from tilec.ir.expr import Const, Expr
from tilec.ir.text import text_of


@operator("RotaryEmbedding", domain=CONTRIB)
def _rotary_embedding(op: Op) -> Value:
    x, positions, cos, sin = (op.value(i) for i in range(4))
    refuse(op, {"is_packed_batching": 0})
    if op.number("scale", 1.0) != 1.0:
        raise op.unsupported(f"the attribute 'scale' is {op.number('scale')}")
    if x.rank not in (3, 4):
        raise ShapeError(f"an input {shape_text(x.shape)} of rank {x.rank}, not 3 or 4")
    tokens = x.shape[1 if x.rank == 3 else 2]
    if positions.rank != 2:
        require_range(op, positions, simplify(formula("e - t + 1", e=cos.shape[0], t=tokens)), wraps=False)
        axes = op.axes_of((x.shape[0], tokens))
        first = positions.at([Const(0)] * positions.rank)
        positions = op.emit(axes, formula("first + t", first=first, t=axes[1].var), "i64", part="positions")
    return rotated(op, x, cos, sin, positions, _size_of_head(op, x, cos) if x.rank == 3 else None)


def _size_of_head(op: Op, x: Value, cos: Value) -> Expr:
    """The channels of a head, as many as the tables rotate where the number of heads is not given."""
    heads = op.integer("num_heads")
    if heads:
        return op.divided(x.shape[2], heads, "heads")
    size = simplify(formula("2 * half", half=cos.shape[-1]))
    assume_divides(op.sizes, size, x.shape[2], f"{text_of(x.shape[2])} channels in heads of {text_of(size)}")
    return size
