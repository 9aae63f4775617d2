"""AffineGrid: the image of every point under an affine map, in coordinates from -1 to 1."""

from __future__ import annotations

from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.registry import operator
from tilec.importer.shapes import ShapeError, shape_text
from tilec.importer.value import Value
from tilec.ir.algebra import simplify
from tilec.ir.expr import Call, Const, Expr


@operator("AffineGrid")
def _affine_grid(op: Op) -> Value:
    """`grid[n, place, k] = theta[n, k, d] * coordinate(d) + theta[n, k, last]`, x before y before z."""
    theta = op.value(0)
    sizes = op.contents(1) or ()
    rank = len(sizes) - 2
    if rank not in (2, 3) or theta.rank != 3:
        raise ShapeError(f"an affine map {shape_text(theta.shape)} for an image {shape_text(sizes)}")
    for extent, wanted in zip(theta.shape, (sizes[0], Const(rank), Const(rank + 1)), strict=True):
        op.require_same(extent, wanted, f"affine map {shape_text(theta.shape)} for an image {shape_text(sizes)}")
    axes = op.axes_of([sizes[0], *sizes[2:], Const(rank)])
    batch, component = axes[0].var, axes[-1].var
    body: Expr = theta.access([batch, component, Const(rank)])
    for d, place in enumerate(reversed(axes[1:-1])):
        scale = theta.access([batch, component, Const(d)])
        at = _coordinate(op, place.var, place.extent, theta.ttype)
        body = formula("scale * at + body", scale=scale, at=at, body=body)
    return op.emit(axes, body, theta.ttype)


def _coordinate(op: Op, index: Expr, extent: Expr, ttype: str) -> Expr:
    """The centre of a pixel; or, when corners are aligned, -1 for the first one and 1 for the last."""
    i, n = Call(ttype, (index,)), Call(ttype, (extent,))
    if not op.integer("align_corners"):
        return formula("(2.0 * i + 1.0) / n - 1.0", i=i, n=n)
    steps = Call(ttype, (simplify(formula("maximum(n - 1, 1)", n=extent)),))
    last = simplify(formula("n - 1", n=extent))
    return formula("where(place == last, 1.0, 2.0 * i / steps - 1.0)", place=index, last=last, i=i, steps=steps)
