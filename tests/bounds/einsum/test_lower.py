from __future__ import annotations

import random
from itertools import product
from math import prod, sqrt

import pytest

from bounds import walk
from tests.examples import seeds
from tilec.bounds.einsum.einsum import einsum_of, parse_einsum
from tilec.bounds.einsum.lower import LowerBound, compulsory, digits, lb, product_sizes
from tilec.bounds.einsum.oro import oro
from tilec.bounds.einsum.oro_plus import oro_plus
from tilec.ir.text import parse_tensor

GEMM = "C[m,n] = sum(k, A[m,k] * B[k,n])"
SQUARE = {"m": 4096, "n": 4096, "k": 4096}


def test_matrix_products_have_the_bound_of_the_square_root() -> None:
    words = 2**20 // 4
    expected = 2 * 4096**3 / sqrt(words) - 2 * words
    assert lb(parse_einsum(GEMM, SQUARE, 32), 2**20) == LowerBound(int(expected) * 4, "matrix product")
    assert lb(parse_einsum(GEMM, SQUARE, 32), 64 * 2**20) == LowerBound(3 * 4096**2 * 4, "compulsory")


def test_words_are_counted_at_the_smallest_element() -> None:
    mixed = lb(parse_einsum(GEMM, SQUARE, {"A": 16, "B": 4, "C": 32}), 2**16)
    assert mixed == lb(parse_einsum(GEMM, SQUARE, 4), 2**16)
    assert compulsory(parse_einsum(GEMM, SQUARE, {"A": 16, "B": 4, "C": 32})) == 4096**2 * 52 // 8


def test_batches_add_up() -> None:
    single = lb(parse_einsum(GEMM, {"m": 512, "n": 256, "k": 128}), 1024)
    text = "C[b,m,n] = sum(k, A[b,m,k] * B[b,k,n])"
    batched = lb(parse_einsum(text, {"b": 6, "m": 512, "n": 256, "k": 128}), 1024)
    assert batched == LowerBound(6 * single.traffic_bytes, "matrix product")


@pytest.mark.parametrize(
    ("text", "extents", "sizes"),
    [
        (GEMM, {"m": 2, "n": 3, "k": 4}, (1, 24)),
        ("O[h,m,n] = sum(k, I[h,m,k] * W[k,n])", {"h": 5, "m": 2, "n": 3, "k": 4}, (1, 120)),
        ("S[h,m,n] = sum(k, Q[m,h*4+k] * K[n,k+4*h])", {"h": 3, "m": 2, "n": 5, "k": 4}, (3, 40)),
        ("O[p,k] = sum(r, I[p*3+r] * W[r,k])", {"p": 5, "r": 3, "k": 4}, (1, 60)),
        ("O[p,k] = sum(r, I[p*3-r*6] * W[r,k])", {"p": 2, "r": 4, "k": 4}, (1, 32)),
        ("O[p,k] = sum(r, I[p*3+r] * W[r,k])", {"p": 5, "r": 4, "k": 4}, None),
        ("O[p,k] = sum(r, I[p*3-r*4] * W[r,k])", {"p": 3, "r": 4, "k": 4}, None),
        ("O[p] = sum(r, I[p+r] * W[r])", {"p": 5, "r": 3}, None),
        ("C[m,n] = sum(k,l, A[m,k,l] * B[k,n])", {"m": 2, "n": 3, "k": 4, "l": 2}, None),
        ("C[m,n] = sum(k, A[m,k] * A[k,n])", {"m": 3, "n": 3, "k": 3}, None),
        ("C[m,n] = sum(k, where(m < k, A[m,k], 0.0) * B[k,n])", {"m": 3, "n": 3, "k": 3}, None),
        ("C[m,n] = sum(k, A[m,k,k] * B[k,n])", {"m": 3, "n": 3, "k": 3}, None),
    ],
)
def test_only_matrix_products_have_the_bound(text: str, extents: dict[str, int], sizes: tuple[int, int] | None) -> None:
    assert product_sizes(parse_einsum(text, extents)) == sizes


@pytest.mark.parametrize("seed", seeds(30, 100))
def test_elements_of_an_index_are_its_different_values(seed: int) -> None:
    rng = random.Random(seed)
    extents = {dim: rng.choice((1, 1, 2, 3, 4, 5)) for dim in "abc"}
    strides = {dim: rng.choice((1, 2, 3, 4, 6, 9, -1, -2)) for dim in "abc"}
    index = " + ".join(f"{dim}*{stride}" for dim, stride in strides.items())
    values = {sum(strides[dim] * i for dim, i in zip("abc", at, strict=True))
              for at in product(*(range(extents[dim]) for dim in "abc"))}  # fmt: skip
    assert compulsory(parse_einsum(f"y[a,b,c] = x[{index}]", extents)) == len(values) + prod(extents.values())


