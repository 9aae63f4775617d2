"""The simplifier never changes a value, and it undoes what reshapes do."""

import operator
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilec.ir.algebra import bounds_of, equal, linear_form, simplify, simplify_scalar
from tilec.ir.expr import Binary, Call, Const, Expr, Var
from tilec.ir.known_ranges import KnownRanges, shared_ranges
from tilec.ir.text import parse_expr, text_of

EXTENTS = {"i": 5, "j": 4, "k": 7}
RANGES = {name: (Const(0), Const(n - 1)) for name, n in EXTENTS.items()}


def value(expr: Expr, point: dict[str, int]) -> int:
    match expr:
        case Var(name):
            return point[name]
        case Const(number):
            return int(number)
        case Binary(op, left, right):
            a, b = value(left, point), value(right, point)
            return {"+": a + b, "-": a - b, "*": a * b}[op] if op in "+-*" else (a // b if op == "//" else a % b)
        case Call("minimum", (a_, b_)):
            return min(value(a_, point), value(b_, point))
        case Call("maximum", (a_, b_)):
            return max(value(a_, point), value(b_, point))
        case Call("where", (condition, yes, no)):
            return value(yes if holds(condition, point) else no, point)
    raise AssertionError(expr)


def holds(condition: Expr, point: dict[str, int]) -> bool:
    match condition:
        case Const(known):
            return bool(known)
        case Binary("and", left, right):
            return holds(left, point) and holds(right, point)
        case Binary("or", left, right):
            return holds(left, point) or holds(right, point)
        case Binary(op, left, right):
            return bool(COMPARE[op](value(left, point), value(right, point)))
        case Call("not", (inside,)):
            return not holds(inside, point)
    raise AssertionError(condition)


COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq}


