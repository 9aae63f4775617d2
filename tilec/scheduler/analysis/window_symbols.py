"""Symbols that are extents of windows which slide over a tensor: those of a convolution whose weights are an input.

Windows are small where models are deployed, and work grows with their area: decisions are made for small ones unless
more is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tilec.ir.expr import TensorExpr, Var, accesses, variables
from tilec.ir.graph import Graph
from tilec.ir.sizes import ANY_SIZE

USUAL_WINDOW = 3
"""What the extent of a window is taken for where nothing is known of it."""


def with_usual_windows(graph: Graph) -> Graph:
    """The graph with a likely size for every symbol of windows that has none."""
    known = dict(graph.symbol_ranges)
    for symbol in window_symbols(graph):
        entry = known.get(symbol, ANY_SIZE)
        if not entry.likely:
            known[symbol] = replace(entry, likely=(entry.nearest(USUAL_WINDOW),))
    return graph if known == graph.symbol_ranges else replace(graph, symbol_ranges=known)


def window_symbols(graph: Graph) -> tuple[str, ...]:
    """The symbols that are the extent of an iterator which is reduced, and moves an index beside another iterator."""
    found = {symbol for node in graph.nodes for symbol in _windows(node.expr)}
    return tuple(symbol for symbol in graph.symbols if symbol in found)


def _windows(expr: TensorExpr) -> Iterator[str]:
    domain = expr.domain
    sliding = {name: extent.name for name in expr.reduce if isinstance(extent := domain[name], Var)}
    if not sliding:
        return
    for access in accesses(expr):
        for index in access.index:
            moving = variables(index)
            if moving.intersection(expr.spatial):
                yield from (symbol for name, symbol in sliding.items() if name in moving)
