"""Comparing outputs: the size of errors, and that nothing special slips through."""

import numpy as np
import pytest

from tilec.verify.compare import compare, largest_magnitude

EXPECTED = np.array([[1.0, -4.0], [2.0, 0.5]], np.float32)


def test_the_error_is_relative_to_the_largest_value():
    actual = EXPECTED.copy()
    actual[1, 0] += 0.02
    found = compare("y", actual, EXPECTED, 1e-2)
    assert found.passed
    assert found.error == pytest.approx(0.02 / 4, rel=1e-4)


@pytest.mark.parametrize("scale", [1e-30, 1e-6, 1.0, 1e6, 1e30])
def test_results_are_wrong_by_the_same_part_however_small_they_are(scale):
    expected = EXPECTED * np.float32(scale)
    actual = expected.copy()
    actual[1, 0] *= np.float32(1.1)
    found = compare("y", actual, expected, 1e-2)
    assert not found.passed
    assert found.error == pytest.approx(0.2 / 4, rel=1e-4)
    assert compare("y", actual, expected, 6e-2).passed


def test_an_error_above_the_tolerance_says_where():
    actual = EXPECTED.copy()
    actual[1, 0] = 3.0
    found = compare("y", actual, EXPECTED, 1e-2)
    assert not found.passed
    assert found.reason == "3.0 instead of 2.0 at [1, 0]"


@pytest.mark.parametrize(
    ("actual", "expected"),
    [(np.nan, 1.0), (1.0, np.nan), (np.inf, 1.0), (-np.inf, np.inf), (np.nan, np.inf), (np.inf, np.nan)],
)
def test_special_values_must_agree(actual, expected):
    a, b = EXPECTED.copy(), EXPECTED.copy()
    a[0, 1], b[0, 1] = actual, expected
    found = compare("y", a, b, 1e9)
    assert not found.passed
    assert "at [0, 1], 1 such elements" in found.reason


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_equal_special_values_pass_and_hide_nothing(value):
    a, b = EXPECTED.copy(), EXPECTED.copy()
    a[0, 1] = b[0, 1] = value
    assert compare("y", a, b, 0.0).passed
    a[1, 1] += 1.0
    assert not compare("y", a, b, 1e-3).passed


def test_all_nan_output_against_numbers_fails():
    assert not compare("y", np.full_like(EXPECTED, np.nan), EXPECTED, 1.0).passed


def test_shape_and_type_must_agree():
    assert "shape [4] instead of [2, 2]" in compare("y", EXPECTED.ravel(), EXPECTED, 1.0).reason
    assert "type float64 instead of float32" in compare("y", EXPECTED.astype(np.float64), EXPECTED, 1.0).reason


def test_a_zero_reference_allows_no_error():
    zero = np.zeros(3, np.float32)
    assert compare("y", zero, zero, 0.0).passed
    assert not compare("y", zero + np.float32(1e-30), zero, 1e-3).passed


def test_integers_are_exact_beyond_what_floats_hold():
    big = np.array([2**60, 5], np.int64)
    assert compare("y", big, big, 0.0).passed
    found = compare("y", big + np.array([1, 0]), big, 1e-3)
    assert not found.passed
    assert f"{2**60 + 1} instead of {2**60} at [0]" in found.reason


def test_empty_and_scalar_outputs():
    assert compare("y", np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32), 0.0).passed
    assert compare("y", np.array(2.0, np.float32), np.array(2.0, np.float32), 0.0).passed
    assert not compare("y", np.array(2.0, np.float32), np.array(3.0, np.float32), 1e-3).passed
    assert not compare("y", np.array(True), np.array(False), 1.0).passed


def test_both_parts_of_complex_numbers_count():
    expected = np.array([1 + 2j, -3j, complex(np.nan, np.inf)], np.complex64)
    assert compare("y", expected, expected, 0.0).passed
    found = compare("y", expected + np.array([0, 0.5j, 0], np.complex64), expected, 1e-3)
    assert found.error == pytest.approx(0.5 / 3)
    assert "-2.5 instead of -3.0 at [1, 1]" in found.reason
    assert not compare("y", expected.conj(), expected, 0.1).passed
    assert largest_magnitude(expected) == 3.0


def test_a_scalar_of_numpy_is_within_its_tolerance_too():
    a, b = np.float32(0.17550321), np.float32(0.17550324)
    assert compare("x", a, np.array(b), 1e-6).passed
    assert compare("x", np.array(a), b, 1e-6).passed
    assert not compare("x", a, np.array(b), 1e-8).passed
    assert not compare("x", np.float64(a), np.array(b), 1e-6).passed, "another type"
