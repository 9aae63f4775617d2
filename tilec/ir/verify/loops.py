"""Serial loops of graphs and plans: every start has its end, and a step hands on what the next one reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilec.ir.graph import Call, Tensor


def loop_problems(calls: Sequence[Call], tensors: Mapping[str, Tensor]) -> list[str]:
    """Problems of the loops among calls, one sentence each."""
    ports = [(call, port) for call in calls if call.loop for port in (*call.inputs, *call.outputs)]
    problems = [
        f"{call.file} touches {port.tensor}, which is no tensor" for call, port in ports if port.tensor not in tensors
    ]
    if problems:
        return problems
    begun: list[Call] = []
    for call in calls:
        if call.loop == "start":
            begun.append(call)
            problems += _steps(call, tensors)
        elif call.loop == "end" and not begun:
            problems.append(f"{call.file} ends a loop that does not start")
        elif call.loop == "end":
            problems += _carried(begun.pop(), call, tensors)
    return [*problems, *(f"{call.file} starts a loop that does not end" for call in begun)]


def _steps(start: Call, tensors: Mapping[str, Tensor]) -> list[str]:
    """Problems of what a loop reads step by step."""
    sequences = start.inputs[start.carried :]
    if not sequences or len(start.inputs) != len(start.outputs):
        return [f"{start.file} takes no tensor apart, or gives not what it reads"]
    counts = {tensors[port.tensor].shape[:1] for port in sequences}
    return [] if len(counts) == 1 else [f"{start.file} takes tensors apart that have different numbers of steps"]


def _carried(start: Call, end: Call, tensors: Mapping[str, Tensor]) -> list[str]:
    """Problems of the values that a loop carries from step to step."""
    if start.carried != end.carried or min(len(start.inputs), len(end.inputs)) < end.carried:
        return [f"{end.file} carries {end.carried} values, {start.file} {start.carried}"]
    places = zip(start.inputs, start.outputs, end.inputs, end.outputs, strict=False)
    carried = [[tensors[port.tensor] for port in ports] for ports in list(places)[: end.carried]]
    return [
        f"carried value {number} of {end.file} changes its type or shape"
        for number, same in enumerate(carried)
        if any(other != same[0] for other in same)
    ]
