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
           C_sums1[m] = sum(k, i32(X[m, k]))                      (only where y is not 0)
           C[m, n] = f32(C_integral1[m, n] - C_offset1[n] - C_sums1[m] * y) * (s * t)
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
        product = self._product(node)
        if product is None or not _fits(node.expr, product, {**self.graph.ttypes}):
            return (node,)
        return self._nodes(node, product)

    def _product(self, node: Node) -> Product | None:
        """The integer factors of a sum of two of them, that with constant weights last."""
        expr, ttype = node.expr, self.graph.tensors[node.name].ttype
        if expr.reducer != "sum" or ttype not in ("f32", "i32"):
            return None
        value = expr.value
        for tensor in operands(expr):
            if tensor in self.real:
                value = substitute_accesses(value, self.real[tensor])
        product = product_of(value, frozenset(expr.reduce), ttype)
        if product is None or (ttype == "i32" and all(f.zero == Const(0) for f in product.factors)):
            return None
        first, second = product.factors
        swap = first.code.tensor in self.constants and second.code.tensor not in self.constants
        return replace(product, factors=(second, first)) if swap else product

    def _nodes(self, node: Node, product: Product) -> tuple[Node, ...]:
        x, w = product.factors
        expr = node.expr
        total = self._sum(node, "integral", Binary("*", x.filled, w.filled), expr.spatial)
        nodes, value = [total], _at(total)
        if x.zero != Const(0):
            literal = isinstance(x.zero, Const)
            body = Binary("*", w.difference, x.zero) if literal else w.difference
            offset = self._sum(node, "offset", body, _spatial(expr, body))
            nodes.append(offset)
            value = Binary("-", value, _at(offset) if literal else Binary("*", _at(offset), x.zero))
        if w.zero != Const(0):
            sums = self._sum(node, "sums", x.filled, _spatial(expr, x.filled))
            nodes.append(sums)
            value = Binary("-", value, Binary("*", _at(sums), w.zero))
        body = product.scaled(value)
        shape = TensorExpr(expr.tensor, expr.spatial, (), expr.shape, body)
        return (*nodes, replace(node, expr=shape))

    def _sum(self, node: Node, part: str, body: Expr, spatial: Sequence[str]) -> Node:
        """A node that sums integers over the reduce iterators of `node`."""
        expr = node.expr
        name = fresh(f"{node.name}_{part}", {*self.graph.tensors, *self.tensors})
        domain = expr.domain
        extents = tuple(domain[i] for i in (*spatial, *expr.reduce))
        self.tensors[name] = Tensor(extents[: len(spatial)], "i32")
        summed = TensorExpr(name, tuple(spatial), expr.reduce, extents, Reduce("sum", expr.reduce, body))
        return replace(node, expr=summed)


def _at(node: Node) -> Expr:
    return Access(node.name, tuple(map(Var, node.expr.spatial)))


def _spatial(expr: TensorExpr, body: Expr) -> tuple[str, ...]:
    """Spatial iterators on which a body depends."""
    used = variables(body)
    return tuple(i for i in expr.spatial if i in used)


def _fits(expr: TensorExpr, product: Product, ttypes: Mapping[str, str]) -> bool:
    """Whether no sum of the integers can leave i32: extents are constants, and so small that it cannot."""
    extents = [constant_value(expr.domain[i]) for i in expr.reduce]
    limits = [factor.limits(ttypes) for factor in product.factors]
    if None in extents or None in limits:
        return False
    (x, z), (w, y) = (pair for pair in limits if pair is not None)
    count = prod(extent for extent in extents if extent is not None)
    return count * (x * w + z * (w + y) + y * x) <= LARGEST
