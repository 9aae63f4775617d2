"""Seeded weights: reproducible to the bit, of the variance asked for."""

import numpy as np
import pytest

from tilec.zoo.weights import fan_in_spread, uniform


def test_values_are_pinned() -> None:
    """The models' digests depend on these bits."""
    expected = np.array(
        [[0.21485137939453125, 0.24275970458984375], [-0.12871551513671875, 0.13794708251953125]], np.float32
    )
    np.testing.assert_array_equal(uniform(0, "layer.weight", [2, 2], 0.5), expected)


def test_depends_on_seed_and_name_only() -> None:
    first = uniform(3, "a", [4, 5], 1.0)
    np.testing.assert_array_equal(first, uniform(3, "a", [4, 5], 1.0))
    np.testing.assert_array_equal(first.ravel(), uniform(3, "a", [20], 1.0))
    assert not np.array_equal(first, uniform(4, "a", [4, 5], 1.0))
    assert not np.array_equal(first, uniform(3, "b", [4, 5], 1.0))


def test_range() -> None:
    values = uniform(0, "a", [100_000], 0.25, 1.0)
    assert values.dtype == np.float32
    assert 0.75 <= values.min() < 0.7501
    assert 1.2499 < values.max() <= 1.25
    assert values.mean() == pytest.approx(1.0, abs=2e-3)


@pytest.mark.parametrize("shape", [[], [0], [1], [3, 0, 2], [7]])
def test_awkward_shapes(shape: list[int]) -> None:
    assert uniform(0, "a", shape, 1.0).shape == tuple(shape)


def test_fan_in_spread_keeps_variance() -> None:
    weights = uniform(0, "a", [300, 500], fan_in_spread(300, gain=2.0)).astype(np.float64)
    signal = np.random.default_rng(1).standard_normal([400, 300])
    assert np.std(signal @ weights) == pytest.approx(2.0, rel=0.03)
