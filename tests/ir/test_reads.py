"""Reads of an expression and the guards that narrow them."""

from __future__ import annotations

from operator import eq, ge, gt, le, lt, ne

import pytest

from tilec.ir.evaluate import integer
from tilec.ir.expr import Const, Var
from tilec.ir.reads import IndexGuard, IteratorGuard, at_least_zero, reads
from tilec.ir.text import parse_expr, parse_tensor, text_of

CONDITIONS = {
    "i < 4": ["i * -1 + 3"],
    "i <= 4": ["i * -1 + 4"],
    "4 < i": ["i - 5"],
    "i >= n": ["i - n"],
    "i == 2": ["i * -1 + 2", "i - 2"],
    "i != 2": [],
    "0 <= i and i < n": ["i", "n - i - 1"],
    "i < 4 or j < 4": [],
    "not (i < 4 or j >= 3)": ["i - 4", "j * -1 + 2"],
    "not (i < 4 and j < 4)": [],
    "X[i] < 4": [],
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions_as_integers_that_are_not_negative(condition: str) -> None:
    assert [text_of(e) for e in at_least_zero(parse_expr(condition))] == CONDITIONS[condition]


@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "==", "!="])
@pytest.mark.parametrize("holds", [True, False])
def test_a_comparison_or_its_opposite_holds_exactly_where_the_integers_are_not_negative(op: str, holds: bool) -> None:
    found = at_least_zero(parse_expr(f"i {op} 4"), holds)
    compare = {"<": lt, "<=": le, ">": gt, ">=": ge, "==": eq, "!=": ne}[op]
    if (op, holds) in (("!=", True), ("==", False)):
        assert found == (), "two ranges are no guard"
        return
    for i in range(9):
        assert all(integer(e, {"i": i}) >= 0 for e in found) is (compare(i, 4) is holds)


def test_the_other_branch_has_the_opposite_guard() -> None:
    expr = parse_tensor("Y[i] = where(i < 4, A[i], B[i - 4])", {"i": 9})
    first, second = reads(expr)
    assert first.iterator_guards == (IteratorGuard("i", -1, Const(3)),)
    assert second.iterator_guards == (IteratorGuard("i", 1, Const(-4)),)


def test_guards_on_an_index_that_several_iterators_move() -> None:
    expr = parse_tensor("Y[h] = sum(r, where(0 <= h*2 + r - 1 < N, X[h*2 + r - 1], 0.0))", {"h": 5, "r": 3})
    (read,) = reads(expr)
    assert read.index_guards == (IndexGuard(0, "low", Const(0)), IndexGuard(0, "high", parse_expr("N - 1")))


@pytest.mark.parametrize(
    ("guard", "scale", "rest"),
    [("i // 4 < 3", -1, 11), ("i // 4 >= 3", 1, -12), ("3*i + 1 > 10", 3, -10), ("(i + 2) // 4 <= 1", -1, 5)],
)
def test_quotients_and_multiples_of_one_iterator(guard: str, scale: int, rest: int) -> None:
    (read,) = reads(parse_tensor(f"Y[i] = where({guard}, X[i], 0.0)", {"i": 30}))
    assert read.iterator_guards == (IteratorGuard("i", scale, Const(rest)),)


def test_data_dependent_indices_and_what_they_read() -> None:
    expr = parse_tensor("Y[i, j] = T[I[i] + 1, j]", {"i": 4, "j": 3})
    table, rows = reads(expr)
    assert (table.tensor, table.index) == ("T", (None, Var("j")))
    assert (rows.tensor, rows.index) == ("I", (Var("i"),))
