"""Storage order of every intermediate tensor, chosen once per graph (Ladder, 3.2 and 3.3: map).

A contraction with a constant operand wants the iterator that only the weights depend on (output channels) innermost: it
is the vector iterator, for which weights are packed. Every other node inherits the order of its largest operand. A
node's spatial iterators and its readers' indices are permuted alike, so that row-major is the only storage order there
is. Inputs and outputs of the model keep their order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tilec.ir.algebra import linear_form
from tilec.ir.expr import Access, Expr, Reduce, TensorExpr, Var, constant_value, rebuild, variables
from tilec.ir.graph import Node
from tilec.scheduler.analysis.access import is_affine, is_data_dependent
from tilec.scheduler.analysis.contraction import exclusive, is_contraction, operands_of
from tilec.scheduler.graph_passes.rewrite import constant_tensors, with_nodes
from tilec.scheduler.refusals import RewrittenGraph

Order = tuple[int, ...]
"""Dimensions of a tensor, numbered as in the graph, in storage order, outermost first."""


def choose_layouts(draft: RewrittenGraph) -> RewrittenGraph:
    """Permute intermediate tensors into the order in which they are computed and read best.

    args:
        draft: the graph, and the edges refused so far
    rewrite, where W is constant and n the channels:
        Y[b, n, p] = sum(k, X[b, k, p] * W[n, k]);  Z[b, n, p] = relu(Y[b, n, p])
        -> Y[b, p, n] = sum(k, X[b, k, p] * W[n, k]);  Z[b, n, p] = relu(Y[b, p, n])
    checks:
        constants, inputs and outputs keep their order; spatial iterators of extent 1 stand in front
    """
    graph = draft.graph
    constants = constant_tensors(graph)
    outputs = {port.tensor for port in graph.outputs}
    orders: dict[str, Order] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.name in constants:
            nodes.append(node)
            continue
        preferred = spatial_order(node.expr, orders, constants)
        if node.name in outputs:
            preferred = node.expr.spatial
        orders[node.name] = tuple(node.expr.spatial.index(i) for i in preferred)
        reduce = reduce_order(node.expr, orders, constants)
        nodes.append(replace(node, expr=permuted(node.expr, preferred, reduce, orders)))
    return RewrittenGraph(with_nodes(graph, nodes), draft.refused)


def spatial_order(expr: TensorExpr, orders: Mapping[str, Order], constants: frozenset[str]) -> tuple[str, ...]:
    """Spatial iterators of a node, outermost first; those of extent 1 stand in front."""
    order = _ordered(expr, orders, constants)
    unit = [i for i in order if constant_value(expr.domain[i]) == 1]
    return (*unit, *(i for i in order if i not in unit))


def _ordered(expr: TensorExpr, orders: Mapping[str, Order], constants: frozenset[str]) -> tuple[str, ...]:
    if is_contraction(expr):
        candidates = exclusive(expr, constants)
        if candidates:
            vector = max(candidates, key=lambda i: (constant_value(expr.domain[i]) or 1 << 30, expr.spatial.index(i)))
            return (*(i for i in expr.spatial if i != vector), vector)
        all_operands = operands_of(expr)
        alone = [i for o in all_operands for i in exclusive(expr, {o.access.tensor})]
        if (
            not any(o.access.tensor in constants for o in all_operands)
            and expr.spatial[-1:]
            and expr.spatial[-1] in alone
        ):
            return expr.spatial
    return inherited(expr, orders, constants)


def inherited(expr: TensorExpr, orders: Mapping[str, Order], constants: frozenset[str]) -> tuple[str, ...]:
    """Spatial iterators in the storage order of the operand that covers most of them; the others keep their places.

    Ties go to an operand that is not indexed by data, then to one whose indices are affine.
    """
    best: tuple[str, ...] = ()
    rank = (0, False, False)
    for operand in operands_of(expr):
        if operand.access.tensor in constants:
            continue
        covered = tuple(i for i in stored_iterators(operand.access, orders) if i in expr.spatial)
        affine = all(is_affine(i, frozenset(expr.iterators)) for i in operand.access.index)
        plain = not is_data_dependent(operand.access)
        if (len(covered), plain, affine) > rank:
            best, rank = covered, (len(covered), plain, affine)
    refill = iter(best)
    return tuple(next(refill) if i in best else i for i in expr.spatial)


def stored_iterators(access: Access, orders: Mapping[str, Order]) -> tuple[str, ...]:
    """The iterators of an access in storage order of the dimensions that they move along."""
    stored = orders.get(access.tensor, tuple(range(len(access.index))))
    iterators: dict[str, None] = {}
    for dimension in stored:
        index = access.index[dimension]
        terms = linear_form(index)[0]
        weights = {atom.name: abs(scale) for atom, scale in terms.items() if isinstance(atom, Var)}
        for name in sorted(variables(index), key=lambda i: (-weights.get(i, 0), i)):
            iterators[name] = None
    return tuple(iterators)


def reduce_order(expr: TensorExpr, orders: Mapping[str, Order], constants: frozenset[str]) -> tuple[str, ...]:
    """Reduce iterators in the storage order of the non-constant operand that covers most of them."""
    best: tuple[str, ...] = ()
    for operand in operands_of(expr):
        if operand.access.tensor not in constants:
            covered = tuple(i for i in stored_iterators(operand.access, orders) if i in expr.reduce)
            if len(covered) > len(best):
                best = covered
    refill = iter(best)
    return tuple(next(refill) if i in best else i for i in expr.reduce)


def permuted(
    expr: TensorExpr, spatial: Sequence[str], reduce: Sequence[str], orders: Mapping[str, Order]
) -> TensorExpr:
    """The expression with its iterators permuted, reading tensors stored in the `orders`."""
    domain = expr.domain
    body = _permute_accesses(expr.body, orders)
    if isinstance(body, Reduce):
        body = replace(body, iterators=tuple(reduce))
    iterators = (*spatial, *reduce)
    return TensorExpr(expr.tensor, tuple(spatial), tuple(reduce), tuple(domain[i] for i in iterators), body)


def _permute_accesses(body: Expr, orders: Mapping[str, Order]) -> Expr:
    new = rebuild(body, lambda e: _permute_accesses(e, orders))
    if isinstance(new, Access) and new.tensor in orders:
        return Access(new.tensor, tuple(new.index[d] for d in orders[new.tensor]))
    return new
