"""Flips of half precision, and what counts as explained by rounding."""

import numpy as np

from tilec.verify.sensitivity import flipped


def test_a_unit_in_the_last_place_of_few_elements_is_a_flip_beside_nan_and_infinities():
    expected = np.linspace(-1, 1, 200).astype(np.float16)
    expected[:9], expected[9] = np.nan, np.inf
    actual = expected.copy()
    actual[20] = np.nextafter(actual[20], np.float16(1))
    assert flipped(actual, expected)
    actual[30:33] = np.nextafter(actual[30:33], np.float16(1))
    assert not flipped(actual, expected)
    assert not flipped(np.where(np.arange(200) == 50, np.float16(np.nan), expected), expected)