def _conditions(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    compared = st.builds(Binary, st.sampled_from(list(COMPARE)), inner, inner)
    negated = st.builds(lambda c: Call("not", (c,)), compared)
    return st.one_of(
        compared, negated, st.builds(Binary, st.sampled_from(["and", "or"]), compared, st.booleans().map(Const))
    )


def _grow(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    divisor = st.one_of(st.integers(1, 12), st.integers(-12, -1)).map(Const)
    return st.one_of(
        st.builds(lambda c, a, b: Call("where", (c, a, b)), _conditions(inner), inner, inner),
        st.builds(Binary, st.sampled_from("+-"), inner, inner),
        st.builds(Binary, st.just("*"), inner, st.integers(-4, 8).map(Const)),
        st.builds(Binary, st.sampled_from(["//", "%"]), inner, divisor),
        st.builds(lambda f, a, b: Call(f, (a, b)), st.sampled_from(["minimum", "maximum"]), inner, inner),
    )


EXPRESSIONS = st.recursive(
    st.one_of(st.sampled_from(sorted(EXTENTS)).map(Var), st.integers(-9, 9).map(Const)), _grow, max_leaves=8
)
POINTS = st.fixed_dictionaries({name: st.integers(0, n - 1) for name, n in EXTENTS.items()})


@settings(max_examples=400)
@given(EXPRESSIONS, st.lists(POINTS, min_size=4, max_size=4))
def test_simplify_keeps_the_value(expr: Expr, points: list[dict[str, int]]) -> None:
    plain, ranged = simplify(expr), simplify(expr, RANGES)
    low, high = bounds_of(expr, RANGES)
    for point in points:
        exact = value(expr, point)
        assert value(plain, point) == exact
        assert value(ranged, point) == exact
        assert low is None or low <= exact
        assert high is None or exact <= high


@given(EXPRESSIONS)
def test_simplify_is_idempotent_without_ranges(expr: Expr) -> None:
    once = simplify(expr)
    assert equal(once, expr)
    assert text_of(simplify(once)) == text_of(once)


@pytest.mark.feature("B06")
@pytest.mark.parametrize(
    ("text", "ranges", "expected"),
    [
        ("(h*64 + d)//64", {"h": "12", "d": "64"}, "h"),
        ("(h*64 + d)%64", {"h": "12", "d": "64"}, "d"),
        ("c//4*4 + c%4", {"c": "12"}, "c"),
        ("(b*seq + s)//seq", {"b": "batch", "s": "seq"}, "b"),
        ("(b*seq + s)%seq", {"b": "batch", "s": "seq"}, "s"),
        ("(x%24)//6", {"x": "48"}, "x // 6 % 4"),
        ("x//3//4", {"x": "100"}, "x // 12"),
        ("((((h + 1)//2 + 1)//2 + 1)//2 + 1)//2", {}, "(h + 15) // 16"),
        ("((h - 1)//4 - 6)//8", {}, "(h + 7) // 32 - 1"),
        ("(n0*32 + n1)//32", {"n0": "9", "n1": "32"}, "n0"),
        ("(i*3 + j)//6", {"i": "8", "j": "3"}, "i // 2"),
        ("(i*3 + j)%6", {"i": "8", "j": "3"}, "j + i % 2 * 3"),
        ("minimum(t*8, 40) + 8 - t*8 - 8", {"t": "6"}, "0"),
        ("batch*seq*12 - seq*12*batch", {}, "0"),
    ],
)
def test_forms(text: str, ranges: dict[str, str], expected: str) -> None:
    spans = {name: (Const(0), simplify(parse_expr(f"{extent} - 1"))) for name, extent in ranges.items()}
    assert text_of(simplify(parse_expr(text), spans)) == expected


def test_guards_that_always_hold_disappear() -> None:
    inside = parse_expr("where(0 <= h and h < 9, X[h + 1 - 1], 0.0)")
    assert simplify_scalar(inside, {"h": (Const(0), Const(8))}) == parse_expr("X[h]")
    padded = parse_expr("where(0 <= h - 1, X[h - 1], 0.0)")
    assert simplify_scalar(padded, {"h": (Const(0), Const(8))}) == padded


@pytest.mark.parametrize("divisor", range(2, 13))
def test_quotients_and_remainders_keep_their_value_up_to_the_ends_of_ranges(divisor: int) -> None:
    """(stride * i + j + offset) // divisor, where the range of j ends below, at and above every stride."""
    for stride, extent, offset in product((1, 2, 3, 4, 6, 8), range(1, 10), (-1, 0, 1)):
        ranges = {"i": (Const(0), Const(3)), "j": (Const(0), Const(extent - 1))}
        index = f"({stride}*i + j + {offset})"
        quotient, rest = (simplify(parse_expr(f"{index} {op} {divisor}"), ranges) for op in ("//", "%"))
        for i, j in product(range(4), range(extent)):
            exact = divmod(stride * i + j + offset, divisor)
            assert (value(quotient, {"i": i, "j": j}), value(rest, {"i": i, "j": j})) == exact, (index, extent)


COMPARISONS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


@pytest.mark.parametrize("op", COMPARISONS)
def test_a_comparison_is_decided_exactly_where_all_values_agree(op: str) -> None:
    for low, high, limit in product(range(4), range(4), range(-1, 5)):
        if low > high:
            continue
        found = simplify_scalar(parse_expr(f"i {op} {limit}"), {"i": (Const(low), Const(high))})
        holds = {COMPARISONS[op](i, limit) for i in range(low, high + 1)}
        assert (found.value if isinstance(found, Const) else None) == (holds.pop() if len(holds) == 1 else None)


def test_linear_form_gives_strides() -> None:
    atoms, constant = linear_form(parse_expr("(i*3 + j)*8 + k//2 + 5"))
    assert {text_of(a): c for a, c in atoms.items()} == {"i": 24, "j": 8, "k // 2": 1}
    assert constant == 5


@pytest.mark.feature("B06")
@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("(b*s - 1) // s", "b - 1"),
        ("(b*s - 1) % s", "s - 1"),
        ("0 // s", "0"),
        ("(j - 4) // 4", "-1"),
        ("(j - 4) % 4", "j"),
        ("j // -2", "j * -1 // 2"),
        ("j % -2", "j * -1 % 2 * -1"),
    ],
)
def test_remainders_below_zero_and_below_a_size(text: str, plain: str) -> None:
    """A divisor is at least 1, whatever the symbols."""
    assert text_of(simplify(parse_expr(text), RANGES)) == plain


