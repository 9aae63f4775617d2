"""Elements of 2, 4 or 8 bits, packed into bytes along the last dimension, lowest bits first."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.shapes import size_of
from tilec.importer.value import Value
from tilec.importer.weights import Stored
from tilec.ir.expr import Expr
from tilec.ir.types import TTYPES

WIDTHS = (2, 4, 8)
"""Widths of an element in bits that divide a byte."""


def packed_element(op: Op, packed: Value, shape: tuple[int, int], place: tuple[Expr, Expr], bits: int) -> Expr:
    """An element of a matrix whose rows are packed into whole bytes; a constant becomes one of codes."""
    ttype, per_byte = f"u{bits}", 8 // bits
    width = -(-shape[1] // per_byte)
    stored = op.builder.stored(packed.name)
    if stored is None or not TTYPES[ttype].coded:
        return _bits(packed, *place, width * per_byte, bits)
    codes = Stored(stored.array.reshape(shape[0], width), ttype, stored.ref, shape)
    return formula("i32(q)", q=op.builder.constant(f"{packed.name}_codes", codes).access(place))


def _bits(packed: Value, row: Expr, column: Expr, columns: int, bits: int) -> Expr:
    """Element `[row, column]` of a row-major matrix of `columns` elements packed into bytes, lowest bits first."""
    per_byte = 8 // bits
    flat = formula("r * e + c // p", r=row, c=column, e=columns // per_byte, p=per_byte)
    byte = packed.access(flat_place(packed, flat))
    if per_byte == 1:
        return formula("i32(x)", x=byte)
    place = formula("i32(c % p * bits)", c=column, p=per_byte, bits=bits)
    return formula("bitand(shr(i32(x), place), mask)", x=byte, place=place, mask=(1 << bits) - 1)


def flat_place(value: Value, index: Expr) -> list[Expr]:
    """The place of the element at an index into the flattened tensor."""
    place: list[Expr] = []
    for d in range(value.rank):
        behind = size_of(value.shape[d + 1 :])
        step = formula("i // b", i=index, b=behind)
        place.append(step if d == 0 else formula("i % e", i=step, e=value.shape[d]))
    return place


def in_single(value: Value, place: Sequence[Expr]) -> Expr:
    """An element in f32."""
    element = value.access(place)
    return element if value.ttype == "f32" else formula("f32(x)", x=element)
