"""Serial loops: a body that the graph has once and that runs for every step, each from the results of the one before.

The number of steps is the extent of the first dimension of tensors that the steps take apart; it may be a symbol.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tilec.importer.builder import SerialLoop
from tilec.importer.operator import Op
from tilec.importer.value import Value
from tilec.ir.graph import Call, Port

FOLDER = "loop"


class BodyResults(NamedTuple):
    """What a step gives: the next values of the carried tensors, and tensors to be stacked."""

    carried: Sequence[Value]
    stacked: Sequence[Value]


Body = Callable[[Sequence[Value], Sequence[Value]], BodyResults]
"""Emits the body of a loop from the carried values and the elements of the sequences of one step."""


def serial_loop(
    op: Op, carried: Sequence[Value], sequences: Sequence[Value], reads: Sequence[Value], body: Body
) -> BodyResults:
    """A loop from initial values over sequences, one element along their first dimension a step; `reads` are all other
    tensors that the body reads. Returns the last values, and the stacks along a new first dimension."""
    builder = op.builder
    segment = max(builder.segment(value.name) for value in (*carried, *sequences, *reads))
    steps = sequences[0].shape[0]
    now = [builder.result(op.name(f"carried{n}"), x.shape, x.ttype, segment + 1) for n, x in enumerate(carried)]
    taken = [builder.result(op.name(f"taken{n}"), x.shape[1:], x.ttype, segment + 1) for n, x in enumerate(sequences)]
    given = {value.name for value in (*now, *taken)}
    results = body(now, taken)
    following = [builder.copy(f"{x.name}_next", x) if x.name in given else x for x in results.carried]
    last = [builder.result(op.name(f"last{n}"), x.shape, x.ttype, segment + 1) for n, x in enumerate(carried)]
    stacks = [
        builder.result(op.name(f"stack{n}"), (steps, *x.shape), x.ttype, segment + 1)
        for n, x in enumerate(results.stacked)
    ]
    name = f"{FOLDER}/{now[0].name if now else taken[0].name}"
    start = _call(f"{name}.start", (*carried, *sequences), (*now, *taken), "start", len(carried))
    end = _call(f"{name}.end", (*following, *results.stacked), (*last, *stacks), "end", len(carried))
    builder.add_loop(SerialLoop(start, end, segment))
    return BodyResults(last, stacks)


def _call(name: str, inputs: Sequence[Value], outputs: Sequence[Value], loop: str, carried: int) -> Call:
    ports = [tuple(Port(value.name, value.name) for value in values) for values in (inputs, outputs)]
    return Call(name, ports[0], ports[1], loop="start" if loop == "start" else "end", carried=carried)
