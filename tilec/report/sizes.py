"""What a graph knows of its sizes, as text and as JSON: ranges, sizes that equal others, constraints, each with the
place that demands it (B07)."""

from collections.abc import Iterator, Mapping

from tilec.artifact import Json
from tilec.ir.graph import Graph
from tilec.ir.scenarios import scenario_text
from tilec.ir.sizes import ANY_SIZE, Scenario, from_origin
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
    for name, scenario in graph.scenarios.items():
        yield f"scenario {name}: {scenario_text(scenario)}{from_origin(scenario.origin)}"


def scenarios_to_json(scenarios: Mapping[str, Scenario]) -> dict[str, Json]:
    """Scenarios as data: relations, the sizes that decisions are made for, who says so."""
    return {
        name: {
            "made_for": [dict(point) for point in each.at],
            "origin": each.origin,
            "sizes": {symbol: text_of(expr) for symbol, expr in each.sizes.items()},
        }
        for name, each in scenarios.items()
    }


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
        **({"scenarios": scenarios_to_json(graph.scenarios)} if graph.scenarios else {}),
        "values": {
            name: {"origin": known.origin, "value": text_of(known.value)} for name, known in graph.symbol_values.items()
        },
    }
