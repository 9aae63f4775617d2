"""A serial loop in one run: what its body reads in a step, and what becomes of what it computes.

The body reads its operands from arrays of fixed addresses, so that a step copies states and elements, and never binds
anything anew. A loop of no steps runs its body once, on zeros, for the shapes of what it stacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilec.runtime.memory import aligned_array

if TYPE_CHECKING:
    from numpy.typing import NDArray


class LoopRun:
    """The values of a loop between its start and its end.

    `given` are the initial values of the `carried` tensors, then the sequences, whose first dimensions are the steps.
    `operands` are what the body reads, the same arrays in every step.
    """

    def __init__(self, given: Sequence[Any], carried: int) -> None:
        self._carried = carried
        self._sequences = [np.asarray(value) for value in given[carried:]]
        self._steps = min(len(sequence) for sequence in self._sequences)
        self._done = 0
        shapes = [np.shape(value) for value in given[:carried]] + [each.shape[1:] for each in self._sequences]
        self.operands = [aligned_array(shape, value.dtype) for shape, value in zip(shapes, given, strict=True)]
        self._stacks: list[NDArray[Any]] = []
        self._last = _copies(given[:carried])
        _copy(self.operands[:carried], given[:carried])
        if self._steps:
            self._take()
        else:
            for operand in self.operands[carried:]:
                operand[...] = 0

    def _take(self) -> None:
        """The elements of the next step."""
        for operand, sequence in zip(self.operands[self._carried :], self._sequences, strict=True):
            operand[...] = sequence[self._done]

    def advance(self, computed: Sequence[Any]) -> bool:
        """Take what the body computed: the next values of the carried tensors and those to be stacked. Whether there is
        another step, whose operands are there then."""
        if not self._stacks:
            shapes = [(self._steps, *np.shape(value)) for value in computed[self._carried :]]
            values = computed[self._carried :]
            self._stacks = [aligned_array(s, v.dtype) for s, v in zip(shapes, values, strict=True)]
        if not self._steps:
            return False
        for stack, value in zip(self._stacks, computed[self._carried :], strict=True):
            stack[self._done] = value
        self._done += 1
        if self._done == self._steps:
            self._last = _copies(computed[: self._carried])
            return False
        _copy(self.operands[: self._carried], computed[: self._carried])
        self._take()
        return True

    @property
    def results(self) -> list[Any]:
        """The last values of the carried tensors and the stacks, once there is no further step."""
        return [*self._last, *self._stacks]


def _copy(targets: Sequence[Any], values: Sequence[Any]) -> None:
    for target, value in zip(targets, values, strict=True):
        target[...] = value


def _copies(values: Sequence[Any]) -> list[NDArray[Any]]:
    """Aligned arrays of these contents."""
    copies = [aligned_array(np.shape(value), value.dtype) for value in values]
    _copy(copies, values)
    return copies
