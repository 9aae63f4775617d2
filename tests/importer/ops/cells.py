"""Operands of recurrent operators, drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.importer.reference import normal

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
OUTPUTS = {"RNN": 2, "GRU": 2, "LSTM": 3}
ACTIVATIONS = {"RNN": 1, "GRU": 2, "LSTM": 3}


def operands(
    kind: str,
    sizes: tuple[int, int, int, int] = (4, 3, 5, 6),
    directions: int = 1,
    lengths: Sequence[int] | None = None,
    full: bool = True,
) -> list[NDArray[Any] | None]:
    """X, W, R and the rest for sizes (times, batch, inputs, hidden units); without biases and states unless `full`."""
    times, batch, inputs, hidden = sizes
    rows = GATES[kind] * hidden
    lens = None if lengths is None else np.array(lengths, np.int32)
    result = [
        normal(times, batch, inputs),
        0.5 * normal(directions, rows, inputs, seed=1),
        0.5 * normal(directions, rows, hidden, seed=2),
        normal(directions, 2 * rows, seed=3) if full else None,
        lens,
    ]
    if full:
        result.append(normal(directions, batch, hidden, seed=4))
    if full and kind == "LSTM":
        result += [normal(directions, batch, hidden, seed=5), normal(directions, 3 * hidden, seed=6)]
    return result
