"""A remaining copy folded into its producer, which then stores the layout of the copy (Ladder, 3.2: map)."""

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
    """Let producers store the layout of a remaining movement, where nothing else reads the original.

    args:
        draft: the graph, and the edges refused so far
    rewrite:
        C[s, n] = sum(k, A[s, k] * B[k, n]);  T[h, s, d] = C[s, h*64 + d]
        -> T[h, s, d] = sum(k, A[s, k] * B[k, h*64 + d])
    checks:
        the movement is a single access, the only reader of its operand, and the operand is no output
        it reads no more points than the producer computes
        the producer gets no more irregular accesses and no more choices between tensors
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
    """The producer evaluated at the points of a movement; None if that computes more points or has worse accesses."""
    access = movement.body
    assert isinstance(access, Access)
    points, computed = constant_value(element_count(movement.shape)), constant_value(element_count(producer.shape))
    if points != computed and (points is None or computed is None or points > computed):
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
    """Number of accesses with an index that is not affine; data-dependent ones do not count."""
    moving = frozenset(expr.iterators)
    return sum(1 for a in accesses(expr) if not is_data_dependent(a) and not all(is_affine(i, moving) for i in a.index))
