"""Quantities parse to integers and print back; errors say what was expected."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilec.spec.units import BANDWIDTH, BYTES, ENERGY, RATE, TIME, Unit


@pytest.mark.parametrize(
    ("unit", "text", "value"),
    [
        (BYTES, "164KiB", 164 * 1024),
        (BYTES, "80GB", 80_000_000_000),
        (BYTES, "0.5 KiB", 512),
        (BYTES, "1B", 1),
        (BANDWIDTH, "2039GB/s", 2_039_000_000_000),
        (BANDWIDTH, "1.5e3GB/s", 1_500_000_000_000),
        (RATE, "312TFLOP/s", 312 * 10**12),
        (RATE, "624TOP/s", 624 * 10**12),
        (TIME, "1.2us", 1_200_000),
        (TIME, "3µs", 3_000_000),
        (TIME, "0s", 0),
        (ENERGY, "3.92pJ", 3920),
        (ENERGY, "1.3nJ", 1_300_000),
    ],
)
def test_parse(unit: Unit, text: str, value: int) -> None:
    assert unit.parse(text) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [(164 * 1024, "164KiB"), (80 * 10**9, "80GB"), (1, "1B"), (0, "0B"), (2**35, "32GiB"), (1500, "1.5KB")],
)
def test_format_is_short(value: int, text: str) -> None:
    assert BYTES.format(value) == text


@given(st.sampled_from([BYTES, BANDWIDTH, RATE, TIME, ENERGY]), st.integers(min_value=0, max_value=10**18))
def test_format_is_exact(unit: Unit, value: int) -> None:
    assert unit.parse(unit.format(value)) == value


def test_a_rounded_number_of_a_large_unit_loses_its_fraction_of_the_smallest() -> None:
    assert BYTES.parse("64.03MiB") == 67140321
    assert BYTES.parse("0.0001KiB") == 0


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (164, "164 has no unit; write bytes as '164KiB'"),
        ("164", "'164' has no unit; write bytes as '164KiB'"),
        (None, "None has no unit; write bytes as '164KiB'"),
        ("164kib", "'164kib' has the unit 'kib'; did you mean 'KiB'?"),
        ("164GB/s", "'164GB/s' has the unit 'GB/s'; did you mean 'GB'?"),
        ("3us", "'3us' has the unit 'us'; write bytes as '164KiB'"),
        ("-4KiB", "'-4KiB' is negative; bytes cannot be"),
        ("1.5B", "'1.5B' is not a whole number of B"),
        ("lots", "'lots' is not a number with a unit; write bytes as '164KiB'"),
        ("", "'' is not a number with a unit; write bytes as '164KiB'"),
    ],
)
def test_errors(value: object, message: str) -> None:
    with pytest.raises(ValueError, match="^") as error:
        BYTES.parse(value)
    assert str(error.value) == message
