"""Updates of states in NumPy: what a call that updates states makes of rows and of the states before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tilec.ir.evaluate import evaluate
from tilec.ir.expr import Const, Expr, TensorExpr, constant_value
from tilec.ir.graph import Call, Room
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
    """Output of the model -> the input that is its memory before; those that grow in the model are none."""
    grown = {room.tensor for room in plan.rooms}
    return {
        made: given for made, given in _states(plan) if made not in {p.name for p in plan.outputs if p.tensor in grown}
    }


def model_feeds(plan: Plan, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """The feeds of a plan of known sizes as the model takes them: of states with room the rows that there are."""
    rooms = {room.tensor: room for room in plan.rooms}
    told = {room.told_by for room in plan.rooms}
    tensors = {port.name: port.tensor for port in plan.inputs}
    return {
        name: _rows(array, rooms[tensors[name]]) if tensors.get(name) in rooms else array
        for name, array in feeds.items()
        if name not in told
    }


def with_rooms(plan: Plan, feeds: Mapping[str, Any], outputs: Mapping[str, Any]) -> dict[str, Any]:
    """The model's outputs as a plan of known sizes has them: what lies behind the rows of a state is what was there."""
    rooms = {port.name: room for port in plan.outputs for room in plan.rooms if room.tensor == port.tensor}
    states, whole = dict(_states(plan)), dict(outputs)
    for name in rooms.keys() & whole.keys():
        state = np.array(feeds[states[name]])
        _rows(state, rooms[name])[...] = whole[name]
        whole[name] = state
    return whole


def _states(plan: Plan) -> Iterator[tuple[str, str]]:
    """Outputs of the model, each with the input that is its memory before."""
    inputs, outputs = ({port.tensor: port.name for port in ports} for ports in (plan.inputs, plan.outputs))
    return ((outputs[made], inputs[update.state]) for call in plan.calls for update, made in call.updated)


def _rows(array: Any, room: Room) -> Any:
    return array[(slice(None),) * room.dim + (slice(constant_value(room.rows)),)]
