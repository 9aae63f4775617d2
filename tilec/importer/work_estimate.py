"""Work estimate: the number of evaluations of a tensor expression relative to the operator's operands and results."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.importer.operator import Op
from tilec.importer.shapes import UndecidedError, size_of, symbols_of
from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Const, Expr, constant_value
from tilec.ir.text import text_of

MAX_FREE_STEPS = 1 << 20
"""Number of evaluations that cost less than leaving the compiled model: always affordable."""

MAX_STEPS_PER_ELEMENT = 256
"""Maximal number of evaluations for every element of the operator's largest operand or result."""


def require_affordable(op: Op, steps: Sequence[Expr], *results: Sequence[Expr]) -> None:
    """Refuse a tensor expression that evaluates far more points than the operator touches elements (a scatter as a
    search).

    `steps` are the extents of the evaluated points, spatial and reduced; `results` are shapes of results, which count
    like the operator's inputs. Raises UnsupportedError with the number of evaluations, UndecidedError when that depends
    on symbolic sizes.
    """
    total = size_of(steps)
    number = constant_value(total)
    if number is not None and number <= MAX_FREE_STEPS:
        return
    shapes = [*results, *(value.shape for value in op.inputs if value is not None)]
    for size in {size_of(shape) for shape in shapes}:
        each = constant_value(simplify(Binary("//", total, size))) if size != Const(0) else None
        if each is not None and each <= MAX_STEPS_PER_ELEMENT:
            return
    if number is None:
        message = (
            f"the tensor expression would take {text_of(total)} operations; whether that pays depends on the sizes"
        )
        raise UndecidedError(message, symbols_of((total,)))
    raise op.unsupported(
        f"the tensor expression would take {number} operations, far more than the operator itself",
        "The operator runs in the fallback; smaller sizes compile.",
    )
