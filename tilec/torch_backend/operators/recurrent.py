"""LSTM and GRU layers as ONNX's operators, one a layer."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import fx

from tilec.torch_backend import recurrent
from tilec.torch_backend.translation import Translation, UntranslatableError, translates
from tilec.torch_backend.values import Tensor

aten = torch.ops.aten

GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2)}
"""ONNX's order of gates, as positions in PyTorch's: input, forget, cell, output; reset, update, new."""

TYPES = (torch.float32, torch.float64)


@translates(recurrent.lstm, recurrent.gru)
def _whole(
    t: Translation,
    node: fx.Node,
    x: Tensor,
    states: Sequence[Tensor],
    weights: Sequence[Tensor],
    biases: bool,
    layers: int,
    both: bool,
    first: bool,
) -> list[str]:
    op = "LSTM" if node.target is recurrent.lstm else "GRU"
    return _layers(t, op, x, states, weights, biases, layers, both, first)


@translates(aten.lstm.input, aten.gru.input)
def _of_a_program(
    t: Translation,
    node: fx.Node,
    x: Tensor,
    state: Tensor | Sequence[Tensor],
    weights: Sequence[Tensor],
    biases: bool,
    layers: int,
    dropout: float,
    training: bool,
    both: bool,
    first: bool,
) -> list[str]:
    """A layer of an exported program."""
    if training and dropout:
        raise UntranslatableError("a recurrent layer with dropout")
    op = "GRU" if isinstance(state, Tensor) else "LSTM"
    states = [state] if isinstance(state, Tensor) else state
    return _layers(t, op, x, states, weights, biases, layers, both, first)


def _layers(
    t: Translation,
    op: str,
    x: Tensor,
    states: Sequence[Tensor],
    weights: Sequence[Tensor],
    biases: bool,
    layers: int,
    both: bool,
    first: bool,
) -> list[str]:
    """Steps of the last layer, and the states of all after the last step."""
    ways, each = 2 if both else 1, 4 if biases else 2
    if x.dtype not in TYPES or len(weights) != layers * ways * each:
        raise UntranslatableError(f"a recurrent layer of {x.dtype}, or with projections")
    hidden = int(states[0].shape[2])
    steps = t.emit("Transpose", x.name, perm=[1, 0, 2]) if first else x.name
    finals: list[list[str]] = [[] for _ in states]
    for layer in range(layers):
        of_layer = [weights[(layer * ways + way) * each : (layer * ways + way + 1) * each] for way in range(ways)]
        ports = [_both_ways(t, [_ordered(t, op, each[n], hidden) for each in of_layer]) for n in (0, 1)]
        if biases:
            pairs = [[_ordered(t, op, each[n], hidden) for n in (2, 3)] for each in of_layer]
            ports.append(_both_ways(t, [t.emit("Concat", *pair, axis=0) for pair in pairs]))
        initial = (
            [_rows(t, state.name, layer * ways, ways) for state in states]
            if layers > 1
            else [state.name for state in states]
        )
        made = t.onnx.emit_several(
            op,
            1 + len(states),
            steps,
            *ports,
            *([] if biases else [""]),
            "",
            *initial,
            hidden_size=hidden,
            direction="bidirectional" if both else "forward",
            linear_before_reset=1 if op == "GRU" else None,
        )
        swapped = t.emit("Transpose", made[0], perm=[0, 2, 1, 3])
        steps = t.emit("Reshape", swapped, t.onnx.integers([0, 0, ways * hidden]))
        for place, name in zip(finals, made[1:], strict=True):
            place.append(name)
    after = [t.emit("Concat", *names, axis=0) if len(names) > 1 else names[0] for names in finals]
    return [t.emit("Transpose", steps, perm=[1, 0, 2]) if first else steps, *after]


def _ordered(t: Translation, op: str, weight: Tensor, hidden: int) -> str:
    """The rows of a weight, or elements of a bias, in ONNX's order of gates."""
    rows = [gate * hidden + n for gate in GATES[op] for n in range(hidden)]
    return t.emit("Gather", weight.name, t.onnx.integers(rows), axis=0)


def _both_ways(t: Translation, names: Sequence[str]) -> str:
    """What each direction has, stacked."""
    stacked = [t.emit("Unsqueeze", name, t.onnx.integers([0])) for name in names]
    return t.emit("Concat", *stacked, axis=0) if len(stacked) > 1 else stacked[0]


def _rows(t: Translation, name: str, first: int, count: int) -> str:
    ends = [t.onnx.integers([end]) for end in (first, first + count)]
    return t.emit("Slice", name, *ends, t.onnx.integers([0]), t.onnx.integers([1]))
