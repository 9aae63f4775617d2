from __future__ import annotations

import numpy as np

from tilec.bounds.einsum.front import front


def test_of_equal_pairs_the_first_and_nothing_that_another_beats() -> None:
    buffer, traffic = np.array([4, 2, 2, 8, 4, 2]), np.array([5, 9, 7, 5, 5, 7])
    assert front(buffer, traffic).tolist() == [2, 0]
    none = np.zeros(0, np.int64)
    assert front(none, none).tolist() == []
