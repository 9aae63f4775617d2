"""Symbols along which a graph computes every item by itself: batches (B07).

Nothing is reduced over such a symbol and no tensor is read beside the item that is computed. What models call a batch
is small where they are deployed, so that decisions are made for few items unless more is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tilec.ir.bind import substituted
from tilec.ir.equal_sizes import equal_sizes
from tilec.ir.expr import Access, TensorExpr, Var, accesses, variables
from tilec.ir.graph import Graph, Tensor
from tilec.ir.sizes import ANY_SIZE

USUAL_ITEMS = 8
"""Items that a batch is taken for where nothing is known of it."""


def with_usual_items(graph: Graph, seen: Graph) -> Graph:
    """The graph with a likely size for every symbol of independent items that has none; these are `seen` in a graph of
    the same symbols that flattens them less, where sizes that are equal unless one of them is 1 are equal."""
    known = dict(graph.symbol_ranges)
    equal = equal_sizes(graph.constraints)
    alone = independent_symbols(substituted(seen, equal) if equal else seen)
    for symbol in (*alone, *(name for name, value in equal.items() if isinstance(value, Var) and value.name in alone)):
        entry = known.get(symbol, ANY_SIZE)
        if not entry.likely:
            known[symbol] = replace(entry, likely=(entry.nearest(USUAL_ITEMS),))
    return graph if known == graph.symbol_ranges else replace(graph, symbol_ranges=known)


def independent_symbols(graph: Graph) -> tuple[str, ...]:
    """The symbols along which every item is computed by itself, as far as nodes of the graph say."""
    mixed = {symbol for node in graph.nodes for symbol in _mixed(node.expr, graph.tensors)}
    moved = {symbol for node in graph.nodes for extent in node.expr.shape for symbol in variables(extent)}
    return tuple(symbol for symbol in graph.symbols if symbol in moved - mixed)


def _mixed(expr: TensorExpr, tensors: Mapping[str, Tensor]) -> Iterator[str]:
    """Symbols along which an expression reduces, or reads other items than its own."""
    domain = expr.domain
    for iterator in expr.reduce:
        yield from variables(domain[iterator])
    for access in accesses(expr):
        yield from _shifted(access, expr, tensors[access.tensor])


def _shifted(access: Access, expr: TensorExpr, tensor: Tensor) -> Iterator[str]:
    for index, extent in zip(access.index, tensor.shape, strict=True):
        symbols = variables(extent)
        if symbols and not (isinstance(index, Var) and expr.domain.get(index.name) == extent):
            yield from symbols
