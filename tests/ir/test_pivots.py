"""Pivots that fulfil constraints."""

import pytest

from tilec.ir.pivots import legal_pivots
from tilec.ir.sizes import Constraint, SymbolRange, pivot_sizes
from tilec.ir.text import parse_expr


@pytest.mark.feature("B08")
@pytest.mark.parametrize(
    ("ranges", "constraint", "pivots"),
    [
        ({}, "a * b % 12 == 0", (120, 120)),
        ({}, "a % 7 != 3", (128, 128)),
        ({"a": SymbolRange(high=100)}, "(a + 1) // 2 % 2 == 0", (100, 128)),
        ({"a": SymbolRange(likely=(7,))}, "a * b % 5 == 0", (7, 120)),
        ({"a": SymbolRange(likely=(7,))}, "a % 5 == 0", (7, 128)),
        ({}, "a == 3 * b + 1", (385, 128)),
        ({}, "a * b == 182", (13, 14)),
        ({"a": SymbolRange(high=7)}, "a * b == 182", (7, 26)),
    ],
)
def test_pivots(ranges: dict[str, SymbolRange], constraint: str, pivots: tuple[int, int]) -> None:
    legal = legal_pivots(("a", "b"), ranges, [Constraint(parse_expr(constraint))])
    assert tuple(pivot_sizes(("a", "b"), legal).values()) == pivots


def test_a_size_is_taken_for_what_the_others_add_up_to() -> None:
    """A cache of `total` places holds the earlier tokens and the new ones."""
    fits = Constraint(parse_expr("past + seq <= total"))
    found = legal_pivots(("past", "seq", "total"), {"seq": SymbolRange(likely=(100,))}, [fits])
    assert pivot_sizes(("past", "seq", "total"), found) == {"past": 128, "seq": 100, "total": 228}


def test_sizes_that_are_equal_unless_one_is_1_are_equal() -> None:
    fits = Constraint(parse_expr("total == past + seq or total == 1"))
    found = legal_pivots(("past", "seq", "total"), {"seq": SymbolRange(likely=(100,))}, [fits])
    assert pivot_sizes(("past", "seq", "total"), found) == {"past": 128, "seq": 100, "total": 228}
