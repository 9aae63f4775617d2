"""Work estimate: the number of evaluations of a tensor expression relative to the operator's operands and results."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.importer.operator import Op
from tilec.importer.shapes import size_of
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
    like the operator's inputs. Symbolic sizes are taken for large ones. Raises UnsupportedError with the number of
    evaluations.
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
        number = op.sizes.large(total)
        largest = max((op.sizes.large(size_of(shape)) for shape in shapes), default=0)
        if number <= max(MAX_FREE_STEPS, MAX_STEPS_PER_ELEMENT * largest):
            return
    raise op.unsupported(
        f"the tensor expression would take {number} operations{_at(total)}, far more than the operator itself",
        "The operator runs in the fallback; smaller sizes compile.",
    )


def _at(total: Expr) -> str:
    return "" if constant_value(total) is not None else f" ({text_of(total)} at large sizes)"
