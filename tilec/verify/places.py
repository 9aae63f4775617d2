"""Where the tensors of a plan lie in the memory of a run, from the record of code generation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilec.abi.manifest import CallInput, TensorSpec
from tilec.ir.expr import Expr, constant_value
from tilec.ir.plan import Plan
from tilec.ir.text import text_of


def memory_places(plan: Plan, kernels: Mapping[str, Any]) -> dict[str, CallInput]:
    """Map from every tensor that groups read or store, constants left out, to its place.

    `kernels` is the data of 3-kernels.json.
    """
    places: dict[str, CallInput] = {}
    for tensor, place in kernels["arena"]["offsets"].items():
        shape = tuple(_extent(extent) for extent in plan.tensors[tensor].shape)
        spec = TensorSpec(tensor, plan.tensors[tensor].ttype, shape)
        at, number = (place["arena"], place["offset"]) if isinstance(place, Mapping) else (place, None)
        places[tensor] = CallInput(tensor, "arena", at, spec, number)
    results = [port.tensor for call in plan.calls for port in call.outputs]
    places |= {port.tensor: CallInput(port.tensor, "input", i) for i, port in enumerate(plan.inputs)}
    places |= {port.tensor: CallInput(port.tensor, "output", i) for i, port in enumerate(plan.outputs)}
    return places | {tensor: CallInput(tensor, "result", i) for i, tensor in enumerate(results)}


def _extent(extent: Expr) -> int | str:
    size = constant_value(extent)
    return text_of(extent) if size is None else size
