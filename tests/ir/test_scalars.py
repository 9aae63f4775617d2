"""Types of scalar bodies: inferred bottom-up, nothing promoted silently."""

import pytest

from tilec.ir.scalars import fits, type_of
from tilec.ir.text import parse_expr

TENSORS = {"X": "f32", "H": "f16", "I": "i64", "M": "bool", "U": "u8"}


@pytest.mark.feature("L05")
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("X[i] * 2 + 1.5", "f32"),
        ("sum(k, X[k] * X[k])", "f32"),
        ("f32(H[i]) * X[i]", "f32"),
        ("X[I[i] + 1]", "f32"),
        ("where(M[i] and i < j, X[i], 0.0)", "f32"),
        ("X[i] < 0", "bool"),
        ("I[i] // 2 % 3", "i64"),
        ("bitand(U[i], 15)", "u8"),
        ("isnan(X[i])", "bool"),
        ("i + 1", "i64"),
        ("maximum(X[i], -inf)", "f32"),
        ("1 + 2", "weak int"),
        ("bits_i32(X[i])", "i32"),
        ("bits_bf16(H[i])", "bf16"),
    ],
)
def test_inferred(text: str, kind: str) -> None:
    assert type_of(parse_expr(text), TENSORS) == kind


@pytest.mark.feature("L05")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("X[i] + H[i]", "f32 meets f16"),
        ("X[i] % 2.0", "integer is expected"),
        ("I[i] / I[j]", "float is expected"),
        ("exp(I[i])", "float is expected"),
        ("where(X[i], 1.0, 2.0)", "bool is expected"),
        ("U[i] * 0.5", "u8 meets weak float"),
        ("X[X[i]]", "index of type f32"),
        ("exp(X[i], X[i])", "takes 1 argument"),
        ("gamma(X[i])", "unknown function gamma"),
        ("X[i] and M[i]", "meets"),
        ("bits_i64(X[i])", "f32 has other bits than i64"),
        ("bits_u8(M[i])", "bool has other bits"),
        ("bits_i32(1)", "weak int has other bits"),
    ],
)
def test_refused(text: str, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        type_of(parse_expr(text), TENSORS)


def test_literals_fit_what_can_hold_them() -> None:
    assert fits("weak int", "f32")
    assert fits("weak int", "u8")
    assert not fits("weak float", "i64")
    assert not fits("f32", "f64")
