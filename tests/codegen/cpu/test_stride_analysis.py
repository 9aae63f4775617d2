from itertools import product

import pytest

from tilec.codegen.cpu.stride_analysis import displacement, form_of, period_of
from tilec.ir.evaluate import integer
from tilec.ir.expr import Const, Var, as_expr
from tilec.ir.text import parse_expr, text_of


def form(text: str, *dims: str):
    return form_of(parse_expr(text), dims)


def test_an_affine_offset():
    f = form("m * 64 + i * 8 + j + 3", "i", "j")
    assert (f.stride("i"), f.stride("j"), f.stride("k")) == (8, 1, 0)
    assert (text_of(f.base), f.constant, f.rest) == ("m * 64", 3, None)
    assert f.dims == {"i", "j"}


def test_what_enters_a_division_varies():
    f = form("(i + m) // 4 * 8 + j", "i", "j")
    assert f.stride("i") is None
    assert f.stride("j") == 1
    assert f.varying == {"i"}
    assert text_of(f.rest) == "(i + m) // 4 * 8"


def test_a_dimension_that_also_enters_a_division_has_no_stride():
    f = form("i + i % 4", "i")
    assert f.stride("i") is None
    assert f.strides == ()


@pytest.mark.parametrize(
    "offset",
    [
        "i*8 + j*2 + p*64 + 5",
        "i*3 + i // 2 + j",
        "i*6 + (i + j) % 4 + p",
        "(i*4 + p) // 3 * 5 - i*2 + j*7",
        "j - i*p*2 + 3",
    ],
)
def test_the_parts_of_a_form_sum_up_to_the_offset(offset: str) -> None:
    expr = parse_expr(offset)
    form = form_of(expr, ("i", "j"))
    for i, j, p in product(range(5), range(3), range(3)):
        at = {"i": i, "j": j, "p": p}
        strides = sum(integer(as_expr(stride), at) * at[dim] for dim, stride in form.strides)
        rest = 0 if form.rest is None else int(integer(form.rest, at))
        assert int(integer(form.base, at)) + form.constant + strides + rest == int(integer(expr, at))


def test_loaded_values_are_part_of_the_rest():
    f = form("I[s] * 8 + c", "s", "c")
    assert (f.stride("s"), f.stride("c")) == (None, 1)
    assert text_of(f.rest) == "I[s] * 8"
    assert f.base == Const(0)


def test_a_product_of_dimensions_has_no_stride():
    assert form("i * j * n", "i", "j").stride("i") is None
    assert form("i * j * n", "i").stride("i") == parse_expr("j * n")


def phases(text: str, *dims: str) -> list[tuple[str, int, int | None]] | None:
    """(base, constant, stride along the first dimension) at every position of the period."""
    period = period_of(parse_expr(text), dims, dims[0])
    return period and [(text_of(f.base), f.constant, f.stride(dims[0])) for f in period.forms]


def test_interleaved_channels_repeat():
    assert phases("p * 116 + c % 2 * 58 + c // 2", "c") == [("p * 116", 0, 1), ("p * 116", 58, 1)]


def test_doubled_pixels_repeat():
    assert phases("(h // 2) * 64 + w // 2", "w", "h") == [("0", 0, 1), ("0", 0, 1)]


def test_a_window_anywhere_repeats():
    assert phases("(c + p) // 2", "c") == [("p // 2", 0, 1), ("(p + 1) // 2", 0, 1)]


def test_other_divisions_do_not_repeat():
    assert phases("c // 3", "c") is None
    assert phases("I[c]", "c") is None


def test_strides_over_rows_of_open_sizes_are_expressions():
    f = form("b * n * m + i * n * 2 + i * n + j * 4 + k + 5", "b", "i", "j", "k")
    assert text_of(f.stride("b")) == "m * n"
    assert text_of(f.stride("i")) == "n * 3"
    assert (f.stride("j"), f.stride("k"), f.constant) == (4, 1, 5)
    assert (text_of(f.base), f.rest) == ("0", None)
    assert form("i * n + i // 2", "i").stride("i") is None
    assert form("i * j", "i", "j").stride("i") is None


def test_points_that_come_to_the_same_are_displaced_alike():
    f = form("h * n + r * n + w", "h", "r", "w")
    assert displacement(f, {"h": 1, "r": 2, "w": 4}) == displacement(f, {"h": 3, "w": 4})
    assert displacement(f, {"w": 4}).rows is None
    assert displacement(f, {"h": 1, "w": 4}).rows == Var("n")
