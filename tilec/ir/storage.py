"""How a buffer's elements lie in storage: the order of dimensions, elements that fill up rows, and rows that are
swizzled (W37).

Rows are those along the innermost dimension of more than one element. Swizzled ones are cut into panels of 32, 64 or
128 bytes, which are stored one panel after the other, each row by row. Within lines of 128 bytes, those that all banks
serve at once, the number of a piece of 16 bytes is changed by exclusive or with the number of its line:

    128    row 0   0 1 2 3 4 5 6 7        64    rows 0, 1   0 1 2 3   4 5 6 7
           row 1   1 0 3 2 5 4 7 6              rows 2, 3   1 0 3 2   5 4 7 6
           row 2   2 3 0 1 6 7 4 5              rows 4, 5   2 3 0 1   6 7 4 5

so that equal pieces of eight rows lie in all banks, and so do the pieces of one row. These are the layouts that
units of matrices read through descriptors (PTX ISA, Shared Memory Matrix Layout).
"""

from __future__ import annotations

from collections.abc import Sequence

from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Const, Expr
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.places import element_at
from tilec.ir.program import Buffer
from tilec.ir.types import TTYPES, tensor_bytes

PIECE, LINE = 16, 128
"""Bytes of what swizzled rows permute, and of what all banks serve at once."""

SWIZZLES = (128, 64, 32)
"""Bytes of the panels of swizzled rows."""


def stored_order(buffer: Buffer) -> tuple[int, ...]:
    """The dimensions as they are stored, outermost first."""
    return buffer.layout or tuple(range(len(buffer.shape)))


def row_dimension(buffer: Buffer) -> int:
    """The dimension that rows lie along."""
    order = stored_order(buffer)
    return next((d for d in reversed(order) if buffer.shape[d] != Const(1)), order[-1])


def stored_shape(buffer: Buffer) -> tuple[Expr, ...]:
    """Extents of the dimensions, in their own order, with what fills up rows; of all that a place is in."""
    if buffer.place is not None:
        return buffer.place.shape
    if not buffer.pad or not buffer.shape:
        return buffer.shape
    last = row_dimension(buffer)
    padded = simplify(Binary("+", buffer.shape[last], Const(buffer.pad)))
    return tuple(padded if d == last else extent for d, extent in enumerate(buffer.shape))


def stored_bytes(buffer: Buffer) -> Expr:
    """Bytes of one copy of a buffer."""
    return tensor_bytes(buffer.ttype, stored_shape(buffer))


def storage_alignment(buffer: Buffer) -> int:
    """What the address of a buffer is a multiple of: swizzled rows begin where their lines count from 0."""
    return buffer.swizzle * LINE // PIECE if buffer.swizzle else 1


def swizzle_period(buffer: Buffer) -> int:
    """Elements after which the pattern of a swizzled buffer begins again."""
    return LINE * (buffer.swizzle // PIECE) * 8 // TTYPES[buffer.ttype].bits


def panel_width(buffer: Buffer) -> int:
    """Elements of a row of a swizzled buffer's panel."""
    return buffer.swizzle * 8 // TTYPES[buffer.ttype].bits


def strides(buffer: Buffer) -> tuple[Expr, ...]:
    """Elements between neighbours along every dimension, in storage; those of a swizzled buffer in one panel, before
    pieces are permuted."""
    return _strides(buffer)[0]


def panel_stride(buffer: Buffer) -> Expr:
    """Elements between the panels of a swizzled buffer."""
    return _strides(buffer)[1]


def position(buffer: Buffer, index: Sequence[Expr], ranges: KnownRanges) -> Expr:
    """Elements in front of the one at an index of the tensor, before pieces are permuted."""
    steps, panel = _strides(buffer)
    total: Expr = Const(0)
    lo = buffer.lo
    if buffer.place is not None:
        index, lo = element_at(buffer.place, index), (Const(0),) * len(steps)
    for d, (at, begin, step) in enumerate(zip(index, lo, steps, strict=True)):
        offset: Expr = Binary("-", at, begin)
        if buffer.swizzle and d == row_dimension(buffer):
            offset, width = simplify(offset, ranges), Const(panel_width(buffer))
            total = Binary("+", total, Binary("*", Binary("//", offset, width), panel))
            offset = Binary("%", offset, width)
        total = Binary("+", total, Binary("*", offset, step))
    return simplify(total, ranges)


def _strides(buffer: Buffer) -> tuple[tuple[Expr, ...], Expr]:
    """Elements between neighbours along every dimension, and between panels."""
    shape = list(stored_shape(buffer))
    order = stored_order(buffer) if buffer.place is None else tuple(range(len(shape)))
    if buffer.swizzle:
        shape[row_dimension(buffer)] = Const(panel_width(buffer))
    result: list[Expr] = [Const(1)] * len(order)
    step: Expr = Const(1)
    for dim in reversed(order):
        result[dim] = step
        step = simplify(Binary("*", step, shape[dim]))
    return tuple(result), step
