"""Symbolic shapes: reshapes, and the index algebra of reshapes."""

from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilec.importer.shapes import (
    ShapeError,
    require_same,
    reshape_index,
    same,
    shape_text,
    solve_reshape,
)
from tilec.ir.evaluate import integer
from tilec.ir.expr import Call, Const, Expr, Var
from tilec.ir.text import parse_expr, text_of


def shape(text: str) -> tuple[Expr, ...]:
    call = parse_expr(f"shape({text})")
    assert isinstance(call, Call)
    return call.args


@pytest.mark.feature("B06")
def test_equality_of_extents() -> None:
    assert same(*shape("n * 2, n + n")) is True
    assert same(*shape("n + 1, n")) is False
    assert same(*shape("n, 4")) is None
    require_same(*shape("n, n"), "x")
    with pytest.raises(ShapeError, match="what: n and n \\+ 2 differ"):
        require_same(*shape("n, n + 2"), "what")


@pytest.mark.parametrize(
    ("old", "target", "expected"),
    [
        ("2, 3, 4", "-1, 4", "[6, 4]"),
        ("batch, seq, 768", "0, 0, 12, -1", "[batch, seq, 12, 64]"),
        ("batch, seq, 768", "batch, -1, 768", "[batch, seq, 768]"),
        ("batch, past + 1, 64", "batch, -1", "[batch, past * 64 + 64]"),
        ("batch, past + 1, 64", "-1, 64", "[batch + batch * past, 64]"),
        ("batch, past + 1, 4, 16", "batch, past + 1, -1", "[batch, past + 1, 64]"),
        ("3, 0", "0, -1", "[3, 0]"),
        ("0, 3", "0, 0, -1", "[0, 3, 1]"),
        ("0, 3, 32", "0, 0, 4, -1", "[0, 3, 4, 8]"),
        ("", "1, 1", "[1, 1]"),
    ],
)
def test_reshape(old: str, target: str, expected: str) -> None:
    assert shape_text(solve_reshape(shape(old), shape(target), zero_copies=True)) == expected


@pytest.mark.parametrize(
    ("old", "target", "message"),
    [
        ("2, 3", "-1, -1", "more than one extent is -1"),
        ("2, 3", "-2, 3", "a negative extent: -2"),
        ("2", "2, 0", "extent 0 at dimension 1 copies nothing"),
        ("2, 3", "7", "6 and 7 differ"),
    ],
)
def test_reshape_that_fails(old: str, target: str, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        solve_reshape(shape(old), shape(target), zero_copies=True)


def test_zero_is_an_extent_when_it_copies_nothing() -> None:
    assert solve_reshape(shape("0, 3"), shape("3, 0"), zero_copies=False) == (Const(3), Const(0))
    assert solve_reshape(shape("0, n"), shape("0"), zero_copies=True) == (Const(0),)
    with pytest.raises(ShapeError, match="not determined by an empty tensor"):
        solve_reshape(shape("0, 3"), shape("0, -1"), zero_copies=False)


def _factors(size: int, cuts: list[int]) -> list[int]:
    result = []
    for cut in cuts:
        factor = next((f for f in range(cut, 0, -1) if size % f == 0), 1)
        result.append(factor)
        size //= factor
    return [*result, size]


@given(
    st.sampled_from([1, 6, 8, 12, 24, 36]),
    st.lists(st.integers(1, 4), max_size=3),
    st.lists(st.integers(1, 4), max_size=3),
)
@settings(max_examples=60, deadline=None)
def test_reshape_index_moves_every_element_to_its_place(size: int, first: list[int], second: list[int]) -> None:
    old, new = _factors(size, first), _factors(size, second)
    array = np.arange(size).reshape(old)
    index = reshape_index([Const(e) for e in old], [Const(e) for e in new], [Var(f"i{d}") for d in range(len(new))])
    moved = np.empty(new, array.dtype)
    for place in product(*(range(e) for e in new)):
        at = {f"i{d}": i for d, i in enumerate(place)}
        moved[place] = array[tuple(int(integer(i, at)) for i in index)]
    np.testing.assert_array_equal(moved, array.reshape(new))
    assert prod(old) == prod(new)


def test_equal_parts_of_a_reshape_keep_their_own_index() -> None:
    index = reshape_index(shape("batch, seq, 12, 64"), shape("batch, seq, 768"), [Var("b"), Var("s"), Var("c")])
    values = {"batch": 3, "seq": 5, "b": 2, "s": 4, "c": 130}
    assert [int(integer(i, values)) for i in index] == [2, 4, 2, 2]
    assert all("b" not in text_of(i).replace("batch", "") for i in index[1:])
