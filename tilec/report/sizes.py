"""What a graph knows of its sizes, as text and as JSON: ranges, sizes that equal others, constraints, each with the
place that demands it (B07)."""

from collections.abc import Iterator

from tilec.artifact import Json
from tilec.ir.graph import Graph
from tilec.ir.sizes import ANY_SIZE, from_origin
from tilec.ir.text import text_of


def size_lines(graph: Graph) -> Iterator[str]:
    """A line for each fact: `seq: 0..512 (node embeddings_Gather_2 (Gather))`."""
    for symbol in graph.symbols:
        entry = graph.symbol_ranges.get(symbol, ANY_SIZE)
        yield f"{symbol}: {entry.text}{from_origin(entry.origin)}"
    for name, known in graph.symbol_values.items():
        yield f"{name} = {text_of(known.value)}{from_origin(known.origin)}"
    for constraint in graph.constraints:
        yield f"{text_of(constraint.holds)}{from_origin(constraint.origin)}"


def sizes_to_json(graph: Graph) -> dict[str, Json]:
    """The facts as data: ranges by symbol, values by name, constraints."""
    ranges = {symbol: graph.symbol_ranges.get(symbol, ANY_SIZE) for symbol in graph.symbols}
    return {
        "constraints": [{"holds": text_of(each.holds), "origin": each.origin} for each in graph.constraints],
        "ranges": {
            symbol: {
                "divisor": entry.divisor,
                "high": entry.high,
                "likely": list(entry.likely),
                "low": entry.low,
                "origin": entry.origin,
            }
            for symbol, entry in ranges.items()
        },
        "values": {
            name: {"origin": known.origin, "value": text_of(known.value)} for name, known in graph.symbol_values.items()
        },
    }
