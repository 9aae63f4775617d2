"""The sizes that a model serves, as one line: `batch any, seq 1..512 (embeddings_Gather_2)`."""

from collections.abc import Iterable, Mapping

from tilec.artifact import Json
from tilec.ir.expr import variables
from tilec.ir.plan import Plan
from tilec.ir.sizes import ANY_SIZE, Constraint, SymbolRange, from_origin
from tilec.ir.text import text_of


def served_sizes(plan: Plan) -> dict[str, SymbolRange]:
    """The symbols of a plan's inputs with their ranges."""
    tensors = (plan.tensors[port.tensor] for port in plan.inputs if port.tensor in plan.tensors)
    named = {name for tensor in tensors for extent in tensor.shape for name in variables(extent)}
    return {symbol: plan.symbol_ranges.get(symbol, ANY_SIZE) for symbol in plan.symbols if symbol in named}


def ranges_text(ranges: Mapping[str, SymbolRange], constraints: Iterable[Constraint] = ()) -> str:
    """Ranges and conditions in words."""
    each = [f"{symbol} {_range_text(entry)}" for symbol, entry in ranges.items()]
    return ", ".join([*each, *(f"{text_of(one.holds)}{from_origin(one.origin)}" for one in constraints)])


def serves_line(plan: Plan) -> str | None:
    """`serves: batch any, seq 1..512 (embeddings_Gather_2)`, None for a plan whose sizes are bound."""
    ranges = served_sizes(plan)
    return f"serves: {ranges_text(ranges, plan.constraints)}" if ranges else None


def serves_to_json(plan: Plan) -> dict[str, Json]:
    """Symbol -> range."""
    return {
        symbol: {"divisor": entry.divisor, "high": entry.high, "low": entry.low, "origin": entry.origin}
        for symbol, entry in served_sizes(plan).items()
    }


def _range_text(entry: SymbolRange) -> str:
    unlimited = (entry.low, entry.high, entry.divisor) == (ANY_SIZE.low, ANY_SIZE.high, ANY_SIZE.divisor)
    return "any" if unlimited else f"{entry.text}{from_origin(entry.origin)}"
