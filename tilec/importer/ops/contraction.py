"""Matrix products of any rank: MatMul, Gemm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilec.importer.broadcasting import broadcast, repeated_index, require_fit
from tilec.importer.builder import Axis
from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.registry import operator
from tilec.importer.shapes import ShapeError, Sizes, shape_text
from tilec.importer.value import Value
from tilec.ir.expr import Expr
from tilec.ir.types import TTYPES

BATCH = ("b", "h", "g", "e", "f", "b5", "b6", "b7", "b8", "b9")
"""Iterators over the leading dimensions of a batched matrix product."""


@dataclass(frozen=True, slots=True)
class Product:
    """A matrix product with NumPy's rules for vectors and leading dimensions: iterators, and indices into A and B.

    `lead` are leading dimensions, `rows` and `columns` one iterator each or none (of a vector), `inner` is summed over.
    """

    lead: tuple[Axis, ...]
    rows: tuple[Axis, ...]
    columns: tuple[Axis, ...]
    inner: Axis
    left: tuple[Expr, ...]
    right: tuple[Expr, ...]

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The iterators of the result."""
        return (*self.lead, *self.rows, *self.columns)


def product_of(op: Op, a: Value, b: Value) -> Product:
    """The iterators of `A @ B`. Raises ShapeError where the shapes do not fit."""
    if a.rank == 0 or b.rank == 0:
        raise ShapeError("a matrix product of a scalar")
    described = f"{shape_text(a.shape)} @ {shape_text(b.shape)}"
    inner = a.shape[-1]
    op.require_same(inner, b.shape[-2] if b.rank > 1 else b.shape[0], f"{described} sums over two extents")
    lead = op.builder.iterators(BATCH, broadcast(a.shape[:-2], b.shape[:-2], sizes=op.sizes))
    rows = op.builder.iterators("m", a.shape[-2:-1])
    columns = op.builder.iterators("n", b.shape[-1:] if b.rank > 1 else ())
    (k,) = op.builder.iterators("k", [inner])
    left = (*leading_index(a, lead, op.sizes), *(r.var for r in rows), k.var) if a.rank > 1 else (k.var,)
    right = (*leading_index(b, lead, op.sizes), k.var, *(c.var for c in columns)) if b.rank > 1 else (k.var,)
    return Product(lead, rows, columns, k, left, right)


def leading_index(value: Value, axes: Sequence[Axis], sizes: Sizes) -> tuple[Expr, ...]:
    """The leading indices at which a broadcast operand of a product is read."""
    leading = value.shape[: value.rank - 2]
    return repeated_index(leading, axes[len(axes) - len(leading) :], sizes)


def product(op: Op, a: Value, b: Value, part: str = "", ttype: str | None = None) -> Value:
    """`C[..., m, n] = sum(k, A[..., m, k] * B[..., k, n])` with NumPy's rules for vectors and leading dimensions.

    `ttype` is the type of product and sum, by default that of the operands.
    """
    frame = product_of(op, a, b)
    text = "x * y" if ttype is None or ttype == a.ttype else f"{ttype}(x) * {ttype}(y)"
    body = formula(text, x=a.access(frame.left), y=b.access(frame.right))
    return op.emit(frame.axes, body, ttype or a.ttype, [frame.inner], part=part)


@operator("MatMul")
def _matmul(op: Op) -> Value:
    return product(op, op.value(0), op.value(1))


@operator("Gemm")
def _gemm(op: Op) -> Value:
    """`alpha * A @ B + beta * C`, with A or B transposed on request: scaling and C are applied after the sum."""
    a, b, c = op.value(0), op.value(1), op.optional(2)
    alpha, beta = op.number("alpha", 1.0), op.number("beta", 1.0)
    if a.rank != 2 or b.rank != 2:
        raise ShapeError(f"operands {shape_text(a.shape)} and {shape_text(b.shape)} are not both matrices")
    flip_a, flip_b = bool(op.integer("transA")), bool(op.integer("transB"))
    rows, inner = (a.shape[1], a.shape[0]) if flip_a else (a.shape[0], a.shape[1])
    other, columns = (b.shape[1], b.shape[0]) if flip_b else (b.shape[0], b.shape[1])
    op.require_same(inner, other, f"{shape_text(a.shape)} and {shape_text(b.shape)} sum over two extents")
    m, n, k = op.builder.iterators("mnk", (rows, columns, inner))
    left = a.access((k.var, m.var) if flip_a else (m.var, k.var))
    right = b.access((n.var, k.var) if flip_b else (k.var, n.var))
    plain = alpha == 1.0 and (c is None or beta == 0.0)
    total = op.emit((m, n), formula("x * y", x=left, y=right), a.ttype, (k,), part="" if plain else "product")
    if plain:
        return total
    scaled = "x" if alpha == 1.0 else "x * alpha"
    factors: dict[str, float] = {} if alpha == 1.0 else {"alpha": _factor(op, alpha, a)}
    if c is None or beta == 0.0:
        return op.elementwise(scaled, {"x": total, **factors})
    require_fit(c.shape, (rows, columns), op.sizes)
    offset = "c" if beta == 1.0 else "c * beta"
    factors |= {} if beta == 1.0 else {"beta": _factor(op, beta, a)}
    return op.elementwise(f"{scaled} + {offset}", {"x": total, "c": c, **factors})


def _factor(op: Op, value: float, like: Value) -> float:
    if TTYPES[like.ttype].kind == "float":
        return value
    if value != int(value):
        raise op.unsupported(f"a factor of {value} for {like.ttype}", "Use a whole number.")
    return int(value)
