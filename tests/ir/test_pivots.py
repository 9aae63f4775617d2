"""Pivots that fulfil constraints."""

from math import prod

import pytest

from tilec.ir.expr import Const, Var
from tilec.ir.pivots import MOST_ELEMENTS, held_pivots, legal_pivots, nearest_legal
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


@pytest.mark.parametrize("constraint", ["total == past + seq", "total == past + seq or total == 1"])
def test_classes_of_sizes_are_those_that_some_run_has(constraint: str) -> None:
    pivot = {"past": 128, "seq": 128, "total": 256}
    fits = [Constraint(parse_expr(constraint))]

    def legal(ranges: dict[str, SymbolRange] | None = None, **sizes: int) -> tuple[int, ...]:
        given = {**pivot, **sizes}
        return tuple(nearest_legal(given, tuple(pivot), pivot, ranges or {}, fits).values())

    assert legal() == (128, 128, 256)
    assert legal(seq=1) == (128, 1, 129)
    assert legal(past=0) == (0, 128, 128)
    assert legal(past=8, seq=8, total=8) == (8, 8, 16)
    assert legal({"total": SymbolRange(low=200)}, seq=1) == (128, 1, 256)


@pytest.mark.parametrize("rank", [2, 4, 7, 9])
def test_tensors_of_many_dimensions_are_planned_at_sizes_that_a_memory_holds(rank):
    symbols = [f"d{n}" for n in range(rank)]
    ranges = {"d0": SymbolRange(likely=(8,)), "d1": SymbolRange(low=3, divisor=3)}
    found = held_pivots(symbols, ranges, [[Var(name) for name in symbols], [Const(4)]])
    sizes = pivot_sizes(symbols, found)
    assert prod(sizes.values()) <= MOST_ELEMENTS
    assert sizes["d0"] == 8
    assert (found == ranges) == (rank < 6)
    assert len({sizes[name] for name in symbols[2:]}) <= 1
