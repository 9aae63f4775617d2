"""Where the tensors of a plan lie in the memory of a run, from the record of code generation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilec.abi.manifest import CallInput, TensorSpec
from tilec.ir.call_segments import outside_calls
from tilec.ir.expr import constant_value
from tilec.ir.plan import Plan


def memory_places(plan: Plan, kernels: Mapping[str, Any]) -> dict[str, CallInput]:
    """Map from every tensor that groups read or store, constants left out, to its place.

    `kernels` is the data of 3-kernels.json; sizes of the plan are known, also where the compiled model has symbols.
    """
    places: dict[str, CallInput] = {}
    for tensor, offset in kernels["arena"]["offsets"].items():
        sizes = [constant_value(extent) for extent in plan.tensors[tensor].shape]
        spec = TensorSpec(tensor, plan.tensors[tensor].ttype, tuple(size for size in sizes if size is not None))
        if isinstance(offset, Mapping):
            places[tensor] = CallInput(tensor, "arena", offset["arena"], spec, offset["offset"])
        else:
            places[tensor] = CallInput(tensor, "arena", offset, spec)
    results = [port.tensor for call in outside_calls(plan.calls) for port in call.outputs]
    places |= {port.tensor: CallInput(port.tensor, "input", i) for i, port in enumerate(plan.inputs)}
    places |= {port.tensor: CallInput(port.tensor, "output", i) for i, port in enumerate(plan.outputs)}
    return places | {tensor: CallInput(tensor, "result", i) for i, tensor in enumerate(results)}
