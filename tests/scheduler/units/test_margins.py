"""Margins against all points of small domains."""

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from tilec.ir.expr import Const
from tilec.ir.text import parse_expr
from tilec.scheduler.units.margins import Margins, margins_of


@settings(max_examples=80, deadline=None)
@given(
    st.integers(-3, 3).filter(bool),
    st.integers(-2, 2),
    st.integers(-4, 4),
    st.integers(1, 5),
    st.integers(1, 4),
    st.integers(1, 6),
)
def test_every_index_lies_in_the_margins(a: int, b: int, c: int, p: int, r: int, extent: int) -> None:
    """Steps of both signs; margins begin and end at an index of some point, and no index between is left out."""
    text = f"p * {a} + r * {b} + {c}"
    condition = parse_expr(f"{text} >= 0 and {text} < {extent}")
    domain = {"p": Const(p), "r": Const(r)}
    found = margins_of(condition, (parse_expr(text), parse_expr("0")), (Const(extent), Const(7)), domain, 1)
    seen = {a * i + b * j + c for i, j in product(range(p), range(r))}
    count = max(seen) - min(seen) + 1
    assert found == (Margins((min(seen), 0), (Const(count), Const(7))) if len(seen) == count else None)


def test_empty_results_have_margins_of_no_less_than_nothing() -> None:
    """A window as long as its step; a shorter one leaves elements out, and would have -1 of them."""
    for window, extents in ((3, (Const(0),)), (2, None)):
        index, domain = parse_expr("p * 3 + r - 1"), {"p": Const(0), "r": Const(window)}
        inside = parse_expr("p * 3 + r - 1 >= 0 and p * 3 + r - 1 < 6")
        found = margins_of(inside, (index,), (Const(6),), domain, 1)
        assert (found and found.extents) == extents


def test_no_margins_for_more_than_a_border() -> None:
    """A condition of its own, and an index whose lowest value is not known."""
    index, shape, domain = (parse_expr("p - 1"),), (Const(6),), {"p": Const(8)}
    inside = parse_expr("p - 1 >= 0 and p - 1 < 6")
    assert margins_of(inside, index, shape, domain, 1) is not None
    assert margins_of(parse_expr("p - 1 >= 0 and p - 1 < 6 and p < 3"), index, shape, domain, 1) is None
    from_end = (parse_expr("4 - p"),)
    assert margins_of(parse_expr("4 - p >= 0 and 4 - p < 6"), from_end, shape, {"p": parse_expr("s")}, 1) is None
