"""Bounds and comparisons of sizes against their values at all loop positions."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lower.cases import evaluated
from tilec.ir.expr import Binary, Call, Const, Expr, Var, substitute
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.text import parse_expr, text_of
from tilec.lower.symbolic_bounds import SymbolicBounds

COUNTS = {"i": 4, "j": 3}


def sizes(**symbols: int) -> SymbolicBounds:
    ranges = {name: (Const(0), Const(n - 1)) for name, n in COUNTS.items()}
    return SymbolicBounds(KnownRanges(ranges | {name: (Const(low), Var(name)) for name, low in symbols.items()}))


def leaves() -> st.SearchStrategy[Expr]:
    return st.one_of(st.sampled_from([Var("i"), Var("j")]), st.integers(-5, 9).map(Const))


def grown(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    binary = st.builds(Binary, st.sampled_from(["+", "-"]), inner, inner)
    scaled = st.builds(Binary, st.just("*"), inner, st.integers(-3, 4).map(Const))
    divided = st.builds(Binary, st.sampled_from(["//", "%"]), inner, st.integers(1, 5).map(Const))
    extreme = st.builds(lambda fn, a, b: Call(fn, (a, b)), st.sampled_from(["minimum", "maximum"]), inner, inner)
    chosen = st.builds(
        lambda a, b, c: Call("where", (Binary("==", a, Const(1)), b, c)), st.sampled_from([Var("i")]), inner, inner
    )
    return st.one_of(binary, scaled, divided, extreme, chosen)


EXPRESSIONS = st.recursive(leaves(), grown, max_leaves=7)


def values(expr: Expr) -> list[int]:
    points = itertools.product(*(range(n) for n in COUNTS.values()))
    return [evaluated(substitute(expr, dict(zip(COUNTS, map(Const, p), strict=True)))) for p in points]


@given(EXPRESSIONS, EXPRESSIONS)
def test_values_decide(a: Expr, b: Expr) -> None:
    s = sizes()
    assert s.largest(a) == Const(max(values(a)))
    assert s.smallest(a) == min(values(a))
    assert s.at_most(a, b) == all(x <= y for x, y in zip(values(a), values(b), strict=True))
    low, high = s.minimum(a, b), s.maximum(a, b)
    assert values(low) == [min(p) for p in zip(values(a), values(b), strict=True)]
    assert values(high) == [max(p) for p in zip(values(a), values(b), strict=True)]


@given(EXPRESSIONS, EXPRESSIONS)
def test_positions_stand_for_their_expressions(a: Expr, b: Expr) -> None:
    s = sizes()
    named = s.add(s.scale(s.position(s.size(a)), 2), b)
    assert values(s.resolve(named)) == [2 * x + y for x, y in zip(values(a), values(b), strict=True)]


@given(EXPRESSIONS, st.integers(1, 30))
def test_bounds_with_symbols_are_upper_bounds(a: Expr, n: int) -> None:
    s = sizes(N=1)
    expr = Call("minimum", (Binary("+", a, Var("N")), Binary("*", Var("N"), Const(2))))
    bound = s.largest(expr)
    at_n = {"N": Const(n)}
    assert max(values(substitute(expr, at_n))) <= evaluated(substitute(bound, at_n))


def test_of_limits_that_are_a_number_apart_the_smaller_one_is_taken() -> None:
    """Windows of a cumulative sum: a limit far above their tensor asked for 27 GiB."""
    ranges = {"i": (Const(0), parse_expr("(N + 63)//64 - 1"))}
    start = "maximum(maximum(i*64 - 983040, 0) - 61440, 0)"
    for number in (3840, 240, 16):
        start = f"maximum({start} - {number}, 0)"
    bounds = SymbolicBounds(KnownRanges(ranges), frozenset({"N"}))
    assert text_of(bounds.largest(parse_expr(f"minimum(N, i*64 + 64) - 1 - {start}"))) == "N - 1"


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("minimum(i*8 + 8, N) - i*8", "8"),
        ("minimum(i*8 + 10, N) - maximum(i*8 - 1, 0)", "11"),
        ("(i*6 + 5)//N - (i*6)//N + 1", "4 // N + 2"),
        ("(minimum(i*25 + 25, N) - i*25 + 13)//14", "2"),
        ("minimum(minimum(i*6, N - 6) + 5, 9999) - minimum(minimum(i*6, N - 6), 9999) + 1", "6"),
        ("maximum(i*6 + 5, N) - maximum(i*6 - 1, N)", "6"),
        ("i*N + 3", "N * 3 + 3"),
        ("minimum(i*8 + 8, N) - minimum(i*8, N - 1)", "8"),
        ("minimum(minimum(i*8 + 7, N - 1) + 1, N) - maximum(minimum(i*8, N - 1), 0)", "8"),
    ],
)
def test_sharp_bounds_with_symbols(text: str, bound: str) -> None:
    assert text_of(sizes(N=1).largest(parse_expr(text))) == bound


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("minimum(N, 4096)", "4096"),
        ("minimum(N, i + 5000) - 1", "minimum(5002, N - 1)"),
        ("minimum(N + 1, 2147483648) // 2 + i", "1073741827"),
    ],
)
def test_a_large_integer_limits_only_what_is_larger(text: str, bound: str) -> None:
    """A window of strides that are far longer than its axis takes no more than the axis."""
    assert text_of(sizes(N=1).largest(parse_expr(text))) == bound


def test_what_is_certain_with_symbols() -> None:
    s = sizes(N=32)
    assert s.at_most(parse_expr("i*8 + 8"), Var("N"))
    assert not s.at_most(parse_expr("i*8 + 9"), Var("N"))
    assert s.at_most(parse_expr("minimum(i*99, N - 8) + 8"), Var("N"))
    assert s.maximum(parse_expr("i*8"), Var("N")) == Var("N")


def test_windows_between_guards_are_as_wide_as_their_tile() -> None:
    """The start of the last tile is moved back to fit the tensor: what follows from it is seen by its name."""
    s = SymbolicBounds(KnownRanges({"N": (Const(7), Var("N")), "i": (Const(0), parse_expr("(N + 6)//7 - 1"))}))
    start = s.position(parse_expr("minimum(i*7, N - 7)"))
    lo, hi = s.maximum(s.subtract(start, Const(1)), Const(0)), s.minimum(s.add(start, Const(8)), Var("N"))
    assert s.largest(s.subtract(hi, lo)) == Const(9)


OPEN_EXPRESSIONS = st.recursive(st.one_of(leaves(), st.just(Var("n"))), grown, max_leaves=7)


@given(OPEN_EXPRESSIONS)
def test_a_limit_in_symbols_holds_at_all_positions(expr: Expr) -> None:
    ranges = {"n": (Const(1), Const(9)), "i": (Const(0), parse_expr("n - 1")), "j": (Const(0), Const(2))}
    found = SymbolicBounds(KnownRanges(ranges), frozenset({"n"})).in_symbols(expr)
    for n in (1, 2, 5, 9):
        at = substitute(expr, {"n": Const(n)})
        points = itertools.product(range(n), range(3))
        most = max(evaluated(substitute(at, {"i": Const(i), "j": Const(j)})) for i, j in points)
        assert evaluated(substitute(found, {"n": Const(n)})) >= most


def test_limits_in_symbols_grow_with_them() -> None:
    ranges = {"n": (Const(1), Const(10**9)), "i": (Const(0), parse_expr("(n + 31) // 32 - 1"))}
    sizes = SymbolicBounds(KnownRanges(ranges), frozenset({"n"}))
    for text, most in (("n", 100), ("minimum(n, i * 32 + 32)", 100), ("i * 2 + 2", 8)):
        found = sizes.in_symbols(parse_expr(text))
        assert evaluated(substitute(found, {"n": Const(100)})) == most, text
