"""How a buffer's elements lie in storage: the order of dimensions, and elements that fill up rows (W37)."""

from __future__ import annotations

from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Const, Expr
from tilec.ir.program import Buffer
from tilec.ir.types import tensor_bytes


def stored_order(buffer: Buffer) -> tuple[int, ...]:
    """The dimensions as they are stored, outermost first."""
    return buffer.layout or tuple(range(len(buffer.shape)))


def stored_shape(buffer: Buffer) -> tuple[Expr, ...]:
    """Extents of the dimensions, in their own order, with what fills up rows: those along the innermost dimension of
    more than one element."""
    if not buffer.pad or not buffer.shape:
        return buffer.shape
    order = stored_order(buffer)
    last = next((d for d in reversed(order) if buffer.shape[d] != Const(1)), order[-1])
    padded = simplify(Binary("+", buffer.shape[last], Const(buffer.pad)))
    return tuple(padded if d == last else extent for d, extent in enumerate(buffer.shape))


def stored_bytes(buffer: Buffer) -> Expr:
    """Bytes of one copy of a buffer."""
    return tensor_bytes(buffer.ttype, stored_shape(buffer))


def strides(buffer: Buffer) -> tuple[Expr, ...]:
    """Elements between neighbours along every dimension, in storage."""
    order, shape = stored_order(buffer), stored_shape(buffer)
    result: list[Expr] = [Const(1)] * len(order)
    step: Expr = Const(1)
    for dim in reversed(order):
        result[dim] = step
        step = simplify(Binary("*", step, shape[dim]))
    return tuple(result)
