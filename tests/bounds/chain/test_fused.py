from __future__ import annotations

from itertools import chain as chain_of

import pytest

from bounds import fusing, walk
from tests.examples import seeds
from tilec.bounds.chain.buffer_requirement import Scheme
from tilec.bounds.chain.chain import Product, ProductChain
from tilec.bounds.chain.fused import fused
from tilec.bounds.chain.segments import ChainCurve, chain_curve
from tilec.errors import UnsupportedError


def pairs(curve: ChainCurve) -> list[tuple[int, int]]:
    return [(point.buffer_bytes, point.traffic_bytes) for point in curve.points]


@pytest.mark.feature("O17", "O18", "O19", "O21", "O22", "O23")
@pytest.mark.parametrize("seed", seeds(8, 24))
def test_pairs_have_the_front_of_all_template_mappings(seed: int) -> None:
    chain = fusing.random_chain(seed, 2)
    for fusion in ("ffmt", "flat", "flash"):
        assert pairs(chain_curve(chain, fusion)) == fusing.front(fusing.mappings(chain, fusion, walk.perfect)), chain


@pytest.mark.parametrize("seed", seeds(8, 24))
def test_pairs_with_ragged_tiles_have_the_front_of_all_tiles(seed: int) -> None:
    chain = fusing.random_chain(seed, 2)
    flash = fusing.front(fusing.mappings(chain, "flash", walk.every))
    assert pairs(chain_curve(chain, "flash", ragged=True)) == flash, chain
    everything = fusing.front(chain_of(fusing.mappings(chain, "ffmt", walk.every), fusing.beyond(chain, walk.every)))
    assert pairs(chain_curve(chain, ragged=True)) == everything, chain


@pytest.mark.feature("O17", "O18", "O19", "O22")
@pytest.mark.parametrize("seed", seeds(6, 16))
def test_longer_chains_have_the_front_of_all_template_mappings(seed: int) -> None:
    chain = fusing.random_chain(seed, 3 + seed % 2)
    for fusion in ("ffmt", "flat", "flash"):
        assert pairs(chain_curve(chain, fusion)) == fusing.front(fusing.mappings(chain, fusion, walk.perfect)), chain


@pytest.mark.feature("O19", "O20")
@pytest.mark.parametrize("scheme", [2, "pipelined"])
@pytest.mark.parametrize("seed", seeds(8, 24))
def test_other_schemes_have_the_front_of_all_template_mappings(seed: int, scheme: Scheme) -> None:
    chain = fusing.random_chain(seed, 2 + seed % 3)
    for fusion in ("ffmt", "flash"):
        expected = fusing.front(fusing.mappings(chain, fusion, walk.perfect, scheme))
        assert pairs(chain_curve(chain, fusion, scheme)) == expected, chain


@pytest.mark.parametrize("seed", range(12))
def test_longer_chains_with_ragged_tiles(seed: int) -> None:
    chain = fusing.random_chain(seed, 3 + seed // 8)
    expected = fusing.front(chain_of(fusing.mappings(chain, "ffmt", walk.every), fusing.beyond(chain, walk.every)))
    assert pairs(chain_curve(chain, ragged=True)) == expected, chain


FFN = (Product("fc1", 32768, 4096, 16384), Product("fc2", 32768, 16384, 4096))


@pytest.mark.feature("O19", "O20", "O22")
def test_room_for_weights_that_all_stay() -> None:
    """In a row of x, h, y: 4096, 16384 and 4096 words of 2 bytes; both weights take 128 MiB."""
    weights, row = 2 * 4096 * 16384 * 2, 4096 * 2
    ends = {
        scheme: chain_curve(ProductChain(FFN), scheme=scheme).largest_useful_buffer for scheme in (1, 2, "pipelined")
    }
    assert ends == {
        1: weights + row + 4 * row,
        2: weights + 4 * row + row,  # y takes the place of x
        "pipelined": weights + row + 4 * row,
    }


def test_schemes_differ_in_what_is_held_at_once() -> None:
    operators = [Product("a", 8, 4, 4, rows="whole"), Product("b", 8, 4, 32, rows="whole"), Product("c", 8, 32, 4)]
    least = {s: fused(operators, "ffmt", s, False).buffer[0] for s in (1, 2, "pipelined")}
    # Single rows, every weight streamed: b holds 4 + 32 words, and one word of W (of all three when pipelined).
    assert least == {1: 2 * 37, 2: 2 * 37, "pipelined": 2 * 39}


def test_groups_of_kept_weights_count_one_by_one_in_the_paper() -> None:
    """Kept weights on both sides of a streamed one are held at once, which the second scheme does not count."""
    operators = [Product("a", 16, 64, 2), Product("b", 16, 2, 64), Product("c", 16, 64, 2)]
    one, two = (fused(operators, "ffmt", scheme, False) for scheme in (1, 2))
    assert (one.traffic[-1], two.traffic[-1]) == (one.traffic[-1],) * 2
    assert two.buffer[-1] < one.buffer[-1]


def test_ten_operators_are_costed_at_once() -> None:
    chain = ProductChain(tuple(Product(f"op{i}", 4096, 32, 32) for i in range(10)))
    curve = chain_curve(chain)
    assert curve.mappings > 2**10
    assert {sum(step.kept for step in point.segments[0].steps) for point in curve.points} >= {0, 10}
    last = curve.points[-1]
    assert (last.buffer_bytes, last.accesses) == (10 * 2048 + 2 * 2 * 32, 10 * 1024 + 2 * 4096 * 32)


def test_too_long_and_too_large() -> None:
    long = [Product(f"op{i}", 4, 4, 4) for i in range(11)]
    with pytest.raises(UnsupportedError, match="11 operators are more than can be fused"):
        fused(long, "ffmt", 1, False)
    tall = Product("a", 2**21, 2, 2, batches=2)
    assert fused([tall, Product("b", 2**21, 2, 2)], "ffmt", 1, False).costed > 0
    with pytest.raises(UnsupportedError, match="2097152 rows are more than ragged tiles"):
        fused([tall, Product("b", 2**21, 2, 2)], "ffmt", 1, True)
    huge = Product("a", 2**30, 2**20, 2**20)
    with pytest.raises(UnsupportedError, match="more words than can be counted"):
        fused([huge, Product("b", 2**30, 2**20, 1)], "ffmt", 1, False)
