"""Numbers of other tools' files: arithmetic, nothing else."""

import math

import pytest

from tilec.spec.foreign.arithmetic import NoNumberError, number


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (3, 3),
        (0.5, 0.5),
        ("8 * 614e9", 8 * 614e9),
        ("1024*1024*128*8", 2**30),
        ("(depth + 1) / 4 - 2", 2),
        ("2 ** 10", 1024),
        ("-depth", -15),
        ("inf", math.inf),
    ],
)
def test_arithmetic(value: object, found: float) -> None:
    assert number(value, {"depth": 15}) == found


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("deepth", "'deepth' has no value here"),
        ("a.b if a else 0", "is more than arithmetic"),
        ("__import__('os')", "is more than arithmetic"),
        ("1 / 0", "has no value"),
        ("9 ** 9 ** 9", "the exponent is beyond every size"),
        ("(-8) ** 0.5", "the root of a negative number"),
        ("1e20 * 1e20", "beyond every size"),
        ("two words", "is no number"),
        ("\0", "is no number"),
        (True, "True is no number"),
        ([1], "a list or mapping is no number"),
        ("1" * 300, "is no number"),
    ],
)
def test_what_is_no_number(value: object, said: str) -> None:
    with pytest.raises(NoNumberError) as caught:
        number(value, {})
    assert said in str(caught.value)
