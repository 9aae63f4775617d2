"""Where the sizes of a model come from at run time: dimensions of inputs, and of results of calls (B01)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from tilec.abi.shape_program import SymbolSpec
from tilec.errors import UnsupportedError
from tilec.ir.expr import Var, variables
from tilec.ir.graph import Port
from tilec.ir.plan import Plan
from tilec.ir.sizes import ANY_SIZE

Source = tuple[Literal["input", "result"], int, int]
"""Inputs or results of calls, the number of the tensor, its dimension."""


def symbol_specs(plan: Plan) -> tuple[SymbolSpec, ...]:
    """The symbols of a plan, each with the dimension that defines it and its range. One that no tensor has is left out.

    Raises UnsupportedError for a symbol that no dimension of an input or of a result of a call is.
    """
    sources = dict(reversed(list(_plain_dimensions(plan))))
    used = {name for tensor in plan.tensors.values() for extent in tensor.shape for name in variables(extent)}
    specs = []
    for symbol in plan.symbols:
        if symbol not in sources:
            if symbol not in used:
                continue
            raise UnsupportedError(
                f"the size {symbol} cannot be read off an input: no dimension is {symbol} alone",
                hint=f"Bind it with --shape {symbol}=SIZE.",
            )
        space, at, dim = sources[symbol]
        entry = plan.symbol_ranges.get(symbol, ANY_SIZE)
        specs.append(SymbolSpec(symbol, space, at, dim, entry.low, entry.high, entry.divisor, entry.origin))
    return tuple(specs)


def symbol_parts(plan: Plan) -> Mapping[str, int]:
    """Symbol -> the part of the numbers that it belongs to: 0 from inputs, k from a result of call k - 1."""
    call_of = [number for number, call in enumerate(plan.calls, 1) for _ in call.outputs]
    return {spec.name: 0 if spec.space == "input" else call_of[spec.at] for spec in symbol_specs(plan)}


def _plain_dimensions(plan: Plan) -> Iterator[tuple[str, Source]]:
    """Every dimension that is a symbol, inputs first."""
    results = [port for call in plan.calls for port in call.outputs]
    spaces: tuple[tuple[Literal["input", "result"], Sequence[Port]], ...] = (
        ("input", plan.inputs),
        ("result", results),
    )
    for space, ports in spaces:
        for at, port in enumerate(ports):
            shape = plan.tensors[port.tensor].shape if port.tensor in plan.tensors else ()
            for dim, extent in enumerate(shape):
                if isinstance(extent, Var):
                    yield extent.name, (space, at, dim)
