"""Sums of partial sums as the sums that they are parts of: how a reduction is split is a mapping, not a bound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from tilec.ir.expr import Access, Expr, Reduce, TensorExpr, Var, operands, substitute
from tilec.ir.graph import Node


def whole_sums(nodes: Sequence[Node], outputs: Collection[str]) -> tuple[Node, ...]:
    """The nodes of a group, in order, with partial sums that one sum alone reads inside of it.

    P[a, n] = sum(b, X[a, b] * W[a, b, n]);  Y[n] = sum(a, P[a, n])  ->  Y[n] = sum(a, b, X[a, b] * W[a, b, n])
    """
    readers = Counter(t for node in nodes for t in operands(node.expr))
    partial: dict[str, TensorExpr] = {}
    found: list[Node] = []
    for node in nodes:
        expr = _whole(node.expr, partial)
        found.append(replace(node, expr=expr))
        if expr.reducer == "sum" and readers[node.name] == 1 and node.name not in outputs:
            partial[node.name] = expr
    inside = {n.name for n in found}.difference(outputs)
    kept = {t for node in found for t in operands(node.expr)}
    return tuple(node for node in found if node.name not in inside or node.name in kept)


def _whole(expr: TensorExpr, partial: dict[str, TensorExpr]) -> TensorExpr:
    """A sum of partial sums alone, each at an iterator of its own, with these inside; any other as it is."""
    read = expr.value
    if expr.reducer != "sum" or not isinstance(read, Access) or read.tensor not in partial:
        return expr
    part = partial[read.tensor]
    names = [each.name for each in read.index if isinstance(each, Var)]
    if len(names) != len(read.index) or len(set(names)) != len(names):
        return expr
    own = {name: f"{read.tensor}.{name}" for name in part.reduce}
    at: dict[str, Expr] = dict(zip(part.spatial, read.index, strict=True))
    body = substitute(part.value, {**at, **{name: Var(new) for name, new in own.items()}})
    reduce = (*expr.reduce, *own.values())
    extents = (*expr.extents, *(part.domain[name] for name in part.reduce))
    return TensorExpr(expr.tensor, expr.spatial, reduce, extents, Reduce("sum", reduce, body))
