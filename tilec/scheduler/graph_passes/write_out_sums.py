"""Sums of a few integers written out where other sums read them: no tensor of partial sums, and no loop (L27)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from functools import reduce as fold
from itertools import product
from math import prod

from tilec.ir.bind import simplify_tensor
from tilec.ir.dots import dot_of
from tilec.ir.expr import (
    Access,
    Binary,
    Const,
    Expr,
    TensorExpr,
    Var,
    accesses,
    constant_value,
    operands,
    rebuild,
    substitute,
)
from tilec.ir.graph import Graph, Node
from tilec.scheduler.graph_passes.rewrite import constant_tensors, substitute_accesses, with_nodes, with_value
from tilec.scheduler.refusals import RewrittenGraph

TERMS = 32
"""Terms of a sum that is written out at most."""


def write_out_sums(draft: RewrittenGraph) -> RewrittenGraph:
    """Substitute sums of a few integers into the only reduction that reads them, which sums their points up.

    args:
        draft: the graph, and the edges refused so far
    rewrite:
        P[b, m, n] = sum(k, dot(X[m, b, k], W[b, k, n]))  k < 2;  Y[m, n] = sum(b, f32(P[b, m, n]) * S[b, n])
        -> Y[m, n] = sum(b, f32(dot(X[m, b, 0], W[b, 0, n]) + dot(X[m, b, 1], W[b, 1, n])) * S[b, n])
    checks:
        P has more dimensions than Y, is read once and is no constant
        an elementwise node between the two is substituted, too
    """
    graph = draft.graph
    written = _written(graph)
    if not written:
        return draft
    left = (node for node in graph.nodes if node.name not in written)
    nodes = [replace(node, expr=_substituted(node.expr, written)) for node in left]
    return RewrittenGraph(with_nodes(graph, nodes), draft.refused)


def _written(graph: Graph) -> dict[str, TensorExpr]:
    """Sums, and elementwise nodes between them and their readers, as elementwise expressions."""
    readers, constants = graph.consumers(), constant_tensors(graph)
    outputs = {port.tensor for port in graph.outputs}
    found: dict[str, TensorExpr] = {}
    for node in graph.nodes:
        if node.name in constants or graph.tensors[node.name].ttype != "i32" or not _is_short(node.expr):
            continue
        for each in _way(node, readers, outputs):
            found[each.name] = _without_loop(_substituted(each.expr, found))
    return found


def _is_short(expr: TensorExpr) -> bool:
    """Whether a node is a sum of a few terms."""
    extents = [constant_value(expr.domain[i]) for i in expr.reduce]
    return expr.reducer == "sum" and None not in extents and prod(e for e in extents if e is not None) <= TERMS


def _way(node: Node, readers: Mapping[str, Sequence[Node]], outputs: Set[str]) -> list[Node]:
    """A node and elementwise ones behind it, up to the sum that reads each of its points once; empty if none does."""
    way = [node]
    while way[-1].name not in outputs and len(readers[way[-1].name]) == 1:
        (reader,) = readers[way[-1].name]
        reads = [access for access in accesses(reader.expr.value) if access.tensor == way[-1].name]
        if len(reads) != 1 or not _reads_once(reader.expr, reads[0]):
            return []
        if reader.expr.reduce:
            return way if reader.expr.reducer == "sum" else []
        way.append(reader)
    return []


def _reads_once(expr: TensorExpr, access: Access) -> bool:
    """Whether every point of an expression reads another element."""
    moving = {i for i, extent in expr.domain.items() if constant_value(extent) != 1}
    return moving <= {index.name for index in access.index if isinstance(index, Var)}


def _without_loop(expr: TensorExpr) -> TensorExpr:
    """A sum as the sum of its terms."""
    if not expr.reduce:
        return expr
    ranges = [range(constant_value(expr.domain[i]) or 0) for i in expr.reduce]
    terms: list[Expr] = []
    for place in product(*ranges):
        at: dict[str, Expr] = {i: Const(n) for i, n in zip(expr.reduce, place, strict=True)}
        terms.append(substitute(expr.value, at))
    body = fold(lambda total, term: Binary("+", total, term), terms)
    return simplify_tensor(TensorExpr(expr.tensor, expr.spatial, (), expr.shape, body))


def _substituted(expr: TensorExpr, written: Mapping[str, TensorExpr]) -> TensorExpr:
    for tensor in [tensor for tensor in operands(expr) if tensor in written]:
        expr = with_value(expr, _added(substitute_accesses(expr.value, written[tensor])))
    return expr


def _added(body: Expr) -> Expr:
    """A body in which what is added to a sum stands in front of its terms, where a unit begins with it."""
    body = rebuild(body, _added)
    match body:
        case Binary("+", Binary("+") as terms, other) if dot_of(terms.right) and not dot_of(other):
            first, last = _added(Binary("+", terms.left, other)), terms.right
            return Binary("+", first, last)
        case Binary("+", left, right) if dot_of(left) and not dot_of(right):
            return Binary("+", right, left)
        case _:
            return body
