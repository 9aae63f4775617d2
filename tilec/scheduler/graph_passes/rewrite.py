"""Primitives of graph rewriting: replace nodes, drop dead ones, substitute one expression into another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tilec.ir.bind import simplify_tensor
from tilec.ir.by_identity import by_identity
from tilec.ir.expr import (
    Access,
    Binary,
    Call,
    Expr,
    Reduce,
    TensorExpr,
    Var,
    accesses,
    operands,
    rebuild,
    substitute,
    variables,
)
from tilec.ir.graph import Graph, Node, Tensor


def with_nodes(graph: Graph, nodes: Iterable[Node], tensors: Mapping[str, Tensor] | None = None) -> Graph:
    """The graph with other nodes; the shape of every tensor that a node defines follows from its expression. Iterators
    that have the name of a size get another one."""
    table = {**graph.tensors, **(tensors or {})}
    rewritten = tuple(without_captures(node, graph) for node in nodes)
    for node in rewritten:
        table[node.name] = Tensor(node.expr.shape, table[node.name].ttype)
    return live(replace(graph, nodes=rewritten, tensors=table))


def live(graph: Graph) -> Graph:
    """The graph without nodes, tensors and constants on which no output depends."""
    needed = {port.tensor for port in graph.outputs}
    nodes: list[Node] = []
    for node in reversed(graph.nodes):
        if node.name in needed:
            nodes.append(node)
            needed.update(operands(node.expr))
    needed.update(port.tensor for port in graph.inputs)
    return replace(
        graph,
        nodes=tuple(reversed(nodes)),
        tensors={name: t for name, t in graph.tensors.items() if name in needed},
        constants={name: c for name, c in graph.constants.items() if name in needed},
    )


@by_identity(8)
def constant_tensors(graph: Graph) -> frozenset[str]:
    """Tensors known at compile time: constants, and nodes that read nothing else, whose sizes are numbers, and that are
    no output."""
    constants, symbols = set(graph.constants), frozenset(graph.symbols)
    outputs = {port.tensor for port in graph.outputs}
    for node in graph.nodes:
        if node.name in outputs or not all(tensor in constants for tensor in operands(node.expr)):
            continue
        if all(symbols.isdisjoint(variables(part)) for part in (*node.expr.extents, node.expr.body)):
            constants.add(node.name)
    return frozenset(constants)


def with_value(expr: TensorExpr, value: Expr) -> TensorExpr:
    """The expression with another scalar body under the same reduction, its indices and guards simplified."""
    body = replace(expr.body, body=value) if isinstance(expr.body, Reduce) else value
    return simplify_tensor(merge_guards(replace(expr, body=body)))


def merge_guards(expr: TensorExpr) -> TensorExpr:
    """`where(a, where(b, x, c), c)` becomes `where(a and b, x, c)`: one guard for nested pads.

    A `b` that reads tensors stays behind `a`, without which it may read out of bounds.
    """
    return replace(expr, body=_merge(expr.body))


def _merge(body: Expr) -> Expr:
    match rebuild(body, _merge):
        case Call("where", (first, Call("where", (second, yes, inner)), outer)) as nested:
            if inner == outer and not accesses(second):
                return Call("where", (Binary("and", first, second), yes, outer))
            return nested
        case merged:
            return merged


def without_captures(node: Node, graph: Graph) -> Node:
    """The node, with new names for iterators that are called like a size of the graph."""
    expr = rename_iterators(node.expr, frozenset(graph.symbols))
    return node if expr is node.expr else replace(node, expr=expr)


def rename_iterators(expr: TensorExpr, avoid: frozenset[str]) -> TensorExpr:
    """The expression with new names for iterators that are in `avoid`."""
    names: dict[str, str] = {}
    taken = avoid | iterator_names(expr)
    for iterator in expr.iterators:
        if iterator in avoid:
            names[iterator] = fresh(iterator, taken)
            taken |= {names[iterator]}
    if not names:
        return expr
    values: dict[str, Expr] = {old: Var(new) for old, new in names.items()}
    body = expr.body
    if isinstance(body, Reduce):
        body = Reduce(body.op, tuple(names.get(i, i) for i in body.iterators), substitute(body.body, values))
    else:
        body = substitute(body, values)
    return replace(
        expr,
        spatial=tuple(names.get(i, i) for i in expr.spatial),
        reduce=tuple(names.get(i, i) for i in expr.reduce),
        body=body,
    )


def fresh(name: str, taken: Iterable[str]) -> str:
    """`name` followed by the first number that makes it new."""
    used = set(taken)
    number = 1
    while f"{name}{number}" in used:
        number += 1
    return f"{name}{number}"


def substitute_accesses(body: Expr, producer: TensorExpr) -> Expr:
    """Replace every access to the tensor of an elementwise `producer` by its body at that point."""
    new = rebuild(body, lambda e: substitute_accesses(e, producer))
    if isinstance(new, Access) and new.tensor == producer.tensor:
        return substitute(producer.body, dict(zip(producer.spatial, new.index, strict=True)))
    return new


def reindex_accesses(body: Expr, tensor: str, iterators: tuple[str, ...], index: tuple[Expr, ...]) -> Expr:
    """Replace every `tensor[e...]` by `tensor[index]` with the `iterators` in `index` replaced by e..."""
    new = rebuild(body, lambda e: reindex_accesses(e, tensor, iterators, index))
    if isinstance(new, Access) and new.tensor == tensor:
        values = dict(zip(iterators, new.index, strict=True))
        return Access(tensor, tuple(substitute(i, values) for i in index))
    return new


def iterator_names(expr: TensorExpr) -> frozenset[str]:
    """Iterators and every other variable of an expression."""
    names = frozenset(expr.iterators)
    for extent in expr.extents:
        names |= variables(extent)
    return names | variables(expr.value)
