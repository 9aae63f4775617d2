"""Constants of one element as literals of the expressions that read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilec.ir.expr import Access, Const, Expr, constant_value, rebuild
from tilec.ir.graph import Graph, Inline, Node
from tilec.ir.scalars import fits, type_of
from tilec.ir.types import element_count
from tilec.scheduler.graph_passes.rewrite import with_nodes, with_value
from tilec.scheduler.refusals import RewrittenGraph


def inline_scalars(draft: RewrittenGraph) -> RewrittenGraph:
    """Replace every read of an inline constant of one element by its value.

    args:
        draft: the graph, and the edges refused so far
    rewrite:
        s[()] = 0.125;  E[m, n] = X[m, n] * s[()]
        -> E[m, n] = X[m, n] * 0.125
    checks:
        the node's expression still has the type of its tensor
    """
    graph = draft.graph
    values = {
        name: Const(constant.values[0])
        for name, constant in graph.constants.items()
        if isinstance(constant, Inline) and constant_value(element_count(graph.tensors[name].shape)) == 1
    }
    nodes = [_with_literals(graph, node, values) for node in graph.nodes]
    return RewrittenGraph(with_nodes(graph, nodes), draft.refused)


def _with_literals(graph: Graph, node: Node, values: Mapping[str, Const]) -> Node:
    value = _replace(node.expr.value, values)
    if value == node.expr.value:
        return node
    expr = with_value(node.expr, value)
    try:
        kind = type_of(expr.body, graph.ttypes)
    except TypeError:
        return node
    return replace(node, expr=expr) if fits(kind, graph.tensors[node.name].ttype) else node


def _replace(body: Expr, values: Mapping[str, Const]) -> Expr:
    match rebuild(body, lambda e: _replace(e, values)):
        case Access(tensor, _) if tensor in values:
            return values[tensor]
        case other:
            return other
