"""Conditions of guards: equal to what they are derived from, and without the variables that do not matter."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilec.codegen.gpu.guards import below, between, depend
from tilec.ir.expr import Binary, Call, Const, Var
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.text import parse_expr

ALL = {"a": 3, "b": 5, "v": 8}


def value(expr, point):
    match expr:
        case Const(number):
            return number
        case Var(name):
            return point[name]
        case Call("minimum", args):
            return min(value(each, point) for each in args)
        case Binary(op, left, right):
            a, b = value(left, point), value(right, point)
            return {"+": a + b, "-": a - b, "*": a * b, "<": a < b, "<=": a <= b}[op]
    raise AssertionError(expr)


def ranges(counts):
    return KnownRanges({name: (Const(0), Const(count - 1)) for name, count in counts.items()})


def points(counts):
    return [dict(zip(counts, at, strict=True)) for at in product(*map(range, counts.values()))]


factors = st.sampled_from([-24, -16, -8, -3, -1, 0, 1, 2, 8, 12, 16])


@given(st.tuples(factors, factors, factors), st.integers(-40, 40), st.tuples(factors, factors), st.integers(-40, 40))
def test_guards_hold_where_the_point_lies_in_the_window(position, first, width, last):
    def sum_of(terms, constant):
        total = Const(constant)
        for name, factor in zip("abv", terms, strict=False):
            total = Binary("+", total, Binary("*", Var(name), Const(factor)))
        return total

    at, lo, hi = sum_of(position, first), Const(-16), sum_of(width, last)
    conditions, single = between(at, lo, hi, ranges(ALL)), below(at, hi, ranges(ALL))
    for point in points(ALL):
        inside = value(lo, point) <= value(at, point) < value(hi, point)
        assert all(value(each, point) for each in conditions) == inside
        assert value(single, point) == (value(at, point) < value(hi, point))


@pytest.mark.parametrize(
    ("at", "hi", "alike"),
    [
        ("8*a + v", "8*b", True),
        ("8*a + v", "minimum(16*a + 32, 24*b)", True),
        ("8*a + v + 16", "64", True),
        ("8*a + v + 1", "64", False),
        ("8*a + v", "minimum(12*a, 24*b)", False),
        ("4*a + v", "8*b", False),
        ("8*a + v", "8*b + 3", False),
    ],
)
def test_neighbours_that_windows_hold_together_have_one_guard(at, hi, alike):
    found = below(parse_expr(at), parse_expr(hi), ranges({"a": 9, "b": 9, "v": 8}))
    assert depend([found], "v") is not alike
