"""Movement operators composed into the indices of their consumers (Ladder, 3.2; Welder, 4.2).

Reshape, transpose, slice, split, concat, pad and expand are index algebra. A movement stays a copy only where it is a
model output or where a consumer refuses it: a reduction needs affine indices and no choice between tensors, for both
would be evaluated in its inner loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilec.ir.algebra import polynomial
from tilec.ir.expr import Access, Call, TensorExpr, accesses, operands, variables, walk
from tilec.ir.graph import Node
from tilec.ir.plan import Refusal
from tilec.scheduler.analysis.access import choices, is_affine, is_data_dependent, is_movement
from tilec.scheduler.graph_passes.rewrite import substitute_accesses, with_nodes, with_value
from tilec.scheduler.graph_passes.split_reductions import split_reductions
from tilec.scheduler.refusals import RewrittenGraph, edge_name, refusal

MAX_READS = 8
"""Largest number of accesses of an expression into which movements were composed."""


def compose(draft: RewrittenGraph) -> RewrittenGraph:
    """Substitute every movement node into the nodes that read it.

    args:
        draft: the graph, and the edges refused so far; the edges that stay are added
    rewrite:
        T[b, h, s, d] = Q[b, s, h*64 + d];  S[b, h, s, t] = sum(d, T[b, h, s, d] * K[b, h, t, d])
        -> S[b, h, s, t] = sum(d, Q[b, s, h*64 + d] * K[b, h, t, d])
    checks:
        `objection`: number of accesses, conditions on data, and in reductions choices and non-affine indices
        a choice between tensors (Concat) that is stored anyway is not composed
    """
    movements: dict[str, TensorExpr] = {}
    refused: dict[str, Refusal] = dict(draft.refused)
    refused_by_node = _by_node(draft.refused)
    readers = draft.graph.consumers()
    outputs = {port.tensor for port in draft.graph.outputs}
    nodes: list[Node] = []
    for node in draft.graph.nodes:
        expr = node.expr
        for tensor in operands(expr):
            if tensor not in movements:
                continue
            candidate = compose_into(expr, movements[tensor])
            reason = objection(expr, candidate, tensor)
            if reason is None and choices(movements[tensor].body):
                stored = len(readers[tensor]) + (tensor in outputs)
                reason = _stays_whole(expr, tensor, stored, tensor in outputs)
            if reason is None:
                expr = candidate
                # an edge that the movement refused to absorb now joins that tensor and the reader
                for other, why in list(refused_by_node.get(tensor, {}).items()):
                    refused_by_node.setdefault(node.name, {})[other] = why
                    refused[edge_name(other, node.name)] = replace(why, edge=edge_name(other, node.name))
            else:
                refused_by_node.setdefault(node.name, {})[tensor] = reason
                refused[edge_name(tensor, node.name)] = reason
        if is_movement(expr):
            movements[node.name] = expr
        nodes.append(replace(node, expr=expr))
    return RewrittenGraph(with_nodes(draft.graph, nodes), refused)


def _by_node(refused: Mapping[str, Refusal]) -> dict[str, dict[str, Refusal]]:
    """Map from node to the tensors that it could not absorb, with the refusals."""
    by_node: dict[str, dict[str, Refusal]] = {}
    for reason in refused.values():
        tensor, node = reason.edge.split("->")
        by_node.setdefault(node, {})[tensor] = reason
    return by_node


def compose_into(consumer: TensorExpr, movement: TensorExpr) -> TensorExpr:
    """The consumer reading through the movement; merged reduce iterators are split again."""
    return split_reductions(with_value(consumer, substitute_accesses(consumer.value, movement)))


def objection(before: TensorExpr, after: TensorExpr, tensor: str) -> Refusal | None:
    """The refusal of a consumer to read through a movement; None if it may."""
    length = len(accesses(after))
    if length > max(MAX_READS, len(accesses(before))):
        return refusal(tensor, before.tensor, "length", accesses=length, most=MAX_READS)
    if _conditions_on_data(after) > _conditions_on_data(before):
        return refusal(tensor, before.tensor, "choice", tensors=length)
    if not before.reduce:
        return None
    if choices(after.value) > choices(before.value):
        return refusal(tensor, before.tensor, "choice", tensors=length)
    if any(not _bearable(a, after) for a in accesses(after)):
        return refusal(tensor, before.tensor, "not-affine", iterators=", ".join(after.reduce))
    return None


def _stays_whole(reader: TensorExpr, tensor: str, stored: int, is_output: bool) -> Refusal | None:
    """The refusal to compose a choice between tensors (Concat) into a reader; None if it may.

    It is refused where the choice is stored for the model anyway, or where the reader is a movement of it that would
    repeat the choice for every later reader, permuted so that no contraction could absorb it.
    """
    reason = refusal(tensor, reader.tensor, "choice", tensors=len(accesses(reader)), readers=stored)
    if is_output:
        return reason
    moving = frozenset(reader.iterators)
    affine = all(is_affine(i, moving) for a in accesses(reader) if a.tensor == tensor for i in a.index)
    return None if not is_movement(reader) or (stored == 1 and affine) else reason


def _conditions_on_data(expr: TensorExpr) -> int:
    """Number of guards whose condition reads a tensor."""
    return sum(1 for e in walk(expr.value) if isinstance(e, Call) and e.fn == "where" and accesses(e.args[0]))


def _bearable(access: Access, reader: TensorExpr) -> bool:
    """Whether every index is a sum of iterators times sizes, and of `//` and `%` of single spatial iterators, which are
    constant in a tile."""
    if is_data_dependent(access):
        return True
    moving = frozenset(reader.iterators)
    for index in access.index:
        for term in polynomial(index):
            inside = [variables(atom) & moving for atom in term if variables(atom) & moving]
            if len(inside) > 1 or any(len(names) != 1 for names in inside):
                return False
        if not is_affine(index, frozenset(reader.reduce)):
            return False
    return True
