"""Ranges for the symbols of a graph, in addition to those that it knows (B06, B07)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilec.errors import UsageError
from tilec.ir.bind import unknown_symbol
from tilec.ir.graph import Graph
from tilec.ir.pivots import legal_pivots
from tilec.ir.size_facts import ContradictionError, SizeFacts, settled, with_range
from tilec.ir.sizes import ANY_SIZE, SymbolRange, from_origin


def restricted(graph: Graph, ranges: Mapping[str, SymbolRange]) -> Graph:
    """The graph whose symbols have these ranges as well; the same graph where they add nothing. Constraints that follow
    from the ranges are gone.

    Raises UsageError for a symbol that the graph does not have, and where no size is in both ranges of a symbol.
    """
    facts = facts_of(graph)
    for symbol, entry in ranges.items():
        if symbol not in graph.symbols and symbol not in graph.symbol_values:
            raise unknown_symbol(graph, symbol, entry.flag)
        if entry != replace(ANY_SIZE, origin=entry.origin):
            facts = _with_range(facts, symbol, entry)
    if facts == facts_of(graph):
        return graph
    facts = settled(facts)
    known = legal_pivots(graph.symbols, facts.ranges, facts.constraints)
    return replace(graph, symbol_ranges=known, constraints=facts.constraints)


def facts_of(graph: Graph) -> SizeFacts:
    """What a graph knows of its symbols; no further equality replaces one."""
    return SizeFacts((), graph.symbol_ranges, graph.symbol_values, graph.constraints)


def _with_range(facts: SizeFacts, symbol: str, entry: SymbolRange) -> SizeFacts:
    try:
        return with_range(facts, symbol, entry)
    except ContradictionError as error:
        known = facts.ranges.get(symbol)
        also = f" and {known.text}{from_origin(known.origin)}" if known is not None else ""
        message = f"{symbol} cannot be {entry.text}{from_origin(entry.origin)}{also}: {error}"
        raise UsageError(message, symbol, "Take sizes that the model accepts.") from error
