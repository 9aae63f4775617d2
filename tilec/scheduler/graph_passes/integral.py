"""Products of dequantised numbers as sums of integers, with scales and zero points outside (L01, L05).

The sums of integers are exact; those of the real numbers that they replace are rounded in their order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from tilec.ir.expr import (
    Access,
    Binary,
    Const,
    Expr,
    Reduce,
    TensorExpr,
    Var,
    constant_value,
    operands,
    variables,
)
from tilec.ir.graph import Graph, Node, Tensor
from tilec.scheduler.graph_passes.block_sums import Sums, block_sums
from tilec.scheduler.graph_passes.integral_factors import Product, product_of
from tilec.scheduler.graph_passes.rewrite import constant_tensors, fresh, substitute_accesses, with_nodes
from tilec.scheduler.graph_passes.sink_dequantize import dequantized
from tilec.scheduler.refusals import RewrittenGraph

LARGEST = (1 << 31) - 1
"""Magnitude that no sum may exceed."""


def integral(draft: RewrittenGraph) -> RewrittenGraph:
    """Sums of products of dequantised numbers as sums of products of integers.

    args:
        draft: the graph, and the edges refused so far
    rewrite, where z, y and the scales s, t do not depend on k:
        C[m, n] = sum(k, f32(i32(X[m, k]) - z) * s * (f32(i32(W[k, n]) - y) * t))
        -> C_integral1[m, n] = sum(k, i32(X[m, k]) * i32(W[k, n]))
           C_offset1[n] = sum(k, (i32(W[k, n]) - y) * z)          (prepared where W is constant)
           C_sums1[m] = sum(k, i32(X[m, k]))                      (only where y is not 0; times -y if it is a literal)
           C[m, n] = f32(C_integral1[m, n] - C_offset1[n] - C_sums1[m] * y) * (s * t)
    rewrite of scales that are those of blocks, for 32 elements or fewer of a block at once:
        C[m, n] = sum(k, f32(i32(X[m, k])) * s[m, k // 32] * (f32(i32(W[k, n])) * t[k // 32, n]))
        -> C_integral1[b, m, n] = sum(k, i32(X[m, b*32 + k]) * i32(W[b*32 + k, n]))
           C[m, n] = sum(b, f32(C_integral1[b, m, n]) * (s[m, b] * t[b, n]))
    rewrite of a guarded factor: its fill is the zero point, that is 0 as a real number
        where(h >= 1, f32(i32(X[h - 1]) - z) * s, 0.0)  ->  where(h >= 1, i32(X[h - 1]), z)
    checks:
        no sum of the integers leaves i32, for any codes: extents of reduce iterators are constants
    """
    graph = draft.graph
    real = {node.name: node.expr for node in graph.nodes if not node.expr.reduce and dequantized(node.expr.body)}
    state = _Integral(graph, real, constant_tensors(graph))
    nodes = [new for node in graph.nodes for new in state.rewritten(node)]
    if len(nodes) == len(graph.nodes):
        return draft
    return RewrittenGraph(with_nodes(graph, nodes, state.tensors), draft.refused)


@dataclass
class _Integral:
    """`real` are the dequantisations of the graph, `tensors` those that the rewrite adds."""

    graph: Graph
    real: Mapping[str, TensorExpr]
    constants: frozenset[str]
    tensors: dict[str, Tensor] = field(default_factory=dict)

    def rewritten(self, node: Node) -> tuple[Node, ...]:
        """The nodes in place of one."""
        expr, ttype = node.expr, self.graph.tensors[node.name].ttype
        if expr.reducer != "sum" or ttype not in ("f32", "i32"):
            return (node,)
        value = expr.value
        for tensor in operands(expr):
            if tensor in self.real:
                value = substitute_accesses(value, self.real[tensor])
        expr = replace(expr, body=Reduce("sum", expr.reduce, value))
        for sums in (Sums(expr, expr.reduce), block_sums(expr)):
            product = None if sums is None else self._product(sums, ttype)
            if sums is not None and product is not None and _fits(sums, product, {**self.graph.ttypes}):
                return self._nodes(node, sums, product)
        return (node,)

    def _product(self, sums: Sums, ttype: str) -> Product | None:
        """The integer factors of a sum of two of them, that with constant weights last."""
        product = product_of(sums.expr.value, frozenset(sums.inner), ttype)
        if product is None or (ttype == "i32" and all(f.zero == Const(0) for f in product.factors)):
            return None
        first, second = product.factors
        swap = first.code.tensor in self.constants and second.code.tensor not in self.constants
        return replace(product, factors=(second, first)) if swap else product

    def _nodes(self, node: Node, sums: Sums, product: Product) -> tuple[Node, ...]:
        x, w = product.factors
        expr = sums.expr
        points = (*sums.outer, *expr.spatial)
        total = self._sum(node, sums, "integral", Binary("*", x.filled, w.filled), points)
        nodes, value = [total], _at(total)
        if x.zero != Const(0):
            literal = isinstance(x.zero, Const)
            body = Binary("*", w.difference, x.zero) if literal else w.difference
            offset = self._sum(node, sums, "offset", body, _used(points, body))
            nodes.append(offset)
            value = Binary("-", value, _at(offset) if literal else Binary("*", _at(offset), x.zero))
        if w.zero != Const(0):
            shift = w.zero.value if isinstance(w.zero, Const) else None
            codes = x.filled if shift is None else Binary("*", x.filled, Const(-shift))
            added = self._sum(node, sums, "sums", codes, _used(points, codes))
            nodes.append(added)
            taken = Binary("-", value, Binary("*", _at(added), w.zero))
            value = taken if shift is None else Binary("+", value, _at(added))
        return (*nodes, replace(node, expr=sums.outside(product.scaled(value))))

    def _sum(self, node: Node, sums: Sums, part: str, body: Expr, spatial: Sequence[str]) -> Node:
        """A node that sums integers over the inner reduce iterators."""
        name = fresh(f"{node.name}_{part}", self.graph.names | self.tensors.keys())
        domain = sums.expr.domain
        extents = tuple(domain[i] for i in (*spatial, *sums.inner))
        self.tensors[name] = Tensor(extents[: len(spatial)], "i32")
        summed = TensorExpr(name, tuple(spatial), sums.inner, extents, Reduce("sum", sums.inner, body))
        return replace(node, expr=summed)


def _at(node: Node) -> Expr:
    return Access(node.name, tuple(map(Var, node.expr.spatial)))


def _used(points: Sequence[str], body: Expr) -> tuple[str, ...]:
    """Iterators on which a body depends."""
    used = variables(body)
    return tuple(i for i in points if i in used)


def _fits(sums: Sums, product: Product, ttypes: Mapping[str, str]) -> bool:
    """Whether no sum of the integers can leave i32: extents are constants, and so small that it cannot."""
    extents = [constant_value(sums.expr.domain[i]) for i in sums.inner]
    limits = [factor.limits(ttypes) for factor in product.factors]
    if None in extents or None in limits:
        return False
    (x, z), (w, y) = (pair for pair in limits if pair is not None)
    count = prod(extent for extent in extents if extent is not None)
    return count * (x * w + z * (w + y) + y * x) <= LARGEST
