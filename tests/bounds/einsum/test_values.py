from __future__ import annotations

from itertools import product

import pytest

from tilec.bounds.einsum.values import values, values_where
from tilec.ir.expr import Expr
from tilec.ir.text import parse_expr

EXTENTS = {"i": 5, "r": 3}


@pytest.mark.parametrize("rank", [(("i", 2), ("r", 3)), (("i", 7), ("r", -2)), (("i", 0),), ()])
def test_different_values_of_an_index(rank: tuple[tuple[str, int], ...]) -> None:
    ways = product(range(EXTENTS["i"]), range(EXTENTS["r"]))
    expected = {sum(c * {"i": i, "r": r}[dim] for dim, c in rank) for i, r in ways}
    assert values(rank, EXTENTS) == len(expected)


def test_only_where_the_guards_hold() -> None:
    guards: list[Expr] = [parse_expr("i + r >= 1"), parse_expr("i + r < 4")]
    assert values_where((("i", 1), ("r", 1)), EXTENTS, guards) == 3
    assert values_where((("i", 1), ("r", 1)), EXTENTS, [parse_expr("i > 9")]) == 0
