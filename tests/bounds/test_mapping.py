from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from bounds import walk
from tilec.bounds.einsum import parse_einsum
from tilec.bounds.mapping import Mapping, accesses, footprint


@pytest.mark.feature("O04")
@pytest.mark.parametrize("sizes", [walk.perfect, walk.every])
@pytest.mark.parametrize("seed", range(70))
def test_closed_form_counts_what_a_walk_over_element_sets_counts(seed: int, sizes: Callable[[int], list[int]]) -> None:
    einsum = walk.random_einsum(seed)
    mappings = list(walk.mappings(einsum, sizes))
    for tiles, order in random.Random(seed).sample(mappings, min(12, len(mappings))):
        mapping = Mapping.of(einsum, tiles, order)
        counted = accesses(einsum, mapping)
        for operand in einsum.inputs:
            assert counted[operand.tensor] == walk.fetched(operand, einsum.extents, tiles, order), (einsum, mapping)
        assert (footprint(einsum, tiles), sum(counted.values())) == walk.traffic(einsum, tiles, order)


@pytest.mark.feature("O04")
@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (("m", "n", "k"), {"A": 24 * 5, "B": 40 * 3, "C": 15}),
        (("m", "k", "n"), {"A": 24, "B": 40 * 3, "C": 15 * 15}),
        (("n", "k", "m"), {"A": 24 * 5, "B": 40, "C": 15 * 15}),
    ],
)
def test_stationary_operands(order: tuple[str, ...], expected: dict[str, int]) -> None:
    extents = {"m": 3, "n": 5, "k": 8}
    einsum = parse_einsum("C[m,n] = sum(k, A[m,k] * B[k,n])", extents)
    tiles = {"m": 1, "n": 1, "k": 1}
    assert accesses(einsum, Mapping.of(einsum, tiles, order)) == expected


def test_a_window_that_returns_keeps_what_still_fits() -> None:
    # The window of p slides by one of three; going back by one for the next q keeps two of three elements.
    extents = {"p": 2, "q": 2, "r": 3}
    einsum = parse_einsum("O[p,q] = sum(r, I[p + r] * W[r])", extents)
    mapping = Mapping.of(einsum, {"p": 1, "q": 1, "r": 3}, ("q", "p"))
    assert accesses(einsum, mapping)["I"] == 3 + 2 * 1 + 1


def test_accesses_to_one_tensor_have_names_of_their_own() -> None:
    extents = {"m": 2, "n": 2, "k": 3}
    einsum = parse_einsum("C[m,n] = sum(k, A[m,k] * A[n,k])", extents)
    assert accesses(einsum, Mapping.of(einsum, extents, ())) == {"A": 6, "A#2": 6, "C": 4}


def test_a_mapping_prints_its_loops_and_its_tile() -> None:
    extents = {"m": 4, "n": 6, "k": 1}
    einsum = parse_einsum("C[m,n] = sum(k, A[m,k] * B[k,n])", extents)
    assert str(Mapping.of(einsum, {"m": 2, "n": 1, "k": 1}, ("n", "m"))) == "loops n:6 m:2, tile m:2"
    assert str(Mapping.of(einsum, extents, ())) == "loops -, tile m:4 n:6"
    assert str(Mapping.of(einsum, {"m": 3, "n": 6, "k": 1}, ("m",))) == "loops m:2, tile m:3 n:6"


def test_bits_round_up_to_bytes() -> None:
    einsum = parse_einsum("C[m] = sum(k, A[m,k] * B[k])", {"m": 1, "k": 3}, {"A": 4, "B": 4, "C": 8})
    assert footprint(einsum, {"m": 1, "k": 3}) == 4