def test_known_ranges_give_the_same_answers() -> None:
    known = KnownRanges(RANGES)
    for text in (
        "minimum(maximum(minimum(i*3, 4)*2 - 1, 0), 6) - i",
        "(i*4 + j)//4 + (i*4 + j)%4",
        "maximum(i, 9) - k",
    ):
        expr = parse_expr(text)
        for _ in range(2):
            assert simplify(expr, known) == simplify(expr, RANGES)
            assert bounds_of(expr, known) == bounds_of(expr, RANGES)


def test_a_range_may_end_at_an_extremum_of_many() -> None:
    """Each level of nesting asks for both of its sides more than once."""
    end: Expr = Var("a0")
    for n in range(1, 40):
        end = Call("minimum" if n % 2 else "maximum", (end, Binary("-", Var(f"a{n}"), Const(n))))
    low, high = bounds_of(Binary("+", Var("i"), Const(1)), {"i": (Const(0), end)})
    assert (low, high) == (1, None)


@pytest.mark.feature("B06")
@pytest.mark.parametrize(
    ("text", "ends", "low", "high"),
    [
        ("seq - seq//16*16", {}, 0, 15),
        ("seq - seq//16*16", {"seq": ("64", "512")}, 0, 15),
        ("seq - 1 - i*16 - j", {"i": ("0", "seq//16 - 1"), "j": ("0", "15")}, 0, None),
        ("seq - 1 - i*16", {"i": ("0", "(seq + 15)//16 - 1"), "seq": ("1", "512")}, 0, 511),
        ("seq - 16 - i*16", {"i": ("0", "(seq + 15)//16 - 2"), "seq": ("1", "512")}, 1, 496),
        ("seq//8 - seq//16*2", {}, 0, 1),
        ("seq//8*8 - seq//16*16 + 3", {}, 3, 11),
        ("n*seq - n*i - n", {"i": ("0", "seq - 1"), "n": ("1", "n")}, 0, None),
        ("batch*seq - 64*batch", {"batch": ("1", "batch"), "seq": ("64", "seq")}, 0, None),
        ("12*seq - 12*(seq//8*8)", {"seq": ("0", "seq")}, 0, 84),
    ],
)
def test_limits_of_sizes_in_tiles(text: str, ends: dict[str, tuple[str, str]], low: int, high: int | None) -> None:
    """Loops reach their ends before symbols do, and a quotient is worth what it divides."""
    spans = {name: (parse_expr(first), parse_expr(last)) for name, (first, last) in ends.items()}
    assert bounds_of(parse_expr(text), spans) == (low, high)


def _sizes() -> st.SearchStrategy[Expr]:
    """Expressions over a symbol, a loop over its tiles and one inside of a tile."""
    leaf = st.one_of(st.sampled_from(["seq", "t", "w"]).map(Var), st.integers(-9, 20).map(Const))
    return st.recursive(leaf, _grow, max_leaves=7)


