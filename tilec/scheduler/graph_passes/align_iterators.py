"""Elementwise operators behind a movement are rewritten over their producer's iterators.

An operator that follows a product in split heads (`Q[b, s, h*64 + d] * scale`) then runs over the points of the product
itself and can stay in its registers. The split moves on to the next consumer, whose indices absorb it (Apollo, opening
compound operators).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilec.ir.algebra import linear_form, simplify
from tilec.ir.expr import Binary, Const, Expr, TensorExpr, Var, accesses, constant_value, substitute
from tilec.ir.graph import Node
from tilec.scheduler.analysis.access import divisions, reads_pointwise
from tilec.scheduler.graph_passes.compose import objection
from tilec.scheduler.graph_passes.rewrite import constant_tensors, reindex_accesses, with_nodes, with_value
from tilec.scheduler.graph_passes.split_reductions import split_reductions
from tilec.scheduler.refusals import RewrittenGraph


def align_iterators(draft: RewrittenGraph) -> RewrittenGraph:
    """Rewrite elementwise nodes over the dimensions of a producer that they read through merged iterators.

    args:
        draft: the graph, and the edges refused so far
    rewrite:
        E[b, h, s, d] = P[b, s, h*64 + d] * 0.125;  S[...] = sum(d, E[b, h, s, d] * ...)
        -> E[b, s, n] = P[b, s, n] * 0.125;  S[...] = sum(d, E[b, s, h*64 + d] * ...)
    checks:
        the node is no output, no constant and no reduction, and reads no producer pointwise already
        every index into the producer is a mixed-radix number of the node's iterators
        neither the node nor a reader gets more `//` and `%`, and no reader objects to the index (`compose.objection`)
    """
    graph = draft.graph
    nodes = {node.name: node for node in graph.nodes}
    constants = constant_tensors(graph)
    outputs = {port.tensor for port in graph.outputs}
    readers = graph.consumers()
    for name in list(nodes):
        if name in outputs or name in constants or nodes[name].expr.reduce:
            continue
        moved = _moved(nodes[name].expr, nodes, constants)
        if moved is None:
            continue
        expr, index = moved
        after = _readers(nodes[name].expr, index, [nodes[reader.name] for reader in readers[name]])
        if after is not None:
            nodes[name] = replace(nodes[name], expr=expr)
            nodes.update(after)
    return RewrittenGraph(with_nodes(graph, nodes.values()), draft.refused)


def _moved(
    expr: TensorExpr, nodes: dict[str, Node], constants: frozenset[str]
) -> tuple[TensorExpr, tuple[Expr, ...]] | None:
    """The node over a producer's dimensions, and the index at which readers find its elements; None if no producer
    allows it."""
    producers = [a for a in accesses(expr) if a.tensor in nodes and a.tensor not in constants]
    if any(reads_pointwise(a, expr, nodes[a.tensor].expr.shape) is not None for a in producers):
        return None
    for access in producers:
        producer = nodes[access.tensor].expr
        values = inverse(access.index, expr, producer)
        if values is None:
            continue
        body = substitute(expr.body, values)
        new = with_value(TensorExpr(expr.tensor, producer.spatial, (), producer.shape, expr.body), body)
        if divisions(new.value) <= divisions(expr.value):
            return new, access.index
    return None


def inverse(index: Sequence[Expr], reader: TensorExpr, producer: TensorExpr) -> dict[str, Expr] | None:
    """The reader's iterators as functions of the producer's, if each index is a mixed-radix number of them.

    None unless every iterator is a digit of exactly one index and the digits fill the dimension.
    """
    domain = reader.domain
    values: dict[str, Expr] = {}
    for position, extent, name in zip(index, producer.shape, producer.spatial, strict=True):
        terms, constant = linear_form(position)
        if constant or not all(isinstance(atom, Var) and atom.name in domain for atom in terms):
            return None
        weight: Expr = Const(1)
        digits = sorted(((c, atom.name) for atom, c in terms.items() if isinstance(atom, Var)))
        for place, (coefficient, iterator) in enumerate(digits):
            if simplify(weight) != Const(coefficient) or iterator in values:
                return None
            quotient: Expr = Binary("//", Var(name), weight)
            last = place == len(digits) - 1
            values[iterator] = simplify(quotient if last else Binary("%", quotient, domain[iterator]))
            weight = Binary("*", weight, domain[iterator])
        if simplify(Binary("-", weight, extent)) != Const(0):
            return None
    for iterator in reader.spatial:
        if iterator not in values:
            if constant_value(domain[iterator]) != 1:
                return None
            values[iterator] = Const(0)
    return values


def _readers(before: TensorExpr, index: tuple[Expr, ...], readers: Sequence[Node]) -> dict[str, Node] | None:
    """The readers of a rewritten node; None if one of them should not read through the movement."""
    after: dict[str, Node] = {}
    for node in readers:
        value = reindex_accesses(node.expr.value, before.tensor, before.spatial, index)
        expr = split_reductions(with_value(node.expr, value))
        if objection(node.expr, expr, before.tensor) is not None or divisions(expr.value) > divisions(node.expr.value):
            return None
        after[node.name] = replace(node, expr=expr)
    return after
