"""Which guards a constant around a tensor replaces."""

from __future__ import annotations

import pytest

from tilec.ir.expr import Const, TensorExpr, Var
from tilec.ir.text import parse_tensor, text_of
from tilec.lower.padding import fill_of, unguarded

SIZES = {"h": 7, "w": 7, "r": 3, "s": 3, "k": 3}
SHAPE = (Const(7), Const(7))


def tensor(body: str) -> TensorExpr:
    return parse_tensor(f"Y[h, w] = {body}", SIZES)


BOTH = "0 <= h + r - 1 < 7 and 0 <= w + s - 1 < 7"
ABSORBED = {
    "sum(r, s, where(BOTH, X[h + r - 1, w + s - 1], 0.0) * K[r, s])": (0.0, "X[h + r - 1, w + s - 1] * K[r, s]"),
    "max(r, s, where(BOTH, X[h + r - 1, w + s - 1], -inf))": (float("-inf"), "X[h + r - 1, w + s - 1]"),
    "where(not (h < 1) and h - 1 < 7, X[h - 1, w], 2.0) + X[h, w]": (2.0, "X[h - 1, w] + X[h, w]"),
    # One conjunct says more than "inside": it stays.
    "where(BOTH and r <= h, X[h + r - 1, w + s - 1], 0.0)": (0.0, "where(r <= h, X[h + r - 1, w + s - 1], 0.0)"),
    "where(1 <= h + r - 1 < 7, X[h + r - 1, w], 0.0)": (0.0, "where(1 <= h + r - 1, X[h + r - 1, w], 0.0)"),
    # Both ends in one comparison of the other direction.
    "sum(r, where(7 > h + r - 1 >= 0, X[h + r - 1, w], 1.0))": (1.0, "X[h + r - 1, w]"),
}


@pytest.mark.parametrize("body", ABSORBED)
def test_absorbed(body: str) -> None:
    fill, left = ABSORBED[body]
    expr = tensor(body.replace("BOTH", BOTH))
    assert fill_of(expr, "X", SHAPE) == Const(fill)
    assert text_of(unguarded(expr, {"X": fill}, {"X": SHAPE}).value) == left


KEPT = {
    "two constants": "where(0 <= h - 1, X[h - 1, w], 0.0) + where(0 <= w - 1, X[h, w - 1], 1.0)",
    "narrower than the tensor": "where(1 <= h + r - 1 < 6, X[h + r - 1, w], 0.0)",
    "an access without a guard leaves": "where(0 <= h - 1, X[h - 1, w], 0.0) + X[h + r, w]",
    "a branch that is no literal": "where(0 <= h - 1, X[h - 1, w], X[h, w])",
    "another tensor's guard": "where(0 <= h - 1, Z[h - 1, w], 0.0) + X[h, w]",
    "a disjunction": "where(0 <= h - 1 or r < 2, X[h - 1, w], 0.0)",
}


@pytest.mark.parametrize("case", KEPT)
def test_kept(case: str) -> None:
    expr = tensor(KEPT[case])
    assert fill_of(expr, "X", SHAPE) is None
    assert unguarded(expr, {}, {"X": SHAPE}) == expr


def test_other_constants_do_not_replace_a_guard() -> None:
    expr = tensor("where(0 <= h - 1, X[h - 1, w], 0.0)")
    assert unguarded(expr, {"X": 1.0}, {"X": SHAPE}) == expr


@pytest.mark.feature("B06")
def test_symbolic_sizes() -> None:
    expr = parse_tensor("Y[h] = where(0 <= h - 1 < N, X[h - 1], 0.0)", {"h": Var("N")})
    assert fill_of(expr, "X", (Var("N"),)) == Const(0.0)
