"""States that a plan holds in fewer bits than the model: draws of them, and the numbers that they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tilec.ir.expr import constant_value
from tilec.ir.graph import RoundedState
from tilec.ir.plan import Plan
from tilec.ir.types import numpy_dtype

MOST = 127


def drawn_states(plan: Plan, seed: int) -> dict[str, Any]:
    """Input of a plan of known sizes -> numbers of the model that are drawn for a state which the plan rounds."""
    states = {each.codes: each for each in plan.rounded}
    found = {}
    for number, port in enumerate(plan.inputs):
        if port.tensor in states:
            shape = [int(constant_value(extent) or 0) for extent in plan.tensors[port.tensor].shape]
            numbers = np.random.default_rng((seed, number)).standard_normal(shape, np.float32)
            found[port.name] = numbers.astype(numpy_dtype(states[port.tensor].ttype))
    return found


def rounded(plan: Plan, numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs of a plan -> codes and scales of such numbers."""
    names = {port.tensor: port.name for port in plan.inputs}
    found: dict[str, Any] = {}
    for each in (each for each in plan.rounded if names.get(each.codes) in numbers):
        exact = np.asarray(numbers[names[each.codes]], np.float32)
        groups = exact.reshape(*exact.shape[:-1], exact.shape[-1] // each.group, each.group)
        largest = np.abs(groups).max(-1, initial=0)
        scales = (largest / np.float32(MOST)).astype(numpy_dtype(plan.tensors[each.scales].ttype))
        divisor = np.where(scales == 0, 1, scales).astype(np.float32)[..., None]
        codes = np.clip(np.rint(groups / divisor), -MOST, MOST).astype(np.int8)
        found |= {names[each.codes]: codes.reshape(exact.shape), names[each.scales]: scales}
    return found


def model_numbers(plan: Plan, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays of inputs or outputs by name, those of rounded states as the model has them."""
    tensors = {port.name: port.tensor for port in (*plan.inputs, *plan.outputs)}
    names = {tensor: name for name, tensor in tensors.items() if name in arrays}
    scales = {each.scales for each in plan.rounded}
    codes = {each.codes: each for each in plan.rounded}
    return {
        name: _numbers(array, arrays[names[codes[tensors[name]].scales]], codes[tensors[name]])
        if tensors[name] in codes
        else array
        for name, array in arrays.items()
        if tensors[name] not in scales
    }


def _numbers(codes: Any, scales: Any, state: RoundedState) -> Any:
    wide = np.asarray(codes, np.float32) * np.repeat(np.asarray(scales, np.float32), state.group, -1)
    return wide.astype(numpy_dtype(state.ttype))
