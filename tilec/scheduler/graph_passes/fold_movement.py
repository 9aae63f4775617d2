"""fold: a copy that only one movement is left of is computed by its producer, in the layout the copy wants (L14)."""

from __future__ import annotations

from dataclasses import replace

from tilec.ir.bind import simplify_tensor
from tilec.ir.expr import Access, Reduce, TensorExpr, accesses, constant_value, substitute
from tilec.ir.graph import Node
from tilec.ir.types import element_count
from tilec.scheduler.analysis.access import choices, is_affine, is_data_dependent, is_movement
from tilec.scheduler.graph_passes.rewrite import iterator_names, rename_iterators, with_nodes
from tilec.scheduler.graph_passes.split_reductions import split_reductions
from tilec.scheduler.refusals import RewrittenGraph


def fold_movement(draft: RewrittenGraph) -> RewrittenGraph:
    """Let producers store what a remaining movement would copy, where nobody else reads the original.

    rewrite:
        C[s, n] = sum(k, A[s, k] * B[k, n]);  T[h, s, d] = C[s, h*64 + d]
        T[h, s, d] = sum(k, A[s, k] * B[k, h*64 + d])
    """
    nodes = {node.name: node for node in draft.graph.nodes}
    readers = {name: len(found) for name, found in draft.graph.consumers().items()}
    outputs = {port.tensor for port in draft.graph.outputs}
    for node in draft.graph.nodes:
        match node.expr.body:
            case Access(tensor, _) if tensor in nodes and readers[tensor] == 1 and tensor not in outputs:
                merged = through(nodes[tensor].expr, node.expr) if is_movement(node.expr) else None
                if merged is not None:
                    producer = nodes.pop(tensor)
                    nodes[node.name] = Node(merged, producer.op or node.op, producer.origin + node.origin)
            case _:
                pass
    return RewrittenGraph(with_nodes(draft.graph, nodes.values()), draft.refused)


def through(producer: TensorExpr, movement: TensorExpr) -> TensorExpr | None:
    """The producer evaluated at the points that a movement asks for; None if that costs more or reads worse."""
    access = movement.body
    assert isinstance(access, Access)
    asked, made = constant_value(element_count(movement.shape)), constant_value(element_count(producer.shape))
    if asked != made and (asked is None or made is None or asked > made):
        return None
    inner = rename_iterators(producer, iterator_names(movement))
    values = dict(zip(inner.spatial, access.index, strict=True))
    domain = {**inner.domain, **movement.domain}
    body = inner.body
    new = replace(body, body=substitute(body.body, values)) if isinstance(body, Reduce) else substitute(body, values)
    merged = simplify_tensor(
        TensorExpr(
            movement.tensor,
            movement.spatial,
            inner.reduce,
            tuple(domain[i] for i in movement.spatial + inner.reduce),
            new,
        )
    )
    merged = split_reductions(merged)
    worse = irregular(merged) > irregular(producer) or choices(merged.value) > choices(producer.value)
    return None if worse else merged


def irregular(expr: TensorExpr) -> int:
    """How many accesses have an index that is not affine."""
    moving = frozenset(expr.iterators)
    return sum(1 for a in accesses(expr) if not is_data_dependent(a) and not all(is_affine(i, moving) for i in a.index))
