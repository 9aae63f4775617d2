"""Ranges for the symbols of a graph, in addition to those that it knows (B06, B07)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilec.errors import UsageError, did_you_mean
from tilec.ir.graph import Graph
from tilec.ir.sizes import ANY_SIZE, SymbolRange, from_origin, intersected


def restricted(graph: Graph, ranges: Mapping[str, SymbolRange]) -> Graph:
    """The graph whose symbols have these ranges as well; the same graph where they add nothing.

    Raises UsageError for a symbol that the graph does not have, and where no size is in both ranges of a symbol.
    """
    known = dict(graph.symbol_ranges)
    for symbol, entry in ranges.items():
        if symbol not in graph.symbols:
            raise _unknown(graph, symbol, entry)
        both = common_range(symbol, known.get(symbol, ANY_SIZE), entry)
        if both != ANY_SIZE:
            known[symbol] = both
    if known == graph.symbol_ranges:
        return graph
    return replace(graph, symbol_ranges={symbol: known[symbol] for symbol in graph.symbols if symbol in known})


def common_range(symbol: str, known: SymbolRange, given: SymbolRange) -> SymbolRange:
    """The sizes of a symbol that two ranges have in common. Raises UsageError where there are none, with both
    origins."""
    try:
        return intersected(known, given)
    except ValueError as error:
        message = (
            f"{symbol} cannot be {given.text}{from_origin(given.origin)} "
            f"and {known.text}{from_origin(known.origin)}: {error}"
        )
        raise UsageError(message, symbol, "Take sizes that the model accepts.") from error


def _unknown(graph: Graph, symbol: str, entry: SymbolRange) -> UsageError:
    near = did_you_mean(symbol, graph.symbols)
    known = ", ".join(graph.symbols) or "none left to bind"
    message = f"the graph has no symbol {symbol!r} (symbols: {known})"
    return UsageError(message, f"--shape {symbol}={entry.flag}", f"Did you mean {near!r}?" if near else None)
