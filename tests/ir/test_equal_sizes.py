"""Sizes that are equal unless one is 1: which those are, and what a guard that says so makes of shapes."""

import pytest

from tilec.ir.equal_sizes import equal_sizes, equalities, made_equal, values_where
from tilec.ir.expr import Const
from tilec.ir.sizes import Constraint
from tilec.ir.text import parse_expr, text_of


def known(*conditions: str) -> dict[str, str]:
    constraints = [Constraint(parse_expr(text)) for text in conditions]
    return {symbol: text_of(value) for symbol, value in equal_sizes(constraints).items()}


@pytest.mark.parametrize(
    ("conditions", "values"),
    [
        (["a == c or a == 1 or c == 1"], {"a": "c"}),
        (["m == t or m == 1"], {"m": "t"}),
        (["past + new == total or total == 1"], {"total": "new + past"}),
        (["n == 3 or n == 1"], {"n": "3"}),
        (
            ["a == c or a == 1 or c == 1", "where(a == 1, c, a) == d or where(a == 1, c, a) == 1 or d == 1"],
            {"a": "d", "c": "d"},
        ),
        (["a == c or a == 1", "c == a or c == 1"], {"a": "c"}),
        (["a * b % 12 == 0", "a <= b", "a == b or b == 2", "a == 2 * a or a == 1"], {}),
    ],
)
def test_symbols_that_equal_others(conditions: list[str], values: dict[str, str]) -> None:
    assert known(*conditions) == values


def test_guards_say_that_sizes_are_equal() -> None:
    values = equal_sizes([Constraint(parse_expr(f"{a} == {b} or {a} == 1")) for a, b in (("m", "t"), ("k", "p + 1"))])
    assert text_of(equalities(values, ["k", "m", "t"])) == "k == p + 1 and m == t"
    assert equalities(values, ["t", "p"]) == Const(True)
    assert values_where(parse_expr("t >= 8 and (k == p + 1 and m == t)")) == values
    assert values_where(parse_expr("t >= 8 or m == t")) == {}
    assert made_equal({"m": 1, "t": 7, "k": 3, "p": 4}, values) == {"m": 7, "t": 7, "k": 5, "p": 4}
