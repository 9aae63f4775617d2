"""Running means: a partial sum extrapolated to all elements by a running count (Welford)."""

from __future__ import annotations

from tilec.ir.algebra import simplify
from tilec.ir.expr import Access, Binary, Call, Const, Expr, Reduce, TensorExpr, Var, constant_value

EXACT = 1 << 24
"""Largest count up to which every integer is an f32."""


def count_type(node: TensorExpr, ttype: str) -> str:
    """The type in which the elements of a sum can be counted exactly."""
    elements = constant_value(_elements(node))
    return "f64" if ttype == "f64" or elements is None or elements > EXACT else "f32"


def count_node(name: str, node: TensorExpr, ttype: str) -> TensorExpr:
    """Number of elements in each result of a reduction so far: `T_count[()] = sum(r, 1.0)`."""
    extents = node.extents[len(node.spatial) :]
    one: Expr = Const(1.0) if ttype == "f32" else Call(ttype, (Const(1.0),))
    return TensorExpr(name, (), node.reduce, extents, Reduce("sum", node.reduce, one))


def estimate(value: Access, node: TensorExpr, count: Access, own: str, counted: str) -> Expr:
    """A partial sum of type `own` as an estimate of the whole sum: `T[s] * (24.0 / T_count[()])`."""
    elements = _elements(node)
    known = constant_value(elements)
    total: Expr = Call(counted, (elements,)) if known is None else Const(float(known))
    ratio = Binary("/", total, count)
    if own == counted:
        return Binary("*", value, ratio)
    return Call(own, (Binary("*", Call(counted, (value,)), ratio),))


def estimate_node(name: str, node: TensorExpr, count: Access, own: str, counted: str) -> TensorExpr:
    """The node that estimates all results of a sum."""
    value = Access(node.tensor, tuple(map(Var, node.spatial)))
    return TensorExpr(name, node.spatial, (), node.shape, estimate(value, node, count, own, counted))


def _elements(node: TensorExpr) -> Expr:
    total: Expr = Const(1)
    for extent in node.extents[len(node.spatial) :]:
        total = Binary("*", total, extent)
    return simplify(total)
