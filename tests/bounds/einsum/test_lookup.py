"""Look-ups of fronts against bisection."""

from __future__ import annotations

import numpy as np
import pytest

from tilec.bounds.einsum.lookup import Reached


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("largest", [3, 1000, 2**40])
def test_what_is_found_fits_and_is_the_best_unless_points_crowd(seed: int, largest: int) -> None:
    rng = np.random.default_rng(seed)
    buffers = np.unique(np.exp(rng.uniform(0, np.log(largest), 300)).astype(np.int64))
    traffic = np.arange(len(buffers), 0, -1)
    near = np.concatenate([buffers - 1, buffers, buffers + 1, rng.integers(1, 4 * largest, 500)])
    needed = near[near > 0]
    found = Reached(buffers, traffic, 10**6).within(needed)
    best = np.append(10**6, traffic)[np.searchsorted(buffers, needed, "right")]
    assert (found >= best).all()
    assert (found == best).mean() > 0.9


def test_an_empty_front_reaches_nothing() -> None:
    nothing = np.zeros(0, np.int64)
    assert Reached(nothing, nothing, 7).within(np.array([1, 2, 2**40])).tolist() == [7, 7, 7]


def test_large_buffers_that_round_up_as_doubles_are_not_overrated() -> None:
    # 2**53 + 2**44 - 1 is nearer to the next entry than a double can tell.
    start = 2**53 + 2**44
    front = Reached(np.array([start]), np.array([1]), 9)
    assert front.within(np.array([start - 1, start, start + 1])).tolist()[0] == 9
