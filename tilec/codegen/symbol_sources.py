"""Where the sizes of a model come from at run time: dimensions of inputs, and of results of calls (B01).

A dimension tells a symbol where its extent is the symbol, else where it is a multiple of it plus a constant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tilec.abi.shape_program import SymbolSpec
from tilec.errors import UnsupportedError
from tilec.ir.call_segments import outside_calls
from tilec.ir.expr import Var, variables
from tilec.ir.graph import Port
from tilec.ir.plan import Plan
from tilec.ir.port_sizes import told_by
from tilec.ir.sizes import ANY_SIZE

Space = Literal["input", "result"]
"""Inputs or results of calls."""


@dataclass(frozen=True, slots=True)
class Source:
    """Dimension `dim` of tensor number `at`, whose extent is `factor` times a symbol plus `constant`."""

    space: Space
    at: int
    dim: int
    factor: int
    constant: int


def symbol_specs(plan: Plan) -> tuple[SymbolSpec, ...]:
    """The symbols of a plan, each with the dimension that defines it and its range. One that no tensor has is left out.

    Raises UnsupportedError for a symbol that no dimension of an input or of a result of a call tells.
    """
    sources = dict(reversed(list(_telling_dimensions(plan))))
    used = {name for tensor in plan.tensors.values() for extent in tensor.shape for name in variables(extent)}
    specs = []
    for symbol in plan.symbols:
        if symbol not in sources:
            if symbol not in used:
                continue
            raise UnsupportedError(
                f"the size {symbol} cannot be read off an input: no dimension is a multiple of {symbol} and a constant",
                hint=f"Bind it with --shape {symbol}=SIZE.",
            )
        told = sources[symbol]
        entry = plan.symbol_ranges.get(symbol, ANY_SIZE)
        limits = (entry.low, entry.high, entry.divisor, entry.origin)
        specs.append(SymbolSpec(symbol, told.space, told.at, told.dim, *limits, told.factor, told.constant))
    return tuple(specs)


def symbol_parts(plan: Plan) -> Mapping[str, int]:
    """Symbol -> the part of the numbers that it belongs to: 0 from inputs, k from a result of call k - 1."""
    call_of = [number for number, call in enumerate(outside_calls(plan.calls), 1) for _ in call.outputs]
    return {spec.name: 0 if spec.space == "input" else call_of[spec.at] for spec in symbol_specs(plan)}


def _telling_dimensions(plan: Plan) -> Iterator[tuple[str, Source]]:
    """Every dimension that tells a symbol: inputs first, and of these and of results those that are a symbol first."""
    results = [port for call in outside_calls(plan.calls) for port in call.outputs]
    spaces: tuple[tuple[Space, Sequence[Port]], ...] = (("input", plan.inputs), ("result", results))
    for space, ports in spaces:
        shapes = [plan.tensors[port.tensor].shape if port.tensor in plan.tensors else () for port in ports]
        places = [(at, dim, extent) for at, shape in enumerate(shapes) for dim, extent in enumerate(shape)]
        for at, dim, extent in sorted(places, key=lambda place: not isinstance(place[2], Var)):
            for symbol, factor, constant in told_by(extent):
                yield symbol, Source(space, at, dim, factor, constant)
