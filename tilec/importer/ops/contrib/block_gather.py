"""GatherBlockQuantized: rows of a table of few bits in blocks, each with a scale and zero point."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.ops.contrib.packed_elements import WIDTHS, in_single, packed_element
from tilec.importer.ops.gather import looked_up
from tilec.importer.registry import CONTRIB, operator
from tilec.importer.shapes import ShapeError, shape_text, size_of
from tilec.importer.value import Value
from tilec.ir.algebra import simplify
from tilec.ir.expr import Const, Expr
from tilec.ir.types import is_float


@operator("GatherBlockQuantized", domain=CONTRIB)
def _gather_block_quantized(op: Op) -> Value:
    """`(q - zero) * scale` of the elements that Gather takes; 0 for an index outside the table."""
    data, indices, scales, zeros = op.value(0), op.value(1), op.value(2), op.optional(3)
    bits, block = op.integer("bits", 4), op.integer("block_size", 128)
    axis, along = op.axis(op.integer("gather_axis"), data.rank), op.axis(op.integer("quantize_axis", 1), data.rank)
    per_byte = 1
    if data.ttype == "u8":
        if bits not in WIDTHS:
            raise op.unsupported(f"elements of {bits} bits", f"Elements of {', '.join(map(str, WIDTHS))} bits are.")
        per_byte = 8 // bits
        if axis != 0 or along != data.rank - 1 or axis == along:
            raise op.invalid(f"packed elements gathered along {axis} in blocks along {along}")
    shape = (*data.shape[:-1], simplify(formula("n * p", n=data.shape[-1], p=per_byte)))
    if block < (0 if is_float(data.ttype) else 1):
        raise op.invalid(f"blocks of {block} elements")
    step: Expr = Const(block) if block else shape[along]
    for each in (scales,) if zeros is None else (scales, zeros):
        _require_blocks(op, each, shape, along, step, per_byte if each is zeros else 1)
    axes = op.axes_of([*shape[:axis], *indices.shape, *shape[axis + 1 :]])
    result = [a.var for a in axes]
    index = indices.at(result[axis : axis + indices.rank])
    place = [
        *result[:axis],
        looked_up(op, index, indices.ttype, shape[axis]),
        *result[axis + indices.rank :],
    ]
    of_block: list[Expr] = [formula("i // b", i=i, b=step) if d == along else i for d, i in enumerate(place)]
    scale = in_single(scales, [_repeated(i, n) for i, n in zip(of_block, scales.shape, strict=True)])
    if is_float(data.ttype):
        number = formula("f32(q) * s", q=data.access(place), s=scale)
    else:
        element = _element(op, data, place, bits)
        zero: Expr = Const(1 << (bits - 1) if data.ttype == "u8" else 0)
        if zeros is not None:
            zero = _element(op, zeros, of_block, bits)
        number = formula("f32(q - z) * s", q=element, z=zero, s=scale)
    inside = formula("i >= -n and i < n", i=index, n=shape[axis])
    body = formula("where(inside, x, 0.0)", inside=inside, x=number)
    return op.emit(axes, body if scales.ttype == "f32" else formula(f"{scales.ttype}(x)", x=body), scales.ttype)


def _require_blocks(op: Op, x: Value, shape: Sequence[Expr], along: int, block: Expr, per_byte: int) -> None:
    """Scales or zero points have an element for each block; of floats one may serve all along other dimensions."""
    what = f"scales or zero points {shape_text(x.shape)} of a table {shape_text(shape)}"
    if x.rank != len(shape):
        raise ShapeError(what)
    for d, (given, extent) in enumerate(zip(x.shape, shape, strict=True)):
        if d == along:
            blocks = formula("(e + b - 1) // b", e=extent, b=block)
            op.require_same(given, simplify(formula("(n + p - 1) // p", n=blocks, p=per_byte)), what)
        elif given != Const(1) or not is_float(op.value(0).ttype):
            op.require_same(given, extent, what)


def _repeated(index: Expr, extent: Expr) -> Expr:
    return Const(0) if extent == Const(1) else index


def _element(op: Op, x: Value, place: Sequence[Expr], bits: int) -> Expr:
    """An element as an integer: one of few bits, or one packed into bytes along the last dimension."""
    if x.ttype != "u8":
        return formula("i32(q)", q=x.access(place))
    rows, columns = (op.fixed(size_of(e), "elements of a table") for e in (x.shape[:-1], x.shape[-1:]))
    row: Expr = Const(0)
    for index, extent in zip(place[:-1], x.shape[:-1], strict=True):
        row = formula("r * e + i", r=row, e=extent, i=index)
    return packed_element(op, x, (rows, columns * (8 // bits)), (row, place[-1]), bits)
