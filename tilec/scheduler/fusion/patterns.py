"""Patterns of nodes and of the edges between them, by which aggregation rules go (A06)."""

from __future__ import annotations

from tilec.ir.expr import Access, Var, accesses, variables
from tilec.ir.graph import Graph, Node
from tilec.scheduler.analysis.access import is_data_dependent, is_movement, reads_pointwise
from tilec.scheduler.analysis.contraction import is_contraction

PATTERNS = ("reshape", "elemwise", "broadcast", "reduce", "contraction", "opaque")
"""reshape: moves elements; elemwise: reads its operands point by point; broadcast: reads smaller ones; reduce: reduces
one tensor; contraction: reduces products; opaque: reads elements that data chooses, or windows."""


def node_pattern(node: Node, graph: Graph) -> str:
    """The pattern of a node."""
    reads = accesses(node.expr)
    if any(map(is_data_dependent, reads)):
        return "opaque"
    if is_contraction(node.expr):
        return "contraction"
    if node.expr.reduce:
        return "reduce"
    if is_movement(node.expr):
        return "reshape"
    relations = {_relation(access, node, graph) for access in reads}
    return next((each for each in ("opaque", "broadcast") if each in relations), "elemwise")


def edge_pattern(tensor: str, node: Node, graph: Graph) -> str:
    """The relation of a reader to a tensor: the largest of its reads."""
    relations = [_relation(access, node, graph) for access in accesses(node.expr) if access.tensor == tensor]
    return max(relations, key=PATTERNS.index)


def _relation(access: Access, node: Node, graph: Graph) -> str:
    if is_data_dependent(access):
        return "opaque"
    if is_movement(node.expr):
        return "reshape"
    if any(variables(index) & set(node.expr.reduce) for index in access.index):
        return "reduce"
    if reads_pointwise(access, node.expr, graph.tensors[access.tensor].shape) is not None:
        return "elemwise"
    named = [index.name for index in access.index if isinstance(index, Var)]
    fewer = len(set(named)) == len(named) and all(isinstance(i, Var) or not variables(i) for i in access.index)
    return "broadcast" if fewer else "opaque"
