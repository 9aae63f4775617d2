"""Tiles and steps cover an interval, whatever its end."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lower.cases import MATMUL, evaluated
from tilec.ir.expr import Const, Expr, Var, substitute
from tilec.ir.text import parse_expr, text_of
from tilec.lower.split import split

Tail = Literal["shift", "clip"]


def at(s, expr: Expr, **values: int) -> int:
    return evaluated(substitute(s.sizes.resolve(expr), {name: Const(v) for name, v in values.items()}))


@given(
    st.integers(0, 9), st.integers(0, 40), st.integers(1, 12), st.sampled_from([None, "shift", "clip"]), st.booleans()
)
def test_pieces_cover_and_own_each_element_once(
    lo: int, width: int, size: int, tail: Tail | None, uniform: bool
) -> None:
    s = MATMUL.setting()
    cut = split(s, (Const(lo), Const(lo + width)), size, "v", tail, uniform)
    if width <= size:
        assert cut is None
        return
    assert cut is not None
    count = evaluated(cut.head.extent)
    pieces = [tuple(at(s, end, v=v) for end in cut.piece) for v in range(count)]
    owned = [x for v in range(count) for x in range(at(s, cut.own, v=v), pieces[v][1])]
    assert owned == list(range(lo, lo + width))
    assert all(lo <= a <= at(s, cut.own, v=v) and b <= lo + width for v, (a, b) in enumerate(pieces))
    if tail != "clip":
        assert {b - a for a, b in pieces} == {size}
    else:
        assert [a for a, _ in pieces] == list(range(lo, lo + width, size))


def test_a_size_that_divides_leaves_affine_ends() -> None:
    s = MATMUL.setting()
    cut = split(s, (Const(3), Const(43)), 8, "v", None, False)
    assert cut is not None
    assert [text_of(e) for e in cut.piece] == ["v * 8 + 3", "v * 8 + 11"]


@pytest.mark.feature("B06")
def test_symbolic_widths_are_clipped_and_counted() -> None:
    s = MATMUL.setting()
    cut = split(s, (Const(0), Var("M")), 8, "v", "shift", False)
    assert cut is not None
    assert text_of(cut.head.extent) == "(M + 7) // 8"
    assert [text_of(e) for e in cut.piece] == ["v * 8", "minimum(M, v * 8 + 8)"]


def test_counts_of_spread_loops_do_not_depend_on_other_loops() -> None:
    s = MATMUL.setting()
    outer = split(s, (Const(0), Const(50)), 32, "u", "clip", False)
    assert outer is not None
    serial = split(s, outer.piece, 8, "v", None, False)
    spread = split(s, outer.piece, 8, "w", None, True)
    assert serial is not None
    assert spread is not None
    assert [at(s, serial.head.extent, u=u) for u in range(2)] == [4, 3]
    assert spread.head.extent == Const(4)
    assert [at(s, spread.piece[1], u=1, w=w) - at(s, spread.piece[0], u=1, w=w) for w in range(4)] == [8, 8, 2, -6]


def test_one_piece_is_no_loop() -> None:
    s = MATMUL.setting()
    assert split(s, (parse_expr("2*M"), parse_expr("2*M + 5")), 5, "v", None, False) is None


@pytest.mark.parametrize("size", [1, 2, 3])
def test_an_interval_that_may_be_empty_has_a_piece_when_asked(size: int) -> None:
    s = MATMUL.setting()
    s.sizes.ranges["w"] = (Const(0), Const(6))
    for once in (False, True):
        cut = split(s, (Const(0), Var("w")), size, "v", None, False, once)
        assert cut is not None
        loop = cut.head.variable
        for width in range(7):
            count = at(s, cut.head.extent, w=width)
            assert count == max(-(-width // size), once)
            pieces = [tuple(at(s, end, w=width, **{loop: v}) for end in cut.piece) for v in range(count)]
            assert [x for lo, hi in pieces for x in range(lo, hi)] == list(range(width))
