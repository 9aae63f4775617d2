"""Dimensions of which parts read elements at constant places alone: parts that read others are alike (W41).

A network that slices its input, step by step, has a product for each step. What they cost is the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from tilec.ir.expr import Access, Const, Expr, TensorExpr, accesses, operands, rebuild
from tilec.ir.graph import Node

Dimension = tuple[str, int]
"""A tensor, and the number of a dimension."""


def constant_places(nodes: Iterable[Node]) -> dict[Dimension, int]:
    """Dimension of an operand from outside -> the first place of it that the nodes read, where they read it at constant
    places alone."""
    nodes = tuple(nodes)
    inside = {node.name for node in nodes}
    found: dict[Dimension, int | None] = {}
    for node in nodes:
        for access in accesses(node.expr):
            for axis, index in enumerate(access.index):
                place = access.tensor, axis
                constant = index.value if isinstance(index, Const) and isinstance(index.value, int) else None
                before = found.get(place, constant)
                found[place] = None if before is None or constant is None else min(before, constant)
    return {place: first for place, first in found.items() if first is not None and place[0] not in inside}


def from_first_places(expr: TensorExpr, first: Mapping[Dimension, int]) -> TensorExpr:
    """The expression with constant places counted from the `first` of their dimensions.

    rewrite:
        sum(k, X[m, 7, k] * W[k, n]) -> sum(k, X[m, 0, k] * W[k, n])
    """
    if not any(first.get((tensor, axis)) for tensor, axis in first if tensor in operands(expr)):
        return expr

    def visit(part: Expr) -> Expr:
        new = rebuild(part, visit)
        if not isinstance(new, Access):
            return new
        index = tuple(_counted(each, first.get((new.tensor, axis), 0)) for axis, each in enumerate(new.index))
        return replace(new, index=index)

    return replace(expr, body=visit(expr.body))


def _counted(index: Expr, first: int) -> Expr:
    return Const(index.value - first) if first and isinstance(index, Const) and isinstance(index.value, int) else index


def apart(
    firsts: Iterable[Mapping[Dimension, int]], reads: Iterable[Collection[str]], inside: Collection[str]
) -> list[dict[Dimension, int]]:
    """For each of some parts how far the places that it reads are from the first that any of them reads; of tensors
    that some part makes (`inside`), or `reads` otherwise, from the beginning."""
    firsts, reads = list(firsts), list(reads)
    least: dict[Dimension, int] = {}
    for first in firsts:
        for place, start in first.items():
            least[place] = min(least.get(place, start), start)
    fixed = {
        place
        for place in least
        if place[0] in inside
        or any(place[0] in read and place not in first for first, read in zip(firsts, reads, strict=True))
    }
    return [{p: start - (0 if p in fixed else least[p]) for p, start in first.items()} for first in firsts]
