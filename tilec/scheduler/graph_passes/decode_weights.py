"""Weights of few bits decoded in the registers of the reductions that read them (Ladder, 3.3; L17)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tilec.ir.expr import TensorExpr, operands
from tilec.ir.graph import Graph, Node
from tilec.ir.types import TTYPES
from tilec.scheduler.analysis.contraction import operands_of, reuse
from tilec.scheduler.graph_passes.rewrite import constant_tensors, substitute_accesses, with_nodes, with_value
from tilec.scheduler.graph_passes.split_reductions import split_reductions
from tilec.scheduler.refusals import RewrittenGraph

READS_OF_BYTES = 16
"""Results that read an element of bytes at most, if it is to be decoded for each of them: a product of 8 rows with
2048 x 5632 bytes takes 0.65 of the time of one whose weights are f32, of 32 rows 1.34 (1 row 0.43)."""


def decode_weights(draft: RewrittenGraph) -> RewrittenGraph:
    """Substitute elementwise nodes over constants of codes or bytes into the reductions that read them.

    args:
        draft: the graph, and the edges refused so far
    rewrite, where Q (i4) and S are constants:
        W[k, n] = f32(i32(Q[k, n])) * S[k // 128, n];  Y[m, n] = sum(k, X[m, k] * W[k, n])
        -> Y[m, n] = sum(k1, k2, X[m, k1*128 + k2] * (f32(i32(Q[k1*128 + k2, n])) * S[k1, n]))
    checks:
        W is known at compile time and no reduction, and all its readers are reductions
    """
    graph = draft.graph
    gone = _decoded(graph)
    if not gone:
        return draft
    left = (node for node in graph.nodes if node.name not in gone)
    nodes = [replace(node, expr=_substituted(node.expr, gone)) for node in left]
    return RewrittenGraph(with_nodes(graph, nodes), draft.refused)


def _decoded(graph: Graph) -> dict[str, TensorExpr]:
    """Nodes that decode constants and that only reductions read, over tensors that stay."""
    readers, constants = graph.consumers(), constant_tensors(graph)
    gone: dict[str, TensorExpr] = {}
    for node in graph.nodes:
        few = any(_is_narrow(graph, t, node.name, readers[node.name]) or t in gone for t in operands(node.expr))
        if node.name in constants and few and not node.expr.reduce:
            gone[node.name] = node.expr
    while dropped := [n for n in gone if not all(r.expr.reduce or r.name in gone for r in readers[n])]:
        for name in dropped:
            del gone[name]
    return {name: _substituted(expr, gone) for name, expr in gone.items()}


def _is_narrow(graph: Graph, operand: str, result: str, readers: Sequence[Node]) -> bool:
    """Whether an operand is of codes, or of bytes for a result of wider elements that are read a few times."""
    stored, made = (TTYPES[graph.tensors[name].ttype] for name in (operand, result))
    if stored.coded:
        return True
    reads = (
        reuse(node.expr, each) for node in readers for each in operands_of(node.expr) if each.access.tensor == result
    )
    return stored.bits == 8 < made.bits and max(reads, default=0) <= READS_OF_BYTES


def _substituted(expr: TensorExpr, gone: Mapping[str, TensorExpr]) -> TensorExpr:
    found = [tensor for tensor in operands(expr) if tensor in gone]
    for tensor in found:
        expr = with_value(expr, substitute_accesses(expr.value, gone[tensor]))
    return _substituted(split_reductions(expr), gone) if found else expr
