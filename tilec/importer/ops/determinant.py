"""Determinants of small matrices: unrolled elimination with pivots; the matrix shrinks by one row and column a step."""

from __future__ import annotations

from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.registry import operator
from tilec.importer.shapes import ShapeError, shape_text
from tilec.importer.value import Value
from tilec.ir.expr import Const, constant_value
from tilec.ir.types import TTYPES

MAX_ROWS = 16
"""Maximal number of rows of a matrix whose elimination is unrolled."""


@operator("Det")
def _det(op: Op) -> Value:
    """The product of the pivots, negated for every exchange of rows; a column without a pivot makes it 0."""
    x = op.value(0)
    if x.rank < 2:
        raise ShapeError(f"an input {shape_text(x.shape)} that is no square matrix")
    op.require_same(x.shape[-1], x.shape[-2], f"an input {shape_text(x.shape)} that is no square matrix")
    size = op.fixed(x.shape[-1], "how many steps eliminate")
    if size > MAX_ROWS:
        reason = f"a determinant of {shape_text(x.shape[-2:])}"
        raise op.unsupported(reason, f"Fixed sizes of at most {MAX_ROWS} rows compile.")
    batch = x.shape[:-2]
    if size == 0:
        return op.full(batch, 1.0, x.ttype)
    ttype = x.ttype
    if TTYPES[ttype].bits == 16:
        x = op.map("f32(x)", x=x, part="wide")
    product: Value | None = None
    for step in range(size - 1):
        product, x = _eliminate(op, x, product, step)
    axes = op.axes_of(batch)
    body = x.access([*(a.var for a in axes), Const(0), Const(0)])
    if product is None:
        return op.emit(axes, formula(f"{ttype}(x)", x=body) if ttype != x.ttype else body, ttype)
    last = formula("d * x", d=product.access([a.var for a in axes]), x=body)
    return op.emit(axes, formula(f"{ttype}(x)", x=last) if ttype != x.ttype else last, ttype)


def _eliminate(op: Op, x: Value, product: Value | None, step: int) -> tuple[Value, Value]:
    """The product with the pivot of the first column, and the remaining rows and columns after its elimination."""
    size = constant_value(x.shape[-1]) or 0
    batch = op.axes_of(x.shape[:-2])
    sample = [a.var for a in batch]
    (r,) = op.builder.iterators("r", [Const(size)])
    element = formula("abs(x)", x=x.access([*sample, r.var, Const(0)]))
    largest = op.emit(batch, element, x.ttype, [r], "max", part=f"pivot{step}")
    candidates = formula("where(x == m, r, n)", x=element, m=largest.access(sample), r=r.var, n=size - 1)
    row = op.emit(batch, candidates, "i64", [r], "min", part=f"row{step}")

    pivot = x.access([*sample, row.access(sample), Const(0)])
    signed = formula("where(p == 0, x, -x)", p=row.access(sample), x=pivot)
    joined = signed if product is None else formula("d * x", d=product.access(sample), x=signed)
    total = op.emit(batch, joined, x.ttype, part=f"product{step}")

    axes = op.axes_of([*x.shape[:-2], Const(size - 1), Const(size - 1)])
    inner = [a.var for a in axes[:-2]]
    i, j = axes[-2].var, axes[-1].var
    chosen = row.access(inner)
    other = formula("where(i + 1 == p, 0, i + 1)", i=i, p=chosen)
    column = formula("j + 1", j=j)
    body = formula(
        "x - where(m == 0.0, 0.0, f / p) * y",
        x=x.access([*inner, other, column]),
        f=x.access([*inner, other, Const(0)]),
        p=x.access([*inner, chosen, Const(0)]),
        y=x.access([*inner, chosen, column]),
        m=largest.access(inner),
    )
    return total, op.emit(axes, body, x.ttype, part=f"rest{step}")