@pytest.mark.parametrize("seed", seeds(20, 60))
def test_digits_are_what_the_values_of_an_index_tell(seed: int) -> None:
    rng = random.Random(seed)
    extents = {dim: rng.randint(1, 4) for dim in "abc"}
    rank = tuple((dim, rng.choice((1, 2, 3, 4, 6, 8, -1, -2, -4, 12))) for dim in "abc"[: rng.randint(1, 3)])
    parts = digits(rank, extents)
    assert sorted(term for part in parts for term in part) == sorted(rank)
    told: dict[int, set[tuple[int, ...]]] = {}
    for point in product(*(range(extents[dim]) for dim, _ in rank)):
        at = dict(zip((dim for dim, _ in rank), point, strict=True))
        values = tuple(sum(c * at[dim] for dim, c in part) for part in parts)
        told.setdefault(sum(values), set()).add(values)
    assert all(len(values) == 1 for values in told.values())


def test_compulsory_counts_elements_that_are_touched() -> None:
    # Stride 2 without overlap reads every other element, a dilated window leaves gaps.
    assert compulsory(parse_einsum("O[p] = sum(r, I[p*2 + r*8] * W[r])", {"p": 3, "r": 2})) == 6 + 2 + 3
    # A diagonal is read once, two accesses to one tensor may touch the same elements.
    assert compulsory(parse_einsum("y[i] = A[i,i]", {"i": 5})) == 5 + 5
    assert compulsory(parse_einsum("C[m,n] = sum(k, A[m,k] * A[n,k])", {"m": 3, "n": 2, "k": 4})) == 12 + 6


def test_padding_is_not_compulsory() -> None:
    text = "O[p,q] = sum(r,s, where(p+r >= 1 and p+r < 6 and q+s >= 1 and q+s < 8, I[p+r-1,q+s-1], 0.0) * W[r,s])"
    assert compulsory(parse_einsum(text, {"p": 5, "q": 7, "r": 3, "s": 3})) == 5 * 7 + 9 + 5 * 7
    assert compulsory(parse_einsum("y[i] = where(i >= 1, x[i - 1], 0.0)", {"i": 5})) == 4 + 5


@pytest.mark.parametrize("guard", ["m[i,j] > 0.0", "i < j", "i + n < 3"])
def test_reads_that_may_not_happen_are_not_compulsory(guard: str) -> None:
    expr = parse_tensor(f"y[i,j] = where({guard}, x[i,j], 0.0)", {"i": 3, "j": 4})
    mask = 12 if "m" in guard else 0
    assert compulsory(einsum_of(expr)) == mask + 12


def test_guards_on_indices_that_move_together_leave_nothing_sure() -> None:
    assert compulsory(parse_einsum("y[i] = where(i < 3, x[i,i], 0.0)", {"i": 5})) == 5


def test_convolutions_have_no_bound_but_compulsory_traffic() -> None:
    text = "O[p,q,k] = sum(r,s,c, I[p+r,q+s,c] * W[r,s,c,k])"
    bound = lb(parse_einsum(text, {"p": 56, "q": 56, "k": 64, "r": 3, "s": 3, "c": 64}), 12_512)
    assert bound == LowerBound(58 * 58 * 64 + 9 * 64 * 64 + 56 * 56 * 64, "compulsory")


@pytest.mark.parametrize("seed", seeds(50, 200))
def test_the_bound_stays_below_every_curve(seed: int) -> None:
    einsum = walk.random_einsum(seed)
    for point in (*oro(einsum).points, *oro_plus(einsum).points):
        assert lb(einsum, point.buffer_bytes).traffic_bytes <= point.traffic_bytes


def test_the_bound_of_products_stays_below_the_curve_and_comes_near_it() -> None:
    einsum = parse_einsum(GEMM, SQUARE)
    for bound, near in ((oro, 1.08), (oro_plus, 1.02)):
        ratios = [point.traffic_bytes / lb(einsum, point.buffer_bytes).traffic_bytes for point in bound(einsum).points]
        assert min(ratios) >= 1
        assert min(ratios[:-1]) < near
    assert lb(einsum, 0).traffic_bytes >= lb(einsum, 1).traffic_bytes
