"""Buffer requirement of fused operators, sequential or pipelined (Orojenesis, buffer size requirement)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tilec.bounds.chain.templates import ONE
from tilec.bounds.einsum.front import Ints
from tilec.bounds.einsum.operand_traffic import total

Bools = NDArray[np.bool_]

Scheme = Literal[1, 2, "pipelined"]
"""How the buffer of a segment adds up; see `buffer_requirement`."""


@dataclass(frozen=True)
class Placed:
    """Bits of the tiles of one operator in many mappings, and of one row of I and of O.

    `kept`: the tile of W stays in the buffer while other operators run; `whole`: that tile is all of W.
    """

    inputs: Ints
    weights: Ints
    outputs: Ints
    kept: Bools
    whole: Bools
    row_in: int
    row_out: int


def buffer_requirement(placed: Sequence[Placed], scheme: Scheme) -> Ints:
    """Bits of buffer that a segment needs.

    1          the largest operator, including a streamed W, plus everything that is kept
    2          the paper's count: adjacent operators that keep all of W work row by row and need their weights, the
               largest rows between them, and the first tile of I or the last of O, which share a place; others need
               their tiles. The maximum counts, although kept tensors must stay while others run
    pipelined  all weights, and the largest I and O
    """
    if scheme == "pipelined":
        return total([each.weights for each in placed]) + _largest([each.inputs + each.outputs for each in placed])
    if scheme == 1:
        most = _largest([each.inputs + each.outputs + np.where(each.kept, 0, each.weights) for each in placed])
        return most + total([np.where(each.kept, each.weights, 0) for each in placed])
    needs: list[Ints] = []
    weights, rows, first = 0 * ONE, 0 * ONE, 0 * ONE
    for position, each in enumerate(placed):
        after = position > 0 and placed[position - 1].whole
        before = position + 1 < len(placed) and placed[position + 1].whole
        row = np.where(after, each.row_in, 0) + np.where(before, each.row_out, 0)
        weights = each.weights + np.where(after, weights, 0)
        rows = np.maximum(row, np.where(after, rows, 0))
        first = np.where(after, first, each.inputs)
        group = np.where(before, 0, weights + rows + np.maximum(first, each.outputs))
        needs.append(np.where(each.whole, group, each.inputs + each.weights + each.outputs))
    return _largest(needs)


def _largest(values: Sequence[Ints]) -> Ints:
    return reduce(np.maximum, values)
