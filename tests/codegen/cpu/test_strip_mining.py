from tilec.codegen.cpu.strip_mining import (
    Strip,
    even_width,
    known_multiple,
    neighbours,
    squares,
    strip_mine,
)
from tilec.ir.expr import Const, constant_value
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
