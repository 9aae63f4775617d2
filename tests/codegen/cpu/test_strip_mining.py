import pytest

from tilec.codegen.cpu.strip_mining import (
    Strip,
    common_divisor,
    even_width,
    known_multiple,
    neighbours,
    squares,
    strip_mine,
    strip_mine_open,
)
from tilec.ir.evaluate import integer
from tilec.ir.expr import Call, Const, Var, constant_value
from tilec.ir.text import parse_expr, text_of


def numbers(runs: tuple[Strip, ...]) -> list[tuple[int | None, int | None, int]]:
    return [(constant_value(run.start), constant_value(run.trips), run.width) for run in runs]


def test_steps_and_their_rest():
    assert numbers(strip_mine(Const(100), 14)) == [(0, 7, 14), (98, 1, 2)]
    assert numbers(strip_mine(Const(28), 14)) == [(0, 2, 14)]
    assert numbers(strip_mine(Const(5), 14)) == [(0, 1, 5)]


def test_a_dynamic_extent_ends_in_single_steps():
    first, rest = strip_mine(parse_expr("n"), 16)
    assert (text_of(first.trips), first.width) == ("n // 16", 16)
    assert (text_of(rest.start), text_of(rest.trips), rest.width) == ("n // 16 * 16", "n - n // 16 * 16", 1)


def test_a_known_multiple_has_no_rest():
    assert len(strip_mine(parse_expr("n * 64"), 16)) == 1
    assert known_multiple(parse_expr("n * 64 + 32"), 16, 4) == 32
    assert known_multiple(parse_expr("n + 32"), 16, 4) == 16


def test_negative_extents_run_no_iteration():
    """The window of an empty tile: nothing may run, not even the rest."""
    first, rest = strip_mine(parse_expr("1 - n"), 8)
    assert text_of(first.trips).startswith("maximum(")
    values = {"n": 5}
    trips = eval(text_of(first.trips), {"maximum": max}, values)
    assert trips == 0
    assert eval(text_of(rest.trips), {"maximum": max}, values) <= 0


def test_even_blocks():
    assert [even_width(9, 4), even_width(8, 4), even_width(3, 4), even_width(0, 4)] == [3, 4, 3, 1]


def test_squares_end_in_single_steps():
    assert numbers(squares(Const(37), 16)) == [(0, 2, 16), (32, 5, 1)]


def test_neighbours_are_stretches_in_powers_of_two():
    assert neighbours([3, 4, 5, 6, 7, 8, 9], 16) == ((0, 4), (4, 2), (6, 1))
    assert neighbours([0, 1, 64, 65, 66, 67], 16) == ((0, 2), (2, 4))
    assert neighbours(range(40), 16) == ((0, 16), (16, 16), (32, 8))
    assert neighbours([0, 2, 4], 16) == ((0, 1), (1, 1), (2, 1))
    assert neighbours([], 16) == ()


@pytest.mark.parametrize(("width", "lanes"), [(1, 1), (2, 2), (6, 6), (7, 7), (8, 8), (24, 24), (64, 16), (48, 8)])
def test_an_open_extent_is_covered_once_at_every_size(width: int, lanes: int):
    strips = strip_mine_open(Var("n"), width, lanes)
    assert [strip.width for strip in strips] == sorted({strip.width for strip in strips}, reverse=True)
    for n in range(150):
        covered = []
        for strip in strips:
            start, trips = integer(strip.start, {"n": n}), integer(strip.trips, {"n": n})
            assert trips <= 1 or strip.width in (width, lanes)
            covered += range(start, start + trips * strip.width)
        assert covered == list(range(n))


def test_an_open_extent_that_is_negative_runs_nothing():
    for strip in strip_mine_open(parse_expr("1 - n"), 8, 8):
        assert integer(strip.trips, {"n": 5}) == 0


def test_a_rest_without_a_wide_body():
    assert [strip.width for strip in strip_mine_open(parse_expr("n % 8"), 4, 4, 7)] == [4, 2, 1]
    assert strip_mine_open(parse_expr("n * 16"), 16, 16, 64) == (Strip(Const(0), Var("n"), 16, 4),)


PIECE = parse_expr("minimum(c * 32 + 31, 103) - maximum(maximum(c * 32, 32), 80) + 1")
"""Channels of one operand of a concatenation that a task of 32 computes: 0, 16 or 8 of 24."""


def test_a_common_divisor_holds_for_every_limit():
    assert common_divisor(PIECE) == 8
    assert common_divisor(parse_expr("minimum(n * 4, 6)")) == 2
    assert common_divisor(parse_expr("n * 6 + 9")) == 3
    assert common_divisor(Const(0)) == 0
    assert common_divisor(parse_expr("n // 2")) == 1
    deep = Var("n")
    for size in range(8, 80, 8):
        deep = Call("minimum", (deep, Const(size)))
    assert common_divisor(deep) == 1


def test_a_rest_has_no_pieces_that_a_common_divisor_rules_out():
    strips = strip_mine_open(PIECE, 16, 16)
    assert [strip.width for strip in strips] == [16, 8]
    for c in range(4):
        covered = []
        for strip in strips:
            start, trips = integer(strip.start, {"c": c}), integer(strip.trips, {"c": c})
            covered += range(start, start + trips * strip.width)
        assert covered == list(range((0, 0, 16, 8)[c]))
    assert [strip.width for strip in strip_mine_open(parse_expr("n * 12"), 8, 8)] == [8, 4]
    assert [strip.width for strip in strip_mine_open(parse_expr("n * 8"), 24, 24)] == [24, 16, 8]
