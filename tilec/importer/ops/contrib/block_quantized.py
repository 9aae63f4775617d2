"""MatMulNBits: weights of 2, 4 or 8 bits in blocks along the summed dimension, each with a scale and zero point."""

from __future__ import annotations

from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.ops.contraction import product
from tilec.importer.ops.contrib.packed_elements import WIDTHS, flat_place, in_single, packed_element
from tilec.importer.ops.movement import transposed
from tilec.importer.registry import CONTRIB, operator
from tilec.importer.shapes import size_of
from tilec.importer.value import Value
from tilec.ir.expr import Const, Expr
from tilec.ir.graph import Rounding
from tilec.ir.types import is_float

ROUNDED = 4
"""The accuracy level that lets the activations be rounded to 8 bits."""


@operator("MatMulNBits", domain=CONTRIB)
def _matmul_nbits(op: Op) -> Value:
    """`A @ W + bias` with `W[k, n] = (q[n, k] - zero[n, k // block]) * scale[n, k // block]`, summed in f32."""
    a, bias = op.value(0), op.optional(5)
    if op.optional(4) is not None:
        raise op.unsupported("the input g_idx", "Export the model without reordered groups.")
    weight = transposed(op, _weight(op), (1, 0), part="turned")
    plain = bias is None and a.ttype == "f32"
    total = product(op, a, weight, part="" if plain else "product", ttype="f32")
    if op.integer("accuracy_level") == ROUNDED:
        op.builder.roundings[total.name] = Rounding("a8")
    if plain:
        return total
    text = "x" if bias is None else "x + b" if bias.ttype == "f32" else "x + f32(b)"
    return op.elementwise(text, {"x": total} | ({} if bias is None else {"b": bias}), a.ttype)


def _weight(op: Op) -> Value:
    """The weight `[n, k]` in f32."""
    packed, scales, zeros = op.value(1), op.value(2), op.optional(3)
    bits, block, rows, inner = (op.integer(n, d) for n, d in (("bits", 4), ("block_size", 0), ("N", 0), ("K", 0)))
    if bits not in WIDTHS:
        raise op.unsupported(f"elements of {bits} bits", f"Elements of {', '.join(map(str, WIDTHS))} bits are.")
    if block < 1 or rows < 1 or inner < 1 or block * bits % 8:
        raise op.invalid(f"blocks of {block} elements of a weight [{rows}, {inner}]")
    blocks = -(-inner // block)
    op.require_same(size_of(packed.shape), Const(rows * blocks * block * bits // 8), "packed elements")
    op.require_same(size_of(scales.shape), Const(rows * blocks), "scales and blocks")
    axes = op.builder.iterators("nk", (Const(rows), Const(inner)))
    n, k = (a.var for a in axes)
    of_block = formula("k // b", k=k, b=block)
    element = packed_element(op, packed, (rows, blocks * block), (n, k), bits)
    group = formula("n * e + b", n=n, b=of_block, e=blocks)
    scale = in_single(scales, flat_place(scales, group))
    body: Expr
    if zeros is not None and is_float(zeros.ttype):
        zero: Expr = in_single(zeros, flat_place(zeros, group))
        body = formula("(f32(q) - z) * s", q=element, z=zero, s=scale)
    else:
        zero = Const(1 << (bits - 1))
        if zeros is not None:
            zero = packed_element(op, zeros, (rows, blocks), (n, of_block), bits)
        body = formula("f32(q - z) * s", q=element, z=zero, s=scale)
    return op.emit(axes, body, "f32", part="weight")
