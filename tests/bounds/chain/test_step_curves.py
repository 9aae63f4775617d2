from __future__ import annotations

import numpy as np

from tilec.bounds.chain.step_curves import StepCurve, best, in_turn


def stairs(steps: list[tuple[int, int]], first: int, slot: int) -> StepCurve:
    buffer, traffic = (np.array(column, np.int64) for column in zip(*steps, strict=True))
    return StepCurve.of(buffer, traffic, first, slot, 2)


def test_in_turn_adds_at_equal_buffer_from_where_both_fit() -> None:
    both = in_turn(stairs([(2, 90), (8, 50)], 0, 0), stairs([(5, 7), (8, 6), (9, 1)], 10, 1))
    assert both.buffer.tolist() == [5, 8, 9]
    assert both.traffic.tolist() == [97, 56, 51]
    assert both.choices.tolist() == [[0, 1, 1], [10, 11, 12]]


def test_best_takes_the_lower_at_every_buffer() -> None:
    low = best([stairs([(2, 90), (8, 50)], 0, 0), stairs([(2, 90), (3, 60), (9, 50)], 10, 1)])
    assert low.buffer.tolist() == [2, 3, 8]
    assert low.traffic.tolist() == [90, 60, 50]
    assert low.choices.tolist() == [[0, -1, 1], [-1, 11, -1]]
