"""Rotary position embedding of the contrib domain: ONNX's, with positions as an offset or for every token."""

from __future__ import annotations

from tilec.importer.compose import applied
from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.ops.contrib.attention import refuse
from tilec.importer.ops.gather import require_range
from tilec.importer.registry import CONTRIB, operator
from tilec.importer.shapes import ShapeError, shape_text
from tilec.importer.value import Value
from tilec.ir.algebra import simplify
from tilec.ir.expr import Const, constant_value


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
    heads = op.integer("num_heads")
    if not heads and x.rank == 3:
        channels, half = constant_value(x.shape[2]), constant_value(cos.shape[-1])
        if channels is None or not half or channels % (2 * half):
            raise op.unsupported("heads of a symbolic size", "Bind it with --shape SYMBOL=SIZE.")
        heads = channels // (2 * half)
    return applied(
        op,
        "RotaryEmbedding",
        *(x, cos, sin, positions),
        opset=23,
        interleaved=op.integer("interleaved"),
        num_heads=heads,
        rotary_embedding_dim=op.integer("rotary_embedding_dim"),
    )
