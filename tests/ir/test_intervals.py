"""The two number types agree wherever both have an answer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilec.ir.expr import Const, Expr
from tilec.ir.intervals import NUMPY, SYMBOLIC, Candidates, Symbolic
from tilec.ir.text import parse_expr

SMALL = st.integers(-12, 12)


@given(SMALL, SMALL, st.integers(1, 6))
def test_constants_and_arrays_agree(a: int, b: int, c: int) -> None:
    x, y, z = (np.asarray(n) for n in (a, b, c))
    p, q, r = Const(a), Const(b), Const(c)
    pairs: list[tuple[object, Expr]] = [
        (NUMPY.add(x, y), SYMBOLIC.add(p, q)),
        (NUMPY.scale(x, b), SYMBOLIC.scale(p, b)),
        (NUMPY.multiply(x, y), SYMBOLIC.multiply(p, q)),
        (NUMPY.divide(x, z), SYMBOLIC.divide(p, r)),
        (NUMPY.minimum(x, y), SYMBOLIC.minimum(p, q)),
        (NUMPY.maximum(x, y), SYMBOLIC.maximum(p, q)),
        *zip(NUMPY.remainder(x, x + c - 1, z), SYMBOLIC.remainder(p, Const(a + c - 1), r), strict=True),
        (NUMPY.empty(x, y), SYMBOLIC.empty(p, q)),
        (NUMPY.choose(x < y, x, y), SYMBOLIC.choose(Const(a < b), p, q)),
    ]
    for number, expr in pairs:
        assert isinstance(expr, Const)
        assert expr.value == np.asarray(number).item()


def test_sizes_of_candidates() -> None:
    numbers = Candidates({"n": np.asarray([3, 8]), "m": 5})
    text = "maximum(n*2 - m, 0) + minimum(n, m) // 2 % 3 + where(n < m and m != 4, 1, 0)"
    assert numbers.size(parse_expr(text)).tolist() == [1 + 1 + 1, 11 + 2 + 0]
    with pytest.raises(KeyError):
        numbers.size(parse_expr("k + 1"))


def test_only_what_is_certain_is_empty() -> None:
    numbers = Symbolic({"v": (Const(0), Const(3))})
    assert numbers.empty(parse_expr("v*4 + 5"), parse_expr("v*4 + 4")) == Const(True)
    assert numbers.empty(parse_expr("v*4"), Const(9)) == Const(False)
    assert numbers.remainder(parse_expr("v*4"), parse_expr("v*4 + 3"), Const(4)) == (Const(0), Const(3))
    assert numbers.remainder(parse_expr("v*3"), parse_expr("v*3 + 2"), Const(4)) == (Const(0), Const(3))


@pytest.mark.filterwarnings("error")
def test_what_is_divided_by_a_size_of_zero_is_zero() -> None:
    """As in the algebra, and without a warning: an image of few pixels has maps of none."""
    five, none = np.asarray([5, 9]), np.asarray([0, 2])
    assert NUMPY.divide(five, none).tolist() == [0, 4]
    assert NUMPY.remainder(five, five + 1, none)[0].tolist() == [0, 0]
    assert Candidates({"n": none}).size(parse_expr("9 // n + 9 % n")).tolist() == [0, 5]