@settings(max_examples=300)
@given(_sizes(), st.integers(1, 9), st.integers(0, 12), st.integers(0, 30), st.booleans())
def test_limits_over_symbolic_loops_hold_at_every_point(
    expr: Expr, tile: int, low: int, more: int, closed: bool
) -> None:
    seq = Var("seq")
    tiles = Binary("//", Binary("+", seq, Const(tile - 1)), Const(tile))
    rest = Binary("-", seq, Binary("*", Var("t"), Const(tile)))
    spans = {
        "seq": (Const(low), Const(low + more) if closed else seq),
        "t": (Const(0), Binary("-", tiles, Const(1))),
        "w": (Const(0), Binary("-", Call("minimum", (Const(tile), rest)), Const(1))),
    }
    least, most = bounds_of(expr, spans)
    short = simplify(expr, spans)
    for size in range(max(low, 1), low + more + 1):
        for t in range(-(-size // tile)):
            for w in range(min(tile, size - t * tile)):
                exact = value(expr, {"seq": size, "t": t, "w": w})
                assert value(short, {"seq": size, "t": t, "w": w}) == exact
                assert least is None or least <= exact
                assert most is None or exact <= most


def test_what_is_found_in_ranges_is_kept_for_equal_ones() -> None:
    """Passes extend the ranges of a nest by the same loops again and again."""
    ranges = shared_ranges({"i": (Const(0), Const(4)), "j": (Const(0), Var("n"))})
    again = shared_ranges({"j": (Const(0), Var("n")), "i": (Const(0), Const(4))})
    assert bounds_of(parse_expr("i + j + (i * 3 + j) // 2"), ranges)[0] == 0
    assert again is ranges
    assert again.limits
    assert shared_ranges({"i": (Const(0), Const(4))}) is not ranges


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("x[where(0 < 1, i, n)]", "x[i]"),
        ("x[where(where(0 < 1, i, n) < 0, i + n, i)]", "x[i]"),
        ("x[maximum(minimum(where(not i < 0, i, i + n), n - 1), 0)]", "x[maximum(minimum(i, n - 1), 0)]"),
        ("x[where(y[i] < 0, y[i] + where(n < 0, i, n), y[i])]", "x[where(y[i] < 0, y[i] + n, y[i])]"),
        ("x[y[where(i < 9, 0, i)]]", "x[y[0]]"),
        ("x[where(n == 1, 1, n)]", "x[n]"),
        ("x[where(i == n, n, i)]", "x[i]"),
        ("x[where(i == 1, n, i)]", "x[where(i == 1, n, i)]"),
        ("where(x[i] < 0.0 and i < 0, x[i], y[i])", "y[i]"),
        ("where(i < n, x[i], x[i])", "x[i]"),
        ("x[where(i < n, i, n) + 1]", "x[where(i < n, i, n) + 1]"),
    ],
)
def test_choices_that_ranges_decide_disappear_wherever_they_stand(text: str, plain: str) -> None:
    assert text_of(simplify_scalar(parse_expr(text), {"i": (Const(0), Const(4))})) == plain


def test_a_choice_is_within_what_it_chooses_from() -> None:
    assert bounds_of(parse_expr("where(n < m, i, 7 - i)"), {"i": (Const(0), Const(4))}) == (0, 7)
    assert bounds_of(parse_expr("where(n < m, i, m)"), {"i": (Const(0), Const(4))}) == (0, None)


def test_a_divisor_is_at_least_one_where_its_range_begins_at_zero() -> None:
    ranges = {"m": (Const(0), Const(128))}
    assert simplify(parse_expr("(2 * m - 1) // m"), ranges) == Const(1)
    assert simplify(parse_expr("-1 // m"), ranges) == Const(-1)
    assert simplify(parse_expr("0 // m"), ranges) == Const(0)


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("q // k", (0, None)),
        ("i // k", (0, 4)),
        ("q % m", (0, None)),
        ("q % (j + 1)", (0, 3)),
        ("i % (q // k)", (0, 4)),
        ("(i - 1) // k", (None, None)),
    ],
)
def test_a_quotient_by_a_size_has_limits(text: str, limits: tuple[int | None, int | None]) -> None:
    """0 where the size is 0."""
    assert bounds_of(parse_expr(text), RANGES) == limits
