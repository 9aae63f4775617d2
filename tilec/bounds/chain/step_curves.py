"""Step curves of traffic over buffer size as arrays: sum at equal buffer for operators in turn, minimum of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilec.bounds.einsum.front import Ints, front


@dataclass(frozen=True)
class StepCurve:
    """Bytes of buffer, rising, and bytes of traffic, falling; `choices` (slots x steps) number the mappings, -1 for
    none."""

    buffer: Ints
    traffic: Ints
    choices: Ints

    @classmethod
    def of(cls, buffer: Ints, traffic: Ints, first: int, slot: int, slots: int) -> StepCurve:
        """A step curve whose steps are the choices `first`, `first` + 1, ... of one slot."""
        choices = np.full((slots, len(buffer)), -1, np.int64)
        choices[slot] = first + np.arange(len(buffer))
        return cls(buffer, traffic, choices)


def in_turn(one: StepCurve, other: StepCurve) -> StepCurve:
    """Traffic of both when each has the whole buffer; undefined below the larger of their minimal buffers."""
    buffer = np.union1d(one.buffer, other.buffer)
    buffer = buffer[buffer >= max(one.buffer[0], other.buffer[0])]
    at_one = np.searchsorted(one.buffer, buffer, side="right") - 1
    at_other = np.searchsorted(other.buffer, buffer, side="right") - 1
    choices = np.maximum(one.choices[:, at_one], other.choices[:, at_other])
    return StepCurve(buffer, one.traffic[at_one] + other.traffic[at_other], choices)


def best(several: Sequence[StepCurve]) -> StepCurve:
    """The least traffic of any curve at every buffer; of equal ones the first."""
    buffer = np.concatenate([each.buffer for each in several])
    traffic = np.concatenate([each.traffic for each in several])
    keep = front(buffer, traffic)
    return StepCurve(buffer[keep], traffic[keep], np.concatenate([each.choices for each in several], axis=1)[:, keep])
