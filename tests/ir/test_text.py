"""Text and dataclasses are two forms of one expression."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilec.ir.expr import Access, Binary, Call, Const, Expr, Reduce, TensorExpr, Var
from tilec.ir.text import parse_expr, parse_tensor, tensor_text, text_of

NAMES = st.sampled_from(["i", "j", "k", "seq", "batch"])
LEAVES: st.SearchStrategy[Expr] = st.one_of(
    NAMES.map(Var),
    st.integers(-9, 9).map(Const),
    st.floats(allow_nan=False, width=32).map(Const),
    st.just(Const(float("nan"))),
    st.booleans().map(Const),
)


def _grow(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    operators = st.sampled_from(["+", "-", "*", "/", "//", "%", "<", "<=", ">", ">=", "==", "!="])
    return st.one_of(
        st.builds(Binary, operators, inner, inner),
        st.tuples(inner, inner, inner).map(lambda a: Call("where", a)),
        st.tuples(inner).map(lambda a: Call("exp", a)),
        st.builds(Access, st.sampled_from(["A", "B"]), st.lists(inner, max_size=3).map(tuple)),
    )


@given(st.recursive(LEAVES, _grow, max_leaves=12))
def test_round_trip(expr: Expr) -> None:
    once = parse_expr(text_of(expr))
    assert parse_expr(text_of(once)) == once
    assert text_of(once) == text_of(expr)


@pytest.mark.feature("W01")
def test_a_strided_padded_convolution() -> None:
    text = "Y[o, h] = sum(c, r, where(0 <= h * 2 + r - 1 and h * 2 + r - 1 < 9, X[c, h * 2 + r - 1], 0.0) * W[o, c, r])"
    expr = parse_tensor(text, {"o": 4, "h": 5, "c": 3, "r": 3})
    assert expr.spatial == ("o", "h")
    assert expr.reduce == ("c", "r")
    assert expr.reducer == "sum"
    assert expr.shape == (Const(4), Const(5))
    assert tensor_text(expr) == text


def test_maximum_is_a_function_and_max_a_reduction() -> None:
    assert parse_expr("maximum(a, b)") == Call("maximum", (Var("a"), Var("b")))
    assert parse_expr("max(a, X[a])") == Reduce("max", ("a",), Access("X", (Var("a"),)))


def test_scalars_specials_and_signs() -> None:
    assert parse_expr("X[()]") == Access("X", ())
    assert text_of(Access("X", ())) == "X[()]"
    assert text_of(Const(float("-inf"))) == "-inf"
    assert text_of(parse_expr("-0.0")) == "-0.0"
    assert parse_expr("-x") == Call("neg", (Var("x"),))
    assert parse_expr("0 <= i < n") == parse_expr("0 <= i and i < n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("C[m] = A[m", "never closed"),
        ("C[m] + 1", "not an assignment"),
        ("C[m + 1] = A[m]", "left side"),
        ("C[m] = lambda: 3", "not part of the language"),
        ("C[m] = __import__('os')", "not part of the language"),
        ("C[m] = sum(A[m])", "not part of the language"),
        ("C[m] = A[z]; D[m] = 1", "not an assignment"),
        ("C[q] = A[q]", "no extent for iterator q"),
    ],
)
def test_what_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_tensor(text, {"m": 3, "z": 3})


def test_tensor_expressions_print_their_iterators_in_order() -> None:
    expr = TensorExpr("T", ("b", "a"), (), (Const(2), Const(3)), Access("X", (Var("a"), Var("b"))))
    assert tensor_text(expr) == "T[b, a] = X[a, b]"
