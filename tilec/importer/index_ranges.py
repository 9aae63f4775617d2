"""Ranges of index tensors: which values the model's inputs may have where nodes use them as indices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tilec.ir.algebra import equal
from tilec.ir.expr import Access, Call, Const, Expr, TensorExpr, Var
from tilec.ir.graph import IndexRange, Node

CASTS = frozenset({"i64", "i32"})
"""Casts that leave an index what it is."""


def input_ranges(
    ranges: Iterable[IndexRange], nodes: Mapping[str, Node], shapes: Mapping[str, tuple[Expr, ...]]
) -> tuple[IndexRange, ...]:
    """The ranges of tensors that no node defines, each once: those given, followed through the nodes that only cast and
    move all elements of a tensor. `shapes` has the shape of every tensor."""
    result: dict[tuple[str, Expr], IndexRange] = {}
    for each in ranges:
        name: str | None = each.tensor
        while name is not None and name in nodes:
            name = _copied(nodes[name].expr, shapes)
        if name is not None:
            result.setdefault((name, each.extent), IndexRange(name, each.extent, each.node))
    return tuple(result.values())


def _copied(expr: TensorExpr, shapes: Mapping[str, tuple[Expr, ...]]) -> str | None:
    """The tensor of which an expression has all elements, and no other values; None where that is not known."""
    body = expr.body
    if isinstance(body, Call) and body.fn in CASTS and len(body.args) == 1:
        body = body.args[0]
    if not isinstance(body, Access):
        return None
    domain = expr.domain
    iterators = [i.name for i in body.index if isinstance(i, Var)]
    whole = all(
        equal(domain[i.name], extent) if isinstance(i, Var) else extent == Const(1)
        for i, extent in zip(body.index, shapes[body.tensor], strict=True)
    )
    return body.tensor if whole and len(set(iterators)) == len(iterators) else None
