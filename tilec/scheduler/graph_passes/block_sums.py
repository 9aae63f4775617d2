"""Sums whose terms have scales of blocks, taken apart: within a block, and over blocks (L27)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilec.ir.algebra import simplify
from tilec.ir.bind import simplify_tensor
from tilec.ir.expr import Binary, Const, Expr, Reduce, TensorExpr, Var, constant_value, substitute, variables
from tilec.scheduler.graph_passes.integral_factors import product_of
from tilec.scheduler.graph_passes.rewrite import fresh, iterator_names
from tilec.scheduler.graph_passes.split_reductions import split_reductions

ELEMENTS = 32
"""Elements of a block at most that are multiplied before the scale: their words are written out where the blocks are
summed up, and keep a register each."""


@dataclass(frozen=True, slots=True)
class Sums:
    """A sum whose scales do not depend on the `inner` ones of its reduce iterators."""

    expr: TensorExpr
    inner: tuple[str, ...]

    @property
    def outer(self) -> tuple[str, ...]:
        """Reduce iterators over blocks."""
        return tuple(i for i in self.expr.reduce if i not in self.inner)

    def outside(self, body: Expr) -> TensorExpr:
        """The expression over the blocks, whose terms are `body`."""
        expr, outer = self.expr, self.outer
        extents = tuple(expr.domain[i] for i in (*expr.spatial, *outer))
        return TensorExpr(expr.tensor, expr.spatial, outer, extents, Reduce("sum", outer, body) if outer else body)


def block_sums(expr: TensorExpr) -> Sums | None:
    """The sum of products of integers with scales of blocks, over blocks of 32 elements or fewer; None for any other.

    args:
        expr: a sum whose body is in terms of codes, zero points and scales
    rewrite:
        sum(k, f32(i32(X[m, k])) * (f32(i32(W[k, n])) * t[k // 128, n]))
        -> sum(k1, k3, k4, f32(i32(X[m, k1*128 + k3*32 + k4])) * ...), of which k4 is inner
    """
    split = split_reductions(expr)
    product = product_of(split.value, frozenset(), "f32")
    if product is None or not product.scales:
        return None
    parts = (*product.scales, *(factor.zero for factor in product.factors))
    moved = frozenset().union(*map(variables, parts)) & set(split.reduce)
    inner = [i for i in split.reduce if i not in moved]
    if not moved or not inner:
        return None
    extents = {i: constant_value(split.domain[i]) for i in inner}
    along = max(inner, key=lambda i: extents[i] or 0)
    extent, others = extents[along], [extents[i] for i in inner if i != along]
    if extent is None or any(other != 1 for other in others):
        return None
    length = next(n for n in range(min(extent, ELEMENTS), 0, -1) if extent % n == 0)
    return Sums(split, (along,)) if length == extent else _shortened(split, along, length)


def _shortened(expr: TensorExpr, along: str, length: int) -> Sums:
    """The sum with an iterator that runs over so many elements, and one over the blocks of them."""
    taken = set(iterator_names(expr))
    outer = fresh(along, taken)
    inner = fresh(along, taken | {outer})
    at = expr.reduce.index(along)
    reduce = (*expr.reduce[:at], outer, inner, *expr.reduce[at + 1 :])
    blocks = simplify(Binary("//", expr.domain[along], Const(length)))
    domain = {**expr.domain, outer: blocks, inner: Const(length)}
    place: Expr = Binary("+", Binary("*", Var(outer), Const(length)), Var(inner))
    body = Reduce("sum", reduce, substitute(expr.value, {along: place}))
    extents = tuple(domain[i] for i in (*expr.spatial, *reduce))
    return Sums(simplify_tensor(replace(expr, reduce=reduce, extents=extents, body=body)), (inner,))
