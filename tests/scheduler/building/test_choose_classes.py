"""Classes of sizes and the limits of their guards, from predicted times alone (B09)."""

from __future__ import annotations

import pytest

from tilec.ir.expr import Const
from tilec.ir.text import parse_expr, text_of
from tilec.scheduler.building.choose_classes import TimedClass, choose_classes

ROWS = [{"rows": n} for n in (4, 64, 1024)]


def chosen(classes: list[TimedClass], most: int = 3) -> list[tuple[int, str, bool]]:
    return [(each.number, text_of(each.guard), each.last) for each in choose_classes(classes, ROWS, most, 1)]


def timed(guard: str, *seconds: float, serves_all: bool = True) -> TimedClass:
    return TimedClass(parse_expr(guard), seconds, serves_all)


@pytest.mark.feature("B09")
def test_a_class_that_is_good_at_all_sizes_is_alone() -> None:
    assert chosen([timed("True", 1, 2, 3), timed("rows >= 8", 2, 2, 2.95)]) == [(0, "True", True)]


@pytest.mark.feature("B09")
def test_a_limit_tells_sizes_apart_at_which_two_tiles_are_legal() -> None:
    """Between the sizes that were looked at, about their geometric mean: sqrt(64 * 1024) = 256."""
    found = chosen([timed("rows >= 8", 9, 3, 1), timed("True", 1, 1, 2)])
    assert found == [(0, "rows >= 257", False), (1, "True", True)]


@pytest.mark.feature("B09")
def test_a_limit_from_above_keeps_what_the_tile_needs() -> None:
    found = chosen([timed("rows >= 32", 9, 1, 9), timed("True", 1, 9, 1)])
    assert found == [(0, "rows >= 32 and rows < 257", False), (1, "True", True)]


@pytest.mark.feature("B09")
def test_the_least_guard_stays_where_a_limit_gains_nothing() -> None:
    found = chosen([timed("rows >= 8", 9, 1, 1), timed("True", 1, 3, 3)])
    assert found == [(0, "rows >= 8", False), (1, "True", True)]


@pytest.mark.feature("B09")
def test_less_than_a_call_takes_is_no_gain() -> None:
    found = chosen([timed("rows >= 8", 9e-9, 3e-9, 1e-9), timed("True", 1e-9, 1e-9, 2e-9)])
    assert [guard for _, guard, _ in found if "257" in guard] == []


@pytest.mark.feature("B09")
def test_the_last_variant_is_one_that_fits_at_all_sizes() -> None:
    found = chosen([timed("True", 1, 1, 1, serves_all=False), timed("rows >= 8", 2, 2, 2)], most=1)
    assert found == [(1, text_of(Const(True)), True)]
