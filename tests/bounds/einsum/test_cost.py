from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from bounds import walk
from tests.examples import seeds
from tilec.bounds.einsum.cost import accesses, footprint
from tilec.bounds.einsum.einsum import parse_einsum
from tilec.bounds.einsum.mapping import Mapping


@pytest.mark.feature("O04")
@pytest.mark.parametrize("snake", [False, True])
@pytest.mark.parametrize("sizes", [walk.perfect, walk.every])
@pytest.mark.parametrize("seed", seeds(20, 60))
def test_closed_form_counts_what_a_walk_over_element_sets_counts(
    seed: int, sizes: Callable[[int], list[int]], snake: bool
) -> None:
    einsum = walk.random_einsum(seed)
    found = list(walk.mappings(einsum, sizes))
    for tiles, order in random.Random(seed).sample(found, min(8, len(found))):
        mapping = Mapping.of(einsum, tiles, order, snake=snake)
        counted = accesses(einsum, mapping)
        turning = walk.turning(einsum, tiles) if snake else frozenset[str]()
        walked = list(walk.visits(einsum.extents, tiles, order, turning))
        for operand, label in zip(einsum.inputs, einsum.labels, strict=False):
            assert counted[label] == walk.fetched(operand, walked), (einsum, mapping)
        expected = walk.traffic(einsum, tiles, order, plus=snake)[0]
        assert (footprint(einsum, tiles), sum(counted.values())) == expected


@pytest.mark.parametrize("seed", seeds(14, 40))
def test_streamed_operands_move_what_a_walk_over_slices_counts(seed: int) -> None:
    einsum = walk.random_einsum(seed)
    streams = [
        (label, sliding)
        for operand, label in zip(einsum.operands, einsum.labels, strict=True)
        for sliding in [*([None] if walk.streamable(operand) else []), *walk.slidable(operand)]
    ]
    found = list(walk.mappings(einsum, walk.every))
    for tiles, order in random.Random(seed).sample(found, min(4, len(found))):
        _, *expected = walk.traffic(einsum, tiles, order, plus=True)
        mappings = [Mapping.of(einsum, tiles, order, *stream, snake=True) for stream in streams]
        counted = [
            (footprint(einsum, tiles, m.streamed, m.sliding), sum(accesses(einsum, m).values())) for m in mappings
        ]
        assert counted == expected, (einsum, mappings)


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
    streamed = Mapping.of(einsum, {"m": 2, "n": 3, "k": 1}, ("n", "m"), "A", snake=True)
    assert str(streamed) == "loops n:2 m:2 to and fro, tile m:2 n:3, A in slices"


def test_a_streamed_operand_needs_one_slice_and_leaves_the_others_their_tiles() -> None:
    extents = {"m": 4, "n": 4, "k": 3}
    einsum = parse_einsum("C[m,n] = sum(k, A[m,k] * B[k,n])", extents)
    tiles = {"m": 2, "n": 2, "k": 1}
    assert (footprint(einsum, tiles), footprint(einsum, tiles, "A")) == (8, 7)
    kept, streamed = (accesses(einsum, Mapping.of(einsum, tiles, ("m", "n", "k"), label)) for label in (None, "A"))
    assert kept == streamed == {"A": 24, "B": 24, "C": 16}


def test_a_window_slides_through_a_tile() -> None:
    extents = {"p": 8, "k": 2, "r": 3, "c": 4}
    einsum = parse_einsum("O[p,k] = sum(r,c, I[p + r, c] * W[r,c,k])", extents)
    tiles = {"p": 4, "k": 2, "r": 3, "c": 2}
    # Six rows of two channels: of one channel all six, the three that one p reads, or the four that one r reads.
    assert [footprint(einsum, tiles, *stream) for stream in ((), ("I",), ("I", "p"), ("I", "r"))] == [
        12 + 12 + 8,
        6 + 12 + 8,
        3 + 12 + 8,
        4 + 12 + 8,
    ]
    mapping = Mapping.of(einsum, tiles, ("c", "p"), "I", "p", snake=True)
    assert accesses(einsum, mapping)["I"] == 2 * 2 * 12
    assert str(mapping) == "loops c:2 p:2 to and fro, tile p:4 k:2 r:3 c:2, I in slices that slide along p"


def test_a_turn_keeps_one_tile_of_every_operand_that_it_does_not_move() -> None:
    extents = {"m": 4, "n": 4, "k": 6}
    einsum = parse_einsum("C[m,n] = sum(k, A[m,k] * B[k,n])", extents)
    # Three loops of 2, 2, 3 passes; n turns twice over a tile of A, m once over a tile of B.
    mapping = Mapping.of(einsum, {"m": 2, "n": 2, "k": 2}, ("m", "n", "k"), snake=True)
    assert accesses(einsum, mapping) == {"A": 48 - 2 * 4, "B": 48 - 4, "C": 16}
    # The last tile of k has one iteration: that much of A and B stays.
    mapping = Mapping.of(einsum, {"m": 2, "n": 2, "k": 5}, ("m", "n", "k"), snake=True)
    assert accesses(einsum, mapping) == {"A": 48 - 2 * 2, "B": 48 - 2, "C": 16}


def test_loops_of_one_window_turn_only_where_the_other_has_one_tile() -> None:
    extents = {"p": 4, "k": 2, "r": 3}
    einsum = parse_einsum("O[p,k] = sum(r, I[p + r] * W[r,k])", extents)
    tiles = {"p": 2, "k": 1, "r": 3}
    to_and_fro = accesses(einsum, Mapping.of(einsum, tiles, ("k", "p"), snake=True))
    assert (to_and_fro["I"], accesses(einsum, Mapping.of(einsum, tiles, ("k", "p")))["I"]) == (8, 10)
    tiles = {"p": 2, "k": 1, "r": 2}
    for order in (("k", "p", "r"), ("k", "r", "p")):
        turning, straight = (accesses(einsum, Mapping.of(einsum, tiles, order, snake=snake)) for snake in (True, False))
        assert turning["I"] == straight["I"]


def test_bits_round_up_to_bytes() -> None:
    einsum = parse_einsum("C[m] = sum(k, A[m,k] * B[k])", {"m": 1, "k": 3}, {"A": 4, "B": 4, "C": 8})
    assert footprint(einsum, {"m": 1, "k": 3}) == 4
