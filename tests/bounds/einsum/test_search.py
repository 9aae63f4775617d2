from __future__ import annotations

from collections.abc import Callable

import pytest

from bounds import walk
from tests.examples import seeds
from tilec.bounds.einsum import blocks
from tilec.bounds.einsum.curve import Curve
from tilec.bounds.einsum.einsum import Einsum, parse_einsum
from tilec.bounds.einsum.oro import divisors, oro
from tilec.bounds.einsum.oro_plus import SPACE, oro_plus, tile_sizes
from tilec.bounds.einsum.search import count_mappings, pareto


@pytest.mark.parametrize("bound", [oro, oro_plus])
def test_tilings_in_chunks_give_the_same_front(
    bound: Callable[[Einsum], Curve], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "O[p,q,k] = sum(r,s,c, I[p+r,q+s,c] * W[r,s,c,k])"
    einsum = parse_einsum(text, {"p": 6, "q": 3, "k": 5, "r": 3, "s": 1, "c": 4})
    whole = [(p.buffer_bytes, p.accesses) for p in bound(einsum).points]
    monkeypatch.setattr(blocks, "_CHUNK", 50)
    assert [(p.buffer_bytes, p.accesses) for p in bound(einsum).points] == whole


@pytest.mark.parametrize("seed", seeds(12, 30))
def test_blocks_that_are_dropped_hold_nothing_better(seed: int) -> None:
    einsum = walk.random_einsum(seed)
    sizes = {dim: tile_sizes(extent) for dim, extent in einsum.extents.items()}
    smallest = {dim: [1] for dim in einsum.dims}
    pruned, tried = pareto(einsum, sizes, SPACE, smallest), pareto(einsum, sizes, SPACE)
    assert [(p.buffer_bytes, p.accesses) for p in pruned] == [(p.buffer_bytes, p.accesses) for p in tried]


def test_a_large_product_is_the_front_of_every_tiling() -> None:
    einsum = parse_einsum("C[m,n] = sum(k, A[m,k] * B[k,n])", {"m": 200, "n": 90, "k": 150}, {"A": 8, "B": 4, "C": 32})
    sizes = {dim: tile_sizes(extent) for dim, extent in einsum.extents.items()}
    tried = pareto(einsum, sizes, SPACE)
    assert [(p.buffer_bytes, p.traffic_bytes) for p in oro_plus(einsum).points] == [
        (p.buffer_bytes, p.traffic_bytes) for p in tried
    ]


@pytest.mark.feature("O03")
def test_number_of_mappings() -> None:
    assert count_mappings([13, 13, 13]) == 11_269  # the valid mappings of the 4k GEMM
    for seed in range(7):
        einsum = walk.random_einsum(seed)
        sizes = [len(divisors(extent)) for extent in einsum.extents.values()]
        assert count_mappings(sizes) == len(list(walk.mappings(einsum, walk.perfect)))
