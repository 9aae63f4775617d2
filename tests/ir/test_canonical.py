"""Expressions without names."""

import pytest

from tilec.ir.canonical import canonical, content
from tilec.ir.expr import TensorExpr
from tilec.ir.text import parse_tensor

PRODUCT = "c[m, n] = sum(k, a[m, k] * b[k, n])"
SIZES = {"m": 4, "n": 8, "k": 2}


def expr(text: str, **extents: int | str) -> TensorExpr:
    return parse_tensor(text, extents)  # type: ignore[arg-type]


def test_names_as_given() -> None:
    names = canonical(expr(PRODUCT, **SIZES), {"a": "t0", "b": "t1", "c": "t2"}, {"m": "i0", "n": "i1", "k": "i2"})
    assert names == ["t2[i0, i1] = sum(i2, t0[i0, i2] * t1[i2, i1])", "4", "8", "2"]


@pytest.mark.parametrize(
    ("text", "sizes", "same"),
    [
        ("z[p, q] = sum(r, x[p, r] * y[r, q])", {"p": 4, "q": 8, "r": 2}, True),
        ("z[p, q] = sum(r, x[p, r] * y[r, q])", {"p": 4, "q": 8, "r": 3}, False),
        ("z[p, q] = sum(r, x[p, r] * y[q, r])", {"p": 4, "q": 8, "r": 2}, False),
        ("z[p, q] = sum(r, x[p, r] * x[r, q])", {"p": 4, "q": 8, "r": 2}, False),
        ("z[p, q] = max(r, x[p, r] * y[r, q])", {"p": 4, "q": 8, "r": 2}, False),
    ],
)
def test_equal_content_is_the_same_computation(text: str, sizes: dict[str, int], same: bool) -> None:
    assert (content(expr(text, **sizes)) == content(expr(PRODUCT, **SIZES))) == same
