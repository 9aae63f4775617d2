"""Updates of states in graphs and plans: rows go to places inside of an input that an output is in the same memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tilec.ir.expr import accesses, variables
from tilec.ir.graph import Call, Port, Tensor, Update
from tilec.ir.text import text_of


def update_problems(
    calls: Sequence[Call], tensors: Mapping[str, Tensor], inputs: Sequence[Port], outputs: Sequence[Port]
) -> list[str]:
    """Problems of the updates among calls, one sentence each."""
    given, made = ({port.tensor for port in ports} for ports in (inputs, outputs))
    problems: list[str] = []
    states: list[str] = []
    for call in calls:
        for update, present in call.updated:
            problems += [f"{call.file}: {each}" for each in _problems(call, update, present, tensors, given, made)]
            states.append(update.state)
    return [*problems, *(f"{state} is updated twice" for state in sorted({s for s in states if states.count(s) > 1}))]


def _problems(
    call: Call, update: Update, present: str, tensors: Mapping[str, Tensor], given: set[str], made: set[str]
) -> Iterator[str]:
    missing = [name for name in (update.rows, update.state, present) if name not in tensors]
    if missing:
        yield f"{missing[0]} has no shape and type"
        return
    rows, state = tensors[update.rows], tensors[update.state]
    if update.state not in given or present not in made:
        yield f"{update.state} is no input of the model, or {present} no output"
    if state != tensors[present]:
        yield f"{update.state} and {present} have not the same shape and type"
    if len(update.iterators) != len(rows.shape) or len(set(update.iterators)) != len(rows.shape):
        yield f"{len(update.iterators)} iterators for rows of {len(rows.shape)} dimensions"
    if rows.ttype != state.ttype:
        yield f"rows of type {rows.ttype} for a state of type {state.ttype}"
    if len(update.place) != len(state.shape):
        yield f"{len(update.place)} places for a state of {len(state.shape)} dimensions"
    read = {port.tensor for port in call.inputs}
    if update.rows not in read:
        yield f"{update.rows} is none of its inputs"
    for index in update.place:
        unknown = sorted(variables(index) - set(update.iterators) - _symbols(tensors))
        if unknown:
            yield f"unknown iterator {unknown[0]} in the place {text_of(index)}"
        for access in accesses(index):
            if access.tensor not in read or access.tensor not in tensors:
                yield f"the place {text_of(index)} reads {access.tensor}, which is none of its inputs"
            elif len(access.index) != len(tensors[access.tensor].shape):
                yield f"the place {text_of(index)} reads {access.tensor} with {len(access.index)} indices"


def _symbols(tensors: Mapping[str, Tensor]) -> set[str]:
    """The symbols in shapes of tensors."""
    return {name for tensor in tensors.values() for extent in tensor.shape for name in variables(extent)}
