import numpy as np

from tests.exports.compare import error


def test_an_error_is_a_share_of_the_largest_value() -> None:
    expected = np.array([1.0, -50.0, np.inf, np.nan], np.float32)
    assert error(expected, expected) == 0
    assert error(np.array([1.5, -50.0, np.inf, np.nan], np.float32), expected) == 0.01


def test_other_shapes_types_and_nan_are_infinitely_far() -> None:
    expected = np.ones((2, 3), np.float32)
    assert error(expected[:1], expected) == np.inf
    assert error(expected.astype(np.float64), expected) == np.inf
    assert error(np.full_like(expected, np.nan), expected) == np.inf


def test_tensors_without_elements_are_equal() -> None:
    assert error(np.ones((0, 3), np.float32), np.ones((0, 3), np.float32)) == 0
