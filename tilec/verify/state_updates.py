"""Updates of states in NumPy: what a call that updates states makes of rows and of the states before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tilec.ir.evaluate import evaluate
from tilec.ir.expr import Const, Expr, TensorExpr
from tilec.ir.graph import Call
from tilec.ir.plan import Plan
from tilec.verify.inputs import Array


def read_by(call: Call) -> tuple[str, ...]:
    """The tensors that a call reads, states before they are updated too."""
    return tuple(dict.fromkeys((*(port.tensor for port in call.inputs), *(each.state for each in call.updates))))


def updated(call: Call, arrays: Mapping[str, Any]) -> dict[str, Array]:
    """The states behind a call that updates them. Places that data decide are kept inside, as kernels keep them."""
    results = {}
    for update, present in call.updated:
        rows, state = arrays[update.rows], np.array(arrays[update.state])
        extents: tuple[Expr, ...] = tuple(Const(size) for size in rows.shape)
        places = []
        for index, size in zip(update.place, state.shape, strict=True):
            expr = TensorExpr("place", update.iterators, (), extents, index)
            places.append(np.clip(evaluate(expr, arrays, ttype="i64"), 0, max(size - 1, 0)))
        state[tuple(places)] = rows
        results[present] = state
    return results


def state_names(plan: Plan) -> dict[str, str]:
    """Output of the model -> the input that is its memory before."""
    inputs, outputs = ({port.tensor: port.name for port in ports} for ports in (plan.inputs, plan.outputs))
    return {outputs[made]: inputs[update.state] for call in plan.calls for update, made in call.updated}
