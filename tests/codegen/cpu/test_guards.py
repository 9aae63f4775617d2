"""Conditions that the first and the last lane of a vector decide for all lanes between them."""

import operator
from itertools import product

import pytest

from tilec.codegen.cpu.guards import conjuncts, is_monotone
from tilec.ir.text import parse_expr, text_of

COMPARISONS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


@pytest.mark.parametrize("holds", [True, False])
@pytest.mark.parametrize("op", COMPARISONS)
def test_what_the_ends_agree_on_holds_between_them(op: str, holds: bool) -> None:
    """Where a monotone condition is as wanted in the first and the last of four lanes, it is in all of them; of an
    affine comparison only a difference in the middle is not seen at the ends."""
    found = {is_monotone(parse_expr(f"i*{a} + {b} {op} n"), holds) for a, b in product((-2, 0, 1), (-3, 0, 4))}
    assert found == {(op, holds) not in (("==", False), ("!=", True))}
    if found == {True}:
        for a, b in product(range(-3, 4), range(-6, 7)):
            lanes = [COMPARISONS[op](a * i + b, 0) is holds for i in range(4)]
            assert all(lanes) or not (lanes[0] and lanes[-1])


@pytest.mark.parametrize("condition", ["i % 2 < 1", "i // 3 >= n", "X[i] < 4", "not i < 4", "i < 4 or i > 6"])
def test_what_is_no_affine_comparison_may_change_between_the_ends(condition: str) -> None:
    assert not is_monotone(parse_expr(condition), True)


def test_conditions_that_all_have_to_hold() -> None:
    assert [text_of(c) for c in conjuncts(parse_expr("i < 4 and (j < 3 or i > 2) and j > 0"))] == [
        "i < 4",
        "j < 3 or i > 2",
        "j > 0",
    ]
