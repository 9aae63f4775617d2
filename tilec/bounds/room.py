"""The buffer that fused operators need together (O19, O20, O22)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Literal

import numpy as np

from tilec.bounds.curve import Ints
from tilec.bounds.ffmt import ONE
from tilec.bounds.steps import total

Scheme = Literal[1, 2, "pipelined"]
"""How the buffer of a segment adds up; `room` says how."""


@dataclass(frozen=True)
class Placed:
    """Bits of the tiles of one operator in many mappings, and of one row of I and of O.

    `kept` says that the tile of W stays while other operators run, `whole` that it is all of W.
    """

    inputs: Ints
    weights: Ints
    outputs: Ints
    kept: bool
    whole: bool
    row_in: int
    row_out: int


def room(placed: Sequence[Placed], scheme: Scheme) -> Ints:
    """Bits of buffer that a segment needs (O19, O20, O22).

    1: the largest operator, a streamed W counted with it, and everything that is kept.
    2: as the paper counts.  Operators side by side that keep all of W work row by row: their weights, the largest
    rows between them, and the first tile of I or the last of O, which may take its place.  Others take their tiles.
    The largest counts, although what is kept must stay while others run.
    pipelined: all weights, and the largest I and O.
    """
    if scheme == "pipelined":
        return total([each.weights for each in placed]) + _largest([each.inputs + each.outputs for each in placed])
    if scheme == 1:
        most = _largest([each.inputs + each.outputs + (0 if each.kept else each.weights) for each in placed])
        return most + total([each.weights for each in placed if each.kept])
    needs: list[Ints] = []
    run: list[Placed] = []
    for each in placed:
        if each.whole:
            run.append(each)
            continue
        needs += [_side_by_side(run), each.inputs + each.weights + each.outputs]
        run = []
    return _largest([*needs, _side_by_side(run)])


def _side_by_side(run: Sequence[Placed]) -> Ints:
    """Bits for operators that keep all their weights and hand on single rows."""
    if not run:
        return 0 * ONE
    rows = [
        (each.row_in if position else 0) + (each.row_out if position < len(run) - 1 else 0)
        for position, each in enumerate(run)
    ]
    return total([each.weights for each in run]) + np.maximum(run[0].inputs, run[-1].outputs) + max(rows)


def _largest(values: Sequence[Ints]) -> Ints:
    return reduce(np.maximum, values)
