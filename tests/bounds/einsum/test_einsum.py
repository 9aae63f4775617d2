from __future__ import annotations

import pytest

from tilec.bounds.einsum.einsum import einsum_of, parse_einsum
from tilec.errors import ConfigError, UnsupportedError
from tilec.ir.expr import Var
from tilec.ir.text import parse_tensor, text_of

GEMM = "C[m,n] = sum(k, A[m,k] * B[k,n])"


@pytest.mark.feature("O35")
def test_strides_and_dilations_are_coefficients() -> None:
    text = "O[p,k] = sum(r,c, I[p*2 + 3*r - 1, c] * W[r,c,k])"
    einsum = parse_einsum(text, {"p": 8, "r": 3, "c": 4, "k": 4})
    assert einsum.dims == ("p", "k", "r", "c")
    assert [operand.tensor for operand in einsum.operands] == ["I", "W", "O"]
    assert einsum.inputs[0].ranks == ((("p", 2), ("r", 3)), (("c", 1),))


def test_constant_indices_do_not_move() -> None:
    einsum = parse_einsum("y[m] = sum(k, A[0, m, k - k] * x[k + k])", {"m": 2, "k": 3})
    assert einsum.inputs[0].ranks == ((), (("m", 1),), ())
    assert einsum.inputs[1].ranks == ((("k", 2),),)


@pytest.mark.feature("O33")
def test_element_sizes_by_tensor() -> None:
    einsum = parse_einsum(GEMM, {"m": 2, "n": 2, "k": 2}, {"A": 16, "B": 4, "C": 32})
    assert [operand.bits for operand in einsum.operands] == [16, 4, 32]


def test_reads_carry_the_conditions_they_stand_under() -> None:
    text = "O[p] = sum(r, where(p + r >= 1 and p + r < 5, I[p + r - 1], J[p]) * W[r])"
    einsum = parse_einsum(text, {"p": 4, "r": 3})
    assert {operand.tensor: [text_of(guard) for guard in operand.guards] for operand in einsum.inputs} == {
        "I": ["p + r >= 1", "p + r < 5"],
        "J": ["not (p + r >= 1 and p + r < 5)"],
        "W": [],
    }


def test_an_access_that_repeats_counts_once() -> None:
    einsum = parse_einsum("y[m] = sum(k, A[m,k] * A[m,k] * A[k,m])", {"m": 3, "k": 3})
    assert [operand.ranks for operand in einsum.inputs] == [((("m", 1),), (("k", 1),)), ((("k", 1),), (("m", 1),))]


@pytest.mark.parametrize(
    ("text", "extents", "message"),
    [
        (GEMM, {"m": 2, "n": 2}, "no extent for iterator k"),
        (GEMM, {"m": 2, "n": 2, "k": 0}, "extent of k is 0"),
        (GEMM, {"m": 2, "n": 2, "k": 2, "kk": 2}, "Did you mean k?"),
        ("C[m,n] = A[m,k] * B[k,n]", {"m": 2, "n": 2}, r"Write sum\(k, ...\)"),
        ("C[m] = sum(k, C[m] * A[m,k])", {"m": 2, "k": 2}, "C is read and written"),
        ("C[m,n] = lambda: 0", {"m": 2, "n": 2}, "not part of the language"),
    ],
)
def test_what_cannot_be_used_is_explained(text: str, extents: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_einsum(text, extents)


@pytest.mark.parametrize("index", ["m // 2", "m % 2", "m * k", "J[m]"])
def test_indices_that_are_not_affine_are_refused(index: str) -> None:
    with pytest.raises(UnsupportedError, match="not a sum of iterators"):
        parse_einsum(f"C[m] = sum(k, A[{index}] * B[k])", {"m": 4, "k": 4})


def test_symbolic_extents_are_refused() -> None:
    expr = parse_tensor(GEMM, {"m": Var("batch"), "n": 2, "k": 2})
    with pytest.raises(UnsupportedError, match="extent of m is not a number"):
        einsum_of(expr)


@pytest.mark.parametrize("bits", [{"A": 8, "B": 8}, 0])
def test_element_sizes_that_miss_or_vanish_are_refused(bits: int | dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="element"):
        parse_einsum(GEMM, {"m": 2, "n": 2, "k": 2}, bits)
