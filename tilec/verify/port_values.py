"""Values of inputs and outputs as callers have them and as a plan stores them, one code a byte."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tilec.ir.plan import Plan
from tilec.ir.types import TTYPES, numpy_dtype


def input_values(plan: Plan, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays of inputs by name as values of the plan's tensors."""
    return {p.tensor: feeds[p.name].view(np.uint8) if p.tensor in plan.elements else feeds[p.name] for p in plan.inputs}


def as_element(plan: Plan, tensor: str, value: Any) -> Any:
    """The value of an input's or output's tensor as an array of its elements; other bits than those of a code are
    dropped."""
    ttype = plan.elements.get(tensor)
    if ttype is None:
        return value
    return (np.asarray(value) & np.uint8((1 << TTYPES[ttype].bits) - 1)).view(numpy_dtype(ttype))
