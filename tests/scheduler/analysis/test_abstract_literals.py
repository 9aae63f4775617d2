"""abstract_literals: the literals that no cost depends on, and only these, are parameters."""

import pytest

from tilec.ir.text import parse_expr
from tilec.scheduler.analysis.abstract_literals import abstract_literals


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("f32(i32(X[i]) - 119) * 0.25", "f32(i32(X[i]) - 7) * 0.5"),
        ("u8(round(X[i] / 0.25) + 119.0)", "u8(round(X[i] / 3.5) + 2.0)"),
        ("where(X[i] / 0.5 >= -9.0, X[i] / 0.5, -9.0)", "where(X[i] / 4.5 >= -3.0, X[i] / 4.5, -3.0)"),
        ("where(i >= 1, X[i - 1] * 0.25, 0.0)", "where(i >= 1, X[i - 1] * 0.5, 0.0)"),
        ("minimum(maximum(X[i], -2.0), 6.0)", "minimum(maximum(X[i], -3.0), 2.0)"),
        ("f32(X[i] - O[i] * 3) * (0.25 * 0.5)", "f32(X[i] - O[i] * 5) * (0.125 * 0.75)"),
        ("T[I[i] + 2, j] * 3.0", "T[I[i] + 2, j] * 5.0"),
    ],
)
def test_scales_zero_points_and_limits_do_not_tell_bodies_apart(one: str, other: str) -> None:
    assert abstract_literals(parse_expr(one)) == abstract_literals(parse_expr(other)) != parse_expr(one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("X[i - 1]", "X[i - 2]"),
        ("T[I[i] + 2, j]", "T[I[i] + 3, j]"),
        ("where(i >= 2, X[i - 2], 5.0)", "where(i >= 2, X[i - 2], 6.0)"),
        ("where(i - 2 >= 0, X[i - 2], 5.0)", "where(i - 3 >= 0, X[i - 2], 5.0)"),
        ("pow(X[i], 2.0)", "pow(X[i], 3.0)"),
        ("shr(X[i], 4)", "shr(X[i], 5)"),
        ("X[i] * 2", "X[i] * 2.0"),
        ("X[i] + 0.0", "X[i] + 2.0"),
        ("X[i] * 1.0", "X[i] * 2.0"),
        ("f32(i) * 2.0 + X[i]", "f32(i) * 3.0 + X[i]"),
        ("X[i] - 2.0", "X[i] + 2.0"),
    ],
)
def test_literals_that_decide_what_runs_tell_bodies_apart(one: str, other: str) -> None:
    assert abstract_literals(parse_expr(one)) != abstract_literals(parse_expr(other))
